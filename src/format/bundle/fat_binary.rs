//! CUDA fat binaries, as nvcc's `fatbinary` writes them: for nvcc, and for clang.
//!
//! NVIDIA does not document the format. This is what `fatbinary` of CUDA 13.5 writes, and what cricket and
//! cuda-fatbin-decompression say of older releases. All numbers are little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 4 | magic `50 ed 55 ba` |
//! | 2, 2 | version, 1; bytes of this header, 16 |
//! | 8 | bytes of all entries |
//! | for each entry: 2, 2 | kind: 1 PTX, 2 ELF, 8 LTO-IR; version `01 01` |
//! | 4, 8 | bytes of this header, 64 or more; bytes of the image, a multiple of 8 |
//! | 4 | bytes of the image without padding if it is compressed, else 0 |
//! | 4 | offset of options in this header |
//! | 2, 2 | version of PTX or of the cubin: minor, major |
//! | 4 | architecture, such as 90 |
//! | 4, 4 | offset and length of the source's name in this header |
//! | 8 | flags: `0x2000` LZ4 block, `0x8000` zstd frame |
//! | 8, 8 | 0; bytes when unpacked |
//!
//! The section `.nv_fatbin` holds fat binaries one after the other, each at a multiple of 8. `.nvFatBinSegment` only
//! points at them: a structure with the magic `b1 43 62 46` for each.

use std::ops::Range;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::container::{Container, MAX_ENTRIES, MAX_UNPACKED_BYTES, Packing};
use crate::format::bundle::cursor::Cursor;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::formats::FAT_BINARY;
use crate::format::bundle::image::Image;
use crate::format::codeobject::CodeObject;
use crate::format::decompress::{Method, unpack};

/// The fields of an entry that all releases write, in bytes.
const ENTRY: u64 = 64;

/// The alignment of images and their headers, in bytes.
const ALIGNMENT: usize = 8;

/// The kinds of images.
const PTX: u64 = 1;
const ELF: u64 = 2;
/// For NVIDIA's linker. It has the flag of zstd, and is packed in another way.
const LTO_IR: u64 = 8;

/// The flags of compressed images. Releases before 12.4 had a method before LZ4, which rocov does not support.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const UNKNOWN_METHOD: u64 = 0x1000;

/// The start of the ids of all images, in the form of an offload binary's.
const TRIPLE: &str = "cuda-nvptx64-nvidia-cuda--";

/// Parses the fat binary at the start of the range `place` of `file`. Fails if it unpacks to more than `room` bytes.
pub(super) fn parse<'data>(
    file: &Bytes<'data>,
    place: Range<usize>,
    room: u64,
) -> Result<Container<'data>, BundleError> {
    let start = place.start;
    let mut cursor = Cursor {
        bytes: &file[place],
        what: FAT_BINARY.name,
        start,
        at: FAT_BINARY.magic.len(),
    };
    let all = Entry::list(&mut cursor)?;
    let (mut images, mut damage) = (Vec::new(), Vec::new());
    let (mut unpacked, mut count) = (0, 0);
    while cursor.at < all.end {
        count += 1;
        cursor.check_count(count, MAX_ENTRIES)?;
        let entry = Entry::read(&mut cursor)?;
        match entry.image(file, start, room.saturating_sub(unpacked)) {
            Ok(image) => {
                unpacked += image.bytes.len() as u64 * u64::from(entry.method.is_some());
                images.push(image);
            }
            Err(error) => damage.push(error),
        }
    }
    Ok(Container {
        section: None,
        offset: start,
        size: all.end,
        packing: Packing::FatBinary { unpacked },
        images,
        damage,
    })
}

/// The PTX of the fat binary at the start of `bytes`, without unpacking anything: a fat binary has images for many GPUs,
/// and a driver takes one of them.
///
/// # Errors
/// Fails if there is no fat binary, or it is damaged.
pub fn packed_ptx(bytes: &[u8]) -> Result<Vec<PackedPtx<'_>>, BundleError> {
    if !bytes.starts_with(FAT_BINARY.magic) {
        return Err(BundleError::unknown_magic(bytes, 0));
    }
    let mut cursor = Cursor {
        bytes,
        what: FAT_BINARY.name,
        start: 0,
        at: FAT_BINARY.magic.len(),
    };
    let all = Entry::list(&mut cursor)?;
    let (mut found, mut count) = (Vec::new(), 0);
    while cursor.at < all.end {
        count += 1;
        cursor.check_count(count, MAX_ENTRIES)?;
        let entry = Entry::read(&mut cursor)?;
        if entry.kind == PTX {
            found.push(PackedPtx {
                entry,
                file: Bytes::from_file(bytes),
            });
        }
    }
    Ok(found)
}

/// The bytes of a fat binary that starts with `header`, its first [`FAT_BINARY_HEADER`] bytes. `None` if these are not of a
/// fat binary.
#[must_use]
pub fn fat_binary_size(header: &[u8; FAT_BINARY_HEADER]) -> Option<u64> {
    let mut cursor = Cursor {
        bytes: header,
        what: FAT_BINARY.name,
        start: 0,
        at: FAT_BINARY.magic.len(),
    };
    let own = cursor.number::<2>("header").ok()?;
    let size = cursor.number::<8>("header").ok()?;
    let all = own.checked_add(size)?;
    header.starts_with(FAT_BINARY.magic).then_some(all)
}

