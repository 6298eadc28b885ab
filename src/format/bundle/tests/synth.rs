//! Writers of all containers. They share no code with the readers.

pub(super) use rocov_tests::zstd::frame as zstd;

pub(super) const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-";
pub(super) const GFX942: &str = "hipv4-amdgcn-amd-amdhsa--gfx942";
pub(super) const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// The bytes of 8-byte numbers.
pub(super) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An ELF header for `machine`, and `tail` after it.
fn elf_header(machine: u16, section_offset: u64, sections: u16, tail: &[u8]) -> Vec<u8> {
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend(3_u16.to_le_bytes());
    elf.extend(machine.to_le_bytes());
    elf.extend(1_u32.to_le_bytes());
    elf.extend(words(&[0, 0, section_offset]));
    elf.extend(0_u32.to_le_bytes());
    // The sizes of this header and of a program header, no program headers, then section headers. The last
    // section has the names.
    let names = sections.saturating_sub(1);
    for half in [64_u16, 56, 0, 64, sections, names] {
        elf.extend(half.to_le_bytes());
    }
    elf.extend_from_slice(tail);
    elf
}

/// A code object. `tail` makes it distinct.
pub(super) fn code_object(tail: &str) -> Vec<u8> {
    elf_header(0xe0, 0, 0, tail.as_bytes())
}

/// A host file with sections of these names and contents. Each starts a page.
pub(super) fn host(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut contents = Vec::new();
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut section = |name: &str, bytes: &[u8]| {
        contents.resize(
            contents.len() + (4096 - (64 + contents.len()) % 4096) % 4096,
            0,
        );
        let place = 64 + contents.len() as u64;
        contents.extend_from_slice(bytes);
        let name_offset = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        headers.extend(name_offset.to_le_bytes());
        headers.extend(1_u32.to_le_bytes()); // SHT_PROGBITS
        headers.extend(words(&[0, 0, place, bytes.len() as u64, 0, 1, 0]));
        headers.resize(headers.len() / 64 * 64, 0);
    };
    for (name, bytes) in sections {
        section(name, bytes);
    }
    let place = 64 + contents.len() as u64;
    headers.extend(0_u32.to_le_bytes());
    headers.extend(3_u32.to_le_bytes()); // SHT_STRTAB
    headers.extend(words(&[0, 0, place, names.len() as u64, 0, 1, 0]));
    contents.extend(names);
    let header_offset = 64 + contents.len() as u64;
    contents.extend(headers);
    elf_header(0x3e, header_offset, sections.len() as u16 + 2, &contents)
}

/// A plain bundle whose contents start at 4096, as clang aligns them, without its last padding.
pub(super) fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let mut contents = Vec::new();
    header.extend(words(&[entries.len() as u64]));
    for (id, bytes) in entries {
        let offset = 4096 + contents.len() as u64;
        header.extend(words(&[offset, bytes.len() as u64, id.len() as u64]));
        header.extend(id.as_bytes());
        contents.extend_from_slice(bytes);
    }
    header.resize(4096, 0);
    header.extend(contents);
    header
}

/// `bytes` as a zlib stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4).
pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut stream = b"\x78\x01".to_vec();
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        stream.push(u8::from(blocks.peek().is_none()));
        let len = block.len() as u16;
        stream.extend(len.to_le_bytes());
        stream.extend((!len).to_le_bytes());
        stream.extend_from_slice(block);
    }
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}

/// The header of a compressed bundle.
pub(super) struct Compressed {
    pub(super) version: u16,
    pub(super) method: u16,
    /// The declared size of the bundle in bytes. `None` for the true size.
    pub(super) size: Option<u64>,
    /// The declared size in bytes when unpacked.
    pub(super) unpacked: u64,
    pub(super) hash: [u8; 8],
}

impl Compressed {
    /// The true header for compressed `bytes`.
    pub(super) fn new(bytes: &[u8], version: u16, method: u16) -> Self {
        Self {
            version,
            method,
            size: None,
            unpacked: bytes.len() as u64,
            hash: md5::compute(bytes).0[..8].try_into().unwrap(),
        }
    }

