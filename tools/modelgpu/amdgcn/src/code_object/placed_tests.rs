use super::*;
use crate::memory::Arena;

/// Files in memory.
struct Given(Vec<Vec<u8>>);

impl Files for Given {
    fn visit(&self, is_it: &mut dyn FnMut(&[u8]) -> bool) {
        let _ = self.0.iter().any(|file| is_it(file));
    }
}

/// An ELF file with a section of code for each pair of an address and the code.
fn elf(sections: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\x40");
    let mut headers = Vec::new();
    for (address, code) in sections {
        let start = file.len() as u64;
        file.extend_from_slice(code);
        let mut header = vec![0; 64];
        // SHT_PROGBITS; SHF_ALLOC and SHF_EXECINSTR.
        for (at, value) in [(4, 1), (8, 6), (16, *address), (24, start)] {
            header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        header[32..40].copy_from_slice(&(code.len() as u64).to_le_bytes());
        headers.extend(header);
    }
    let table = file.len() as u64;
    file.extend(headers);
    file[18] = 224;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[58] = 64;
    file[60] = sections.len() as u8;
    file
}

fn code(seed: u8, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u8).wrapping_mul(7) ^ seed)
        .collect()
}

/// The base and the first byte of the code of the file with the code at `entry`.
fn found(memory: &Arena, files: &Given, entry: u64) -> Option<(u64, u8)> {
    match Origin::find(memory, files, entry) {
        Origin::Program(placed) => Some((placed.base, placed.file[64])),
        Origin::Loader => panic!("no loader"),
        Origin::Unknown => None,
    }
}

#[test]
fn files_that_share_an_allocation_are_found_at_their_places() {
    let (first, second, third) = (code(1, 300), code(2, 600), code(3, 40));
    let files = Given(vec![
        elf(&[(0, &first)]),
        elf(&[(0x1000, &second), (0x1400, &third)]),
    ]);
    let mut memory = vec![0; 0x4000];
    memory[..300].copy_from_slice(&first);
    memory[0x2100..0x2100 + 600].copy_from_slice(&second);
    memory[0x2500..0x2500 + 40].copy_from_slice(&third);
    let mut arena = Arena::new();
    let at = arena.allocate(&memory);
    assert_eq!(found(&arena, &files, at), Some((at, first[0])));
    assert_eq!(found(&arena, &files, at + 0x80), Some((at, first[0])));
    let base = at + 0x1100;
    for entry in [0x2100, 0x2200, 0x2500, 0x2524] {
        assert_eq!(
            found(&arena, &files, at + entry),
            Some((base, second[0])),
            "{entry:#x}"
        );
    }
    // Between them, and after a change of the second section.
    assert_eq!(found(&arena, &files, at + 0x200), None);
    arena.write(at + 0x2527, &[0xff]);
    assert_eq!(found(&arena, &files, at + 0x2100), None);
}

/// Numbers without a pattern (a linear congruential generator).
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 1_u64;
    move || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        state ^ state >> 29
    }
}

#[test]
fn damaged_files_are_not_found_and_end_nothing() {
    let code = code(1, 600);
    let whole = elf(&[(0x1000, &code), (0x2000, &code[..64])]);
    let mut memory = vec![0; 0x4000];
    memory[0x1000..0x1000 + 600].copy_from_slice(&code);
    memory[0x2000..0x2040].copy_from_slice(&code[..64]);
    let mut arena = Arena::new();
    let entry = arena.allocate(&memory) + 0x1000;
    assert!(found(&arena, &Given(vec![whole.clone()]), entry).is_some());
    let mut number = numbers();
    for case in 0..20_000 {
        let mut file = whole.clone();
        match case % 4 {
            // All after the header, or all but the magic and the machine.
            0 => file[64..].fill_with(|| number() as u8),
            1 => file[20..].fill_with(|| number() as u8),
            // A field of a section header, or of the header.
            2 => {
                let at = file.len() - 128 + 8 * (number() as usize % 16);
                let shift = number() % 64;
                file[at..at + 8].copy_from_slice(&(u64::MAX << shift).to_le_bytes());
            }
            _ => {
                let at = 16 + 2 * (number() as usize % 24);
                file[at..at + 2].copy_from_slice(&(number() as u16).to_le_bytes());
            }
        }
        file.truncate(file.len() - (number() as usize % 2) * (number() as usize % 700));
        // It may still be the file.
        let _ = found(&arena, &Given(vec![file]), entry);
    }
}