/// The bytes of the header of a fat binary.
pub const FAT_BINARY_HEADER: usize = 16;

/// PTX in a fat binary, perhaps compressed.
#[derive(Debug)]
pub struct PackedPtx<'data> {
    entry: Entry,
    file: Bytes<'data>,
}

impl<'data> PackedPtx<'data> {
    /// The architecture that it is for, such as 90. Only the text distinguishes sm_90a from sm_90.
    #[must_use]
    pub fn architecture(&self) -> u64 {
        self.entry.architecture
    }

    /// The options for its compilation, such as `-maxrregcount=32`. Empty without any.
    #[must_use]
    pub fn options(&self) -> String {
        let options = self.file.get(self.entry.options.clone());
        String::from_utf8_lossy(&options.unwrap_or_default()).into_owned()
    }

    /// The text, without the zeros after it.
    ///
    /// # Errors
    /// Fails if it cannot be unpacked.
    pub fn text(&self) -> Result<Bytes<'data>, BundleError> {
        let image = self.entry.image(&self.file, 0, MAX_UNPACKED_BYTES)?;
        Ok(image.bytes)
    }
}

/// The `.target` of PTX without `sm_`: `90a`. `None` if its first lines have none.
#[must_use]
pub fn ptx_architecture(text: &[u8]) -> Option<String> {
    ptx_target(text)
}

/// Returns whether a GPU runs PTX for `architecture`, its `.target` without `sm_`. `gpu` is the GPU's architecture, such as
/// 90. `90a` is for 9.0 only, and `100f` for the GPUs of its family, those of one major number. PTX for another architecture
/// runs on all later GPUs (PTX ISA, ".target").
#[must_use]
pub fn runs_ptx(gpu: u64, architecture: &str) -> bool {
    let digits = architecture.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let Ok(own) = digits.parse::<u64>() else {
        return false;
    };
    match &architecture[digits.len()..] {
        "" => own <= gpu,
        "a" => own == gpu,
        "f" => own <= gpu && own / 10 == gpu / 10,
        _ => false,
    }
}

/// An entry, and the place of its image in the fat binary.
#[derive(Debug)]
struct Entry {
    kind: u64,
    architecture: u64,
    /// The options of the compilation, in the fat binary. Empty without any.
    options: Range<usize>,
    place: Range<usize>,
    /// The compression method, and the size in bytes when unpacked.
    method: Option<(Result<Method, u64>, u64)>,
}

impl Entry {
    /// Reads the header of a fat binary, up to its first entry. Returns the place of all entries.
    fn list(cursor: &mut Cursor<'_>) -> Result<Range<usize>, BundleError> {
        let header = cursor.number::<2>("header")?;
        let size = cursor.number::<8>("header")?;
        cursor.check_size(header)?;
        let all = cursor.range("list of entries", header, size)?;
        cursor.at = all.start;
        Ok(all)
    }

    /// Reads an entry and skips its image.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, BundleError> {
        const PART: &str = "entry";
        let start = cursor.at as u64;
        let kind = cursor.number::<2>(PART)?;
        let _version = cursor.number::<2>(PART)?;
        let header = cursor.number::<4>(PART)?;
        let padded = cursor.number::<8>(PART)?;
        let packed = cursor.number::<4>(PART)?;
        let options = cursor.number::<4>(PART)?;
        let _code_version = cursor.number::<4>(PART)?;
        let architecture = cursor.number::<4>(PART)?;
        let _name = cursor.number::<8>(PART)?;
        let flags = cursor.number::<8>(PART)?;
        let _zero = cursor.number::<8>(PART)?;
        let unpacked = cursor.number::<8>(PART)?;
        if header < ENTRY {
            return Err(BundleError::Size {
                what: "entry of the CUDA fat binary",
                offset: cursor.start + start as usize,
                declared: header,
                header: ENTRY as usize,
            });
        }
        let image = cursor.range("header of an entry", start, header)?.end as u64;
        let all = cursor.range("image", image, padded)?;
        cursor.at = all.end;
        let method = match flags & (LZ4 | ZSTD | UNKNOWN_METHOD) {
            0 => None,
            LZ4 => Some(Ok(Method::Lz4)),
            ZSTD => Some(Ok(Method::Zstd)),
            other => Some(Err(other)),
        };
        let size = match method {
            Some(_) => packed.min(padded),
            None => padded,
        };
        Ok(Self {
            kind,
            architecture,
            options: options_at(cursor.bytes, start, header, options),
            place: all.start..all.start + size as usize,
            method: method
                .filter(|_| matches!(kind, PTX | ELF))
                .map(|method| (method, unpacked)),
        })
    }

    /// The image, unpacked. `start` is the place of the fat binary in the file.
    fn image<'data>(
        &self,
        file: &Bytes<'data>,
        start: usize,
        room: u64,
    ) -> Result<Image<'data>, BundleError> {
        let offset = start + self.place.start;
        // `read` has compared the place with the fat binary.
        let packed = file.get(offset..start + self.place.end).unwrap_or_default();
        let bytes = match &self.method {
            None => packed,
            Some((method, declared)) => {
                let method = method.map_err(|found| BundleError::FatBinaryMethod {
                    offset: start,
                    found,
                })?;
                unpacked(method, &packed, *declared, offset, room)?
            }
        };
        let (id, target) = self.names(&bytes);
        Ok(Image {
            id,
            target,
            offset,
            bytes: match self.kind {
                PTX => without_zeros(bytes),
                ELF if self.method.is_none() => without_padding(bytes),
                _ => bytes,
            },
        })
    }

    /// The id, and the target of the image that a driver loads or compiles. Only the image itself distinguishes sm_90a
    /// from sm_90.
    fn names(&self, bytes: &[u8]) -> (String, Option<String>) {
        let architecture = self.architecture;
        match self.kind {
            PTX => {
                let of_text = ptx_target(bytes);
                let target = of_text.unwrap_or_else(|| architecture.to_string());
                (format!("{TRIPLE}compute_{target}"), None)
            }
            ELF => {
                let own = CodeObject::parse(bytes).and_then(|elf| elf.target()).ok();
                let target = own.unwrap_or_else(|| format!("sm_{architecture}"));
                (format!("{TRIPLE}{target}"), Some(target))
            }
            LTO_IR => (format!("{TRIPLE}lto_{architecture}"), None),
            kind => (format!("{TRIPLE}sm_{architecture} (kind {kind:#x})"), None),
        }
    }
}