    /// The bundle with this header.
    pub(super) fn with(&self, packed: &[u8]) -> Vec<u8> {
        let mut bundle = b"CCOB".to_vec();
        bundle.extend(self.version.to_le_bytes());
        bundle.extend(self.method.to_le_bytes());
        let header = [20, 24, 32][usize::from(self.version - 1).min(2)];
        let size = self.size.unwrap_or((header + packed.len()) as u64);
        match self.version {
            1 => bundle.extend((self.unpacked as u32).to_le_bytes()),
            2 => {
                bundle.extend((size as u32).to_le_bytes());
                bundle.extend((self.unpacked as u32).to_le_bytes());
            }
            _ => bundle.extend(words(&[size, self.unpacked])),
        }
        bundle.extend(self.hash);
        assert_eq!(bundle.len(), header);
        bundle.extend_from_slice(packed);
        bundle
    }
}

/// `bytes` compressed, with a true header.
pub(super) fn compressed(bytes: &[u8], version: u16, method: u16) -> Vec<u8> {
    let packed = [zlib, zstd][usize::from(method)](bytes);
    Compressed::new(bytes, version, method).with(&packed)
}

/// An offload binary for HIP with an image for each target.
pub(super) fn offload_binary(version: u32, images: &[(&str, &[u8])]) -> Vec<u8> {
    let header = if version == 3 { 40 } else { 32 };
    let string_bytes = if version == 1 { 16 } else { 24 };
    let strings_offset = header + 40 * images.len();
    let mut text_offset = strings_offset + 2 * string_bytes * images.len();
    let (mut entries, mut strings) = (Vec::new(), Vec::new());
    let (mut text, mut contents) = (Vec::new(), Vec::new());
    let text_bytes: usize = images
        .iter()
        .map(|(arch, _)| 12 + 18 + arch.len() + 1)
        .sum();
    let contents_offset = (text_offset + text_bytes).next_multiple_of(8);
    for (at, (arch, bytes)) in images.iter().enumerate() {
        entries.extend([1_u16, 4].iter().flat_map(|half| half.to_le_bytes()));
        entries.extend(0_u32.to_le_bytes());
        let own_strings = strings_offset + 2 * string_bytes * at;
        let image = contents_offset + contents.len();
        entries.extend(words(&[
            own_strings as u64,
            2,
            image as u64,
            bytes.len() as u64,
        ]));
        contents.extend_from_slice(bytes);
        for (key, value) in [("triple", "amdgcn-amd-amdhsa"), ("arch", arch)] {
            let value_offset = text_offset + key.len() + 1;
            strings.extend(words(&[text_offset as u64, value_offset as u64]));
            if version > 1 {
                strings.extend(words(&[value.len() as u64]));
            }
            let pair = format!("{key}\0{value}\0");
            text_offset += pair.len();
            text.extend(pair.into_bytes());
        }
    }
    let size = (contents_offset + contents.len()).next_multiple_of(8);
    let mut binary = b"\x10\xff\x10\xad".to_vec();
    binary.extend(version.to_le_bytes());
    let count = if version == 1 {
        40
    } else {
        images.len() as u64
    };
    binary.extend(words(&[size as u64, header as u64, count]));
    binary.resize(header, 0);
    for part in [entries, strings, text] {
        binary.extend(part);
    }
    binary.resize(contents_offset, 0);
    binary.extend(contents);
    binary.resize(size, 0);
    binary
}

/// An offload binary of version 3, compressed after its header.
pub(super) fn compressed_offload_binary(
    images: &[(&str, &[u8])],
    pack: fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let whole = offload_binary(3, images);
    let mut binary = whole[..40].to_vec();
    binary.extend(pack(&whole[40..]));
    binary.resize(binary.len().next_multiple_of(8), 0);
    let size = binary.len() as u64;
    binary[8..16].copy_from_slice(&size.to_le_bytes());
    binary[32..40].copy_from_slice(&(whole.len() as u64).to_le_bytes());
    binary
}

/// Replaces the bytes at `at`.
pub(super) fn patched(mut data: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    data[at..at + bytes.len()].copy_from_slice(bytes);
    data
}

/// An entry of a CUDA fat binary: kind, architecture, flags, image as stored, and size when unpacked.
pub(super) struct FatEntry<'a> {
    pub(super) kind: u16,
    pub(super) architecture: u32,
    pub(super) flags: u64,
    pub(super) image: &'a [u8],
    pub(super) unpacked: u64,
}

