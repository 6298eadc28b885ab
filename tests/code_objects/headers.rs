//! A code object with each field of its headers, dynamic entries, symbols and notes at the bounds of what a file, a word
//! or a pointer holds. Nothing panics, whatever of it is read.

use object::elf::{
    Dyn64, FileHeader64, NoteHeader32, PT_NOTE, ProgramHeader64, SHT_DYNAMIC, SHT_DYNSYM, SHT_RELA,
    SHT_SYMTAB, SectionHeader64, Sym64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, elf};
use rocov::format::bundle::{containers, images};
use rocov::format::codeobject::cuda::{laid_out, with_sections};
use rocov::format::codeobject::{CodeObject, Identity, without_host_functions};

use crate::kinds;

/// The fields of the structures of ELF-64, by offset and size in bytes.
type Fields = &'static [(usize, usize)];

const FILE: Fields = &[
    (16, 2),
    (20, 4),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (52, 2),
    (54, 2),
    (56, 2),
    (58, 2),
    (60, 2),
    (62, 2),
];
const SEGMENT: Fields = &[
    (0, 4),
    (4, 4),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 8),
];
const SECTION: Fields = &[
    (0, 4),
    (4, 4),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 4),
    (44, 4),
    (48, 8),
    (56, 8),
];
const SYMBOL: Fields = &[(0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8)];
const DYNAMIC: Fields = &[(0, 8), (8, 8)];
const RELOCATION: Fields = &[(0, 8), (8, 8), (16, 8)];
const NOTE: Fields = &[(0, 4), (4, 4), (8, 4)];

fn bounds(len: usize) -> [u64; 9] {
    let len = len as u64;
    [
        0,
        1,
        len - 1,
        len,
        len + 1,
        1 << 31,
        1 << 32,
        1 << 63,
        u64::MAX,
    ]
}

/// The places and the sizes of all fields.
fn fields(file: &[u8]) -> Vec<(usize, usize)> {
    let header = FileHeader64::<LittleEndian>::parse(file).unwrap();
    let segments = header.program_headers(LittleEndian, file).unwrap();
    let sections = header.section_headers(LittleEndian, file).unwrap();
    let mut tables: Vec<(usize, usize, usize, Fields)> = vec![
        (0, 1, size_of::<elf::FileHeader64<LittleEndian>>(), FILE),
        (
            header.e_phoff.get(LittleEndian) as usize,
            segments.len(),
            size_of::<ProgramHeader64<LittleEndian>>(),
            SEGMENT,
        ),
        (
            header.e_shoff.get(LittleEndian) as usize,
            sections.len(),
            size_of::<SectionHeader64<LittleEndian>>(),
            SECTION,
        ),
    ];
    for section in sections {
        let (size, fields) = match section.sh_type(LittleEndian) {
            SHT_DYNSYM | SHT_SYMTAB => (size_of::<Sym64<LittleEndian>>(), SYMBOL),
            SHT_DYNAMIC => (size_of::<Dyn64<LittleEndian>>(), DYNAMIC),
            SHT_RELA => (24, RELOCATION),
            _ => continue,
        };
        let (start, len) = section.file_range(LittleEndian).unwrap();
        // Symbols are alike.
        let number = (len as usize / size).min(12);
        tables.push((start as usize, number, size, fields));
    }
    for segment in segments {
        if segment.p_type(LittleEndian) == PT_NOTE {
            let start = segment.p_offset(LittleEndian) as usize;
            tables.push((start, 1, size_of::<NoteHeader32<LittleEndian>>(), NOTE));
        }
    }
    let tables = tables.into_iter();
    let all = tables.flat_map(|(start, number, size, fields)| {
        let entries = (0..number).map(move |index| start + size * index);
        entries.flat_map(move |entry| fields.iter().map(move |(at, size)| (entry + at, *size)))
    });
    all.collect()
}

/// Reads everything in a code object.
fn read(file: &[u8]) {
    let most = file.len();
    for container in containers(file).flatten() {
        assert!(container.offset <= most && container.size > 0);
    }
    assert!(
        images(file)
            .flatten()
            .all(|image| image.bytes.len() <= most)
    );
    _ = Identity::from_image(file);
    _ = without_host_functions(file);
    _ = laid_out(file);
    let file = with_sections(file);
    let Ok(elf) = CodeObject::parse(&*file) else {
        return;
    };
    _ = (elf.build_id(), elf.target(), elf.clang_version());
    _ = (elf.compiler(), elf.is_mapped(), elf.copies_tables());
    _ = (elf.sections(), elf.profile_sections());
    _ = (elf.variables(b"__prof"), elf.variable(b"__profd_"));
    _ = elf.constant_segments(4096);
    _ = (elf.memory(), elf.mapped_functions());
    if let Ok(kernels) = elf.kernels() {
        _ = elf.sources(kernels.iter().map(|kernel| kernel.name.as_str()));
    }
}

#[test]
fn a_field_at_a_bound_is_no_panic() {
    let whole = std::fs::read(kinds("clang++-22", "gfx90a", 5)).unwrap();
    let fields = fields(&whole);
    assert!(fields.len() > 300, "{}", fields.len());
    let mut file = whole.clone();
    for (at, size) in fields {
        for value in bounds(whole.len()) {
            file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            read(&file);
        }
        file[at..at + size].copy_from_slice(&whole[at..at + size]);
    }
    assert!(file == whole);
}