/// The place of the options of an entry: text that ends with a zero, in its header.
fn options_at(bytes: &[u8], entry: u64, header: u64, offset: u64) -> Range<usize> {
    let (entry, header) = (entry as usize, header as usize);
    let text = bytes.get(entry..entry.saturating_add(header));
    let text = text.and_then(|text| text.get(usize::try_from(offset).ok()?..));
    let text = text.filter(|_| offset >= ENTRY).unwrap_or_default();
    let len = text.iter().position(|byte| *byte == 0);
    let start = entry.saturating_add(offset as usize);
    len.map_or(0..0, |len| start..start + len)
}

/// Unpacks the image at `offset` of the file.
fn unpacked(
    method: Method,
    packed: &[u8],
    declared: u64,
    offset: usize,
    room: u64,
) -> Result<Bytes<'static>, BundleError> {
    const IMAGE: &str = "image of a CUDA fat binary";
    if declared > room {
        return Err(BundleError::TooLarge {
            what: IMAGE,
            offset,
            declared,
            limit: room,
        });
    }
    let result = unpack(method, packed, declared).map_err(|reason| BundleError::Unpack {
        what: IMAGE,
        offset,
        method,
        reason,
    })?;
    match result.bytes.len() as u64 {
        found if found == declared => Ok(Bytes::unpacked(result.bytes)),
        found => Err(BundleError::UnpackedSize {
            what: IMAGE,
            offset,
            declared,
            found,
        }),
    }
}

/// An ELF without the zeros after it: its identity may not depend on its packing. The fat binary does not say how long
/// an ELF is that is not compressed, but the ELF does.
fn without_padding(bytes: Bytes<'_>) -> Bytes<'_> {
    let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let padding = padding.min(ALIGNMENT - 1);
    let size = elf_size(&bytes).unwrap_or(bytes.len());
    let size = size.clamp(bytes.len() - padding, bytes.len());
    bytes.get(0..size).unwrap_or_default()
}

/// The end of the last part of an ELF.
fn elf_size(bytes: &[u8]) -> Option<usize> {
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    let sections = header.section_headers(LittleEndian, bytes).ok()?;
    let segments = header.program_headers(LittleEndian, bytes).ok()?;
    let of_headers = [
        (header.e_shoff(LittleEndian), size_of_val(sections)),
        (header.e_phoff(LittleEndian), size_of_val(segments)),
    ];
    let of_headers = of_headers.map(|(start, size)| (start, size as u64));
    let of_sections = sections
        .iter()
        .filter_map(|section| section.file_range(LittleEndian));
    let parts = of_sections.chain(of_headers);
    let ends = parts.map(|(start, size)| start.saturating_add(size));
    usize::try_from(ends.max()?).ok()
}

/// The text of PTX without the zeros after it.
fn without_zeros(bytes: Bytes<'_>) -> Bytes<'_> {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    let end = end.map_or(0, |last| last + 1);
    bytes.get(0..end).unwrap_or_default()
}

/// The architecture in the directive `.target sm_90a` of PTX: `90a`.
fn ptx_target(text: &[u8]) -> Option<String> {
    const START: usize = 4096;
    let start = String::from_utf8_lossy(&text[..text.len().min(START)]).into_owned();
    let mut directives = start
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".target"));
    let target = directives.next()?.trim().strip_prefix("sm_")?;
    let end = target.find(|character: char| !character.is_ascii_alphanumeric());
    Some(target[..end.unwrap_or(target.len())].to_owned())
}
