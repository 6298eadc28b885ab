//! A host ELF with containers of device code, whose headers are changed: the input lists the changes. Random bytes would
//! seldom be an ELF.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::discover::host_files::build_id_in;
use rocov::format::bundle::{container_at, containers, images, starts_at};

/// The size of an ELF header and of a section header.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// A change: the place in the headers (2 bytes), the size of the field (1 byte) and its value (8 bytes).
const CHANGE: usize = 11;

/// The sections: names, types and contents. The last has the names.
fn sections() -> Vec<(&'static [u8], u32, Vec<u8>)> {
    let bundle = [&b"__CLANG_OFFLOAD_BUNDLE__"[..], &[0; 8]].concat();
    let offload = [&b"\x10\xff\x10\xad\x02\0\0\0"[..], &[32, 0, 0, 0, 0, 0, 0, 0], &[32], &[0; 15]].concat();
    let fat = b"\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0".to_vec();
    let note = b"\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0\x01\x02\x03\x04".to_vec();
    vec![
        (b"", 0, Vec::new()),
        (b".hip_fatbin", 1, bundle),
        (b".llvm.offloading", 1, offload),
        (b".nv_fatbin", 1, fat),
        (b".hip_fatbin", 1, Vec::new()),
        (b".note.gnu.build-id", 7, note),
        (b".shstrtab", 3, Vec::new()),
    ]
}

/// The headers of the file one after the other, and its contents after them.
fn host() -> (Vec<u8>, Vec<u8>) {
    let mut sections = sections();
    let names: Vec<u8> = sections.iter().flat_map(|section| [section.0, b"\0"].concat()).collect();
    let last = sections.len() - 1;
    sections[last].2 = names;
    let contents_at = HEADER + PROGRAM_HEADER + HEADER * sections.len();
    let (mut headers, mut contents) = (Vec::<u8>::new(), Vec::<u8>::new());
    let mut name = 0_u32;
    for (text, kind, bytes) in &sections {
        headers.extend([name, *kind].map(u32::to_le_bytes).as_flattened());
        let place = (contents_at + contents.len()) as u64;
        let words = [0, 0, place, bytes.len() as u64, 0, 8, 0];
        headers.extend(words.map(u64::to_le_bytes).as_flattened());
        contents.extend(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
        name += text.len() as u32 + 1;
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3_u16, 62].map(u16::to_le_bytes).as_flattened());
    file.extend(1_u32.to_le_bytes());
    let words = [0, HEADER as u64, (HEADER + PROGRAM_HEADER) as u64];
    file.extend(words.map(u64::to_le_bytes).as_flattened());
    file.extend(0_u32.to_le_bytes());
    let halves = [64, 56, 1, 64, sections.len() as u16, last as u16];
    file.extend(halves.map(u16::to_le_bytes).as_flattened());
    file.extend([4_u32, 4].map(u32::to_le_bytes).as_flattened());
    file.extend([contents_at as u64, 0, 0, 20, 20, 4].map(u64::to_le_bytes).as_flattened());
    file.extend(headers);
    (file, contents)
}

fuzz_target!(|changes: &[u8]| {
    let (mut file, contents) = host();
    for change in changes.chunks_exact(CHANGE) {
        let (place, rest) = change.split_at(2);
        let size = usize::from(rest[0] % 9);
        let at = usize::from(u16::from_le_bytes([place[0], place[1]])) % (file.len() - 8);
        file[at..at + size].copy_from_slice(&rest[1..=size]);
    }
    file.extend(contents);
    for container in containers(&file).flatten() {
        assert!(container.size > 0, "the next one is after it");
        assert!(starts_at(&file, container.offset), "it starts there");
        _ = container_at(&file, container.offset);
    }
    for image in images(&file).flatten() {
        assert!(image.bytes.len() <= file.len());
    }
    for align in [0, 1, 4, 8, u64::MAX] {
        _ = build_id_in(&file, align);
    }
});
