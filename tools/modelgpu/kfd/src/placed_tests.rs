use modelgpu_amdgcn::code_object::PlacedCode;
use modelgpu_amdgcn::memory::Arena;

use super::*;

/// The bytes of code of each file.
const CODE: usize = 0x100;

fn code(byte: u8) -> Vec<u8> {
    vec![byte; CODE]
}

fn from_file(base: u64, byte: u8) -> Origin {
    Origin::Program(PlacedCode {
        file: code(byte),
        sections: vec![CodeSection {
            address: 0,
            file: 0..CODE,
        }],
        base,
    })
}

fn run(trace: &Trace, address: u64, waves: u64) {
    let lanes = 32 * waves;
    trace.add([(address, Executed { waves, lanes })].into_iter());
}

/// The words of a file from `at` on with their waves, of four words.
fn waves_at(placed: &Placed, trace: &Trace, file: u64, at: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let address = PLACED | file << FILE_BITS | at;
    placed.read(trace, address, 4, |word, executed| {
        assert_eq!(executed.lanes, 32 * executed.waves);
        found.push((word, executed.waves));
    });
    found
}

fn waves(placed: &Placed, trace: &Trace, file: u64) -> Vec<(u64, u64)> {
    waves_at(placed, trace, file, 0x40)
}

fn numbers(placed: &Placed) -> Vec<(u64, u8)> {
    let files = placed.files().into_iter();
    files.map(|(number, _, file)| (number, file[0])).collect()
}

#[test]
fn counts_stay_with_the_file_when_its_memory_goes() {
    let (placed, trace) = (Placed::default(), Trace::default());
    let mut memory = Arena::new();
    let at = memory.allocate(&code(1));
    assert!(!placed.see(0, &trace, &memory, at, || from_file(at, 1)));
    run(&trace, at + 0x44, 2);
    assert_eq!(waves(&placed, &trace, 0), [(1, 2)]);
    placed.gone(&trace, at, CODE as u64);
    assert_eq!(waves(&placed, &trace, 0), [(1, 2)]);

    // Another kernel comes to the same place, and the first one comes back elsewhere.
    memory.write(at, &code(2));
    let other = memory.allocate(&code(1));
    assert!(!placed.see(0, &trace, &memory, at, || from_file(at, 2)));
    assert!(!placed.see(0, &trace, &memory, other, || from_file(other, 1)));
    run(&trace, at + 0x48, 5);
    run(&trace, other + 0x44, 3);
    assert_eq!(waves(&placed, &trace, 0), [(1, 5)]);
    assert_eq!(waves(&placed, &trace, 1), [(2, 5)]);
    assert_eq!(numbers(&placed), [(0, 1), (1, 2)]);

    placed.forget(&trace, PLACED | 0x40, 4);
    assert_eq!(waves(&placed, &trace, 0), []);
    assert_eq!(waves(&placed, &trace, 1), [(2, 5)]);
}

#[test]
fn files_may_share_an_allocation() {
    let (placed, trace) = (Placed::default(), Trace::default());
    let mut memory = Arena::new();
    let first = memory.allocate(&[code(1), code(2)].concat());
    let second = first + CODE as u64;
    placed.see(0, &trace, &memory, first, || from_file(first, 1));
    placed.see(0, &trace, &memory, second, || from_file(second, 2));
    // A further kernel of a file that is known.
    let inside = second + 0x20;
    assert!(!placed.see(0, &trace, &memory, inside, || unreachable!("it is known")));
    run(&trace, first + 0xfc, 2);
    run(&trace, second, 3);
    // The four words from the last two of the first file on are not all its own.
    assert_eq!(waves_at(&placed, &trace, 0, 0xf8), [(1, 2)]);
    assert_eq!(waves_at(&placed, &trace, 1, 0), [(0, 3)]);
    placed.forget(&trace, PLACED | 0xf8, 4);
    assert_eq!(waves_at(&placed, &trace, 0, 0xf8), []);
    assert_eq!(waves_at(&placed, &trace, 1, 0), [(0, 3)]);
}

#[test]
fn code_over_other_code_has_counts_of_its_own() {
    let (placed, trace) = (Placed::default(), Trace::default());
    let mut memory = Arena::new();
    let at = memory.allocate(&code(1));
    placed.see(0, &trace, &memory, at, || from_file(at, 1));
    run(&trace, at + 0x40, 2);
    memory.write(at, &code(2));
    placed.see(0, &trace, &memory, at, || from_file(at, 2));
    run(&trace, at + 0x40, 7);
    assert_eq!(waves(&placed, &trace, 0), [(0, 2)]);
    assert_eq!(waves(&placed, &trace, 1), [(0, 7)]);
    assert_eq!(numbers(&placed), [(0, 1), (1, 2)]);
}

/// The code on each GPU has its own counts, as each load of a code object has.
#[test]
fn each_gpu_has_its_own_counts() {
    let (placed, trace) = (Placed::default(), Trace::default());
    let mut memory = Arena::new();
    let (first, second) = (memory.allocate(&code(1)), memory.allocate(&code(1)));
    placed.see(0, &trace, &memory, first, || from_file(first, 1));
    placed.see(1, &trace, &memory, second, || from_file(second, 1));
    run(&trace, first + 0x40, 1);
    run(&trace, second + 0x40, 2);
    assert_eq!(waves(&placed, &trace, 0), [(0, 1)]);
    assert_eq!(waves(&placed, &trace, 1), [(0, 2)]);
}

#[test]
fn an_unknown_origin_is_reported_once_for_each_kernel() {
    let (placed, trace) = (Placed::default(), Trace::default());
    let mut memory = Arena::new();
    let at = memory.allocate(&code(9));
    assert!(placed.see(0, &trace, &memory, at, || Origin::Unknown));
    assert!(!placed.see(0, &trace, &memory, at, || unreachable!("it is known")));
    assert!(placed.see(0, &trace, &memory, at + 0x80, || Origin::Unknown));
    assert!(placed.files().is_empty());
    run(&trace, at + 0x40, 4);

    // The counts of unknown code do not belong to a file that comes to its place.
    memory.write(at, &code(1));
    assert!(!placed.see(0, &trace, &memory, at, || from_file(at, 1)));
    run(&trace, at + 0x44, 1);
    assert_eq!(waves(&placed, &trace, 0), [(1, 1)]);

    let loaded = memory.allocate(&code(3));
    assert!(!placed.see(0, &trace, &memory, loaded, || Origin::Loader));
    assert!(!placed.see(0, &trace, &memory, loaded + 4, || unreachable!(
        "it is known"
    )));
}