impl<'a> FatEntry<'a> {
    /// An entry that is not compressed.
    pub(super) fn plain(kind: u16, architecture: u32, image: &'a [u8]) -> Self {
        Self {
            kind,
            architecture,
            flags: 0x11,
            image,
            unpacked: 0,
        }
    }
}

/// A CUDA fat binary.
pub(super) fn fat_binary(entries: &[FatEntry<'_>]) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in entries {
        let padded = entry.image.len().next_multiple_of(8);
        let is_packed = entry.flags & 0xe000 != 0;
        all.extend([entry.kind, 0x101].map(u16::to_le_bytes).as_flattened());
        all.extend(64_u32.to_le_bytes());
        all.extend(words(&[padded as u64]));
        let packed = if is_packed {
            entry.image.len() as u32
        } else {
            0
        };
        for word in [packed, 0, 0x1_0007, entry.architecture, 0, 0] {
            all.extend(word.to_le_bytes());
        }
        all.extend(words(&[entry.flags, 0, entry.unpacked]));
        all.extend_from_slice(entry.image);
        all.resize(all.len() + padded - entry.image.len(), 0);
    }
    let mut fat_binary = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    fat_binary.extend(words(&[all.len() as u64]));
    fat_binary.extend(all);
    fat_binary
}

/// A cubin for sm_90 without sections.
pub(super) fn cubin(tail: &str) -> Vec<u8> {
    let mut elf = elf_header(190, 0, 0, tail.as_bytes());
    elf[8] = 7;
    elf[16] = 2;
    elf[48..52].copy_from_slice(&0x5a_055a_u32.to_le_bytes());
    elf
}

/// `bytes`, at least 15 and less than 270 of them, as an LZ4 block of literals.
pub(super) fn lz4(bytes: &[u8]) -> Vec<u8> {
    [&[0xf0, (bytes.len() - 15) as u8], bytes].concat()
}

/// A text in MessagePack.
pub(super) fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0xd9, text.len() as u8];
    bytes.extend(text.bytes());
    bytes
}

/// A number in MessagePack.
pub(super) fn number(number: u64) -> Vec<u8> {
    [&[0xcf][..], &number.to_be_bytes()].concat()
}

/// A list in MessagePack.
pub(super) fn list(values: &[Vec<u8>]) -> Vec<u8> {
    [&[0xdc, 0, values.len() as u8][..], &values.concat()].concat()
}

/// A map in MessagePack.
pub(super) fn map(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0xde, 0, pairs.len() as u8];
    for (key, value) in pairs {
        bytes.extend(text(key));
        bytes.extend(value);
    }
    bytes
}

/// A kpack archive of this data, from byte 64 on, and with this list.
pub(super) fn kpack_with(data: &[u8], list: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut file = b"KPAK\x01\0\0\0".to_vec();
    file.extend(words(&[64 + data.len() as u64]));
    file.resize(64, 0);
    file.extend(data);
    file.extend(map(list));
    file
}

/// A kpack archive of these code objects, each with its id and its target.
pub(super) fn kpack(is_packed: bool, entries: &[((&str, &str), &[u8])]) -> Vec<u8> {
    let mut data = Vec::new();
    let (mut blobs, mut toc) = (Vec::new(), Vec::new());
    if is_packed {
        data.extend((entries.len() as u32).to_le_bytes());
    }
    for (ordinal, ((id, target), bytes)) in entries.iter().enumerate() {
        if is_packed {
            let frame = zstd(bytes);
            data.extend((frame.len() as u32).to_le_bytes());
            data.extend(frame);
        } else {
            let offset = number(64 + data.len() as u64);
            blobs.push(map(&[
                ("offset", offset),
                ("size", number(bytes.len() as u64)),
            ]));
            data.extend(*bytes);
        }
        let entry = map(&[
            ("type", text("hsaco")),
            ("ordinal", number(ordinal as u64)),
            ("original_size", number(bytes.len() as u64)),
        ]);
        toc.push((*id, map(&[(*target, entry)])));
    }
    let scheme = if is_packed { "zstd-per-kernel" } else { "none" };
    kpack_with(
        &data,
        &[
            ("format_version", number(1)),
            ("gfx_arches", list(&[text("gfx90a")])),
            ("compression_scheme", text(scheme)),
            ("blobs", list(&blobs)),
            ("zstd_offset", number(64)),
            ("zstd_size", number(data.len() as u64)),
            ("toc", map(&toc)),
        ],
    )
}
