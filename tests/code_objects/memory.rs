//! Program headers that do not match the file. The library rejects such a code object, which is
//! laid out as if it were loaded, and names the problem.

use object::LittleEndian;
use object::elf::PT_LOAD;
use object::read::elf::{ElfFile64, ProgramHeader};
use rocov::format::codeobject::CodeObject;

use crate::kinds;

/// Changes a word of each loadable segment, and returns the error.
fn message(word: usize, value: u64) -> String {
    let mut image = std::fs::read(kinds("clang++-22", "gfx90a", 4)).expect("a code object");
    let elf = ElfFile64::<LittleEndian>::parse(image.as_slice()).expect("an ELF");
    let headers = elf.elf_program_headers().iter();
    let loaded = headers.map(|header| header.p_type(LittleEndian) == PT_LOAD);
    // The program headers follow the ELF header of 64 bytes; each has 56.
    let places: Vec<usize> = loaded
        .enumerate()
        .filter(|(_, is_loaded)| *is_loaded)
        .map(|(place, _)| 64 + 56 * place)
        .collect();
    for place in places {
        image[place + word..][..8].copy_from_slice(&value.to_le_bytes());
    }
    let code_object = CodeObject::parse(image.as_slice()).expect("good headers");
    code_object.memory().expect_err("damage").to_string()
}

#[test]
fn segments_that_are_not_there() {
    let [offset, address, in_file, in_memory] = [8, 16, 32, 40];
    let cut = "a segment of the code object is cut short";
    for value in [1 << 20, u64::MAX] {
        assert_eq!(message(offset, value), cut);
        assert_eq!(message(in_file, value), cut);
    }
    assert_eq!(message(in_memory, 0), cut);
    let oversized = "the code object needs more than 0x80000000 bytes of memory";
    for value in [(2 << 30) + 1, u64::MAX] {
        assert_eq!(message(address, value), oversized);
        assert_eq!(message(in_memory, value), oversized);
    }
}
