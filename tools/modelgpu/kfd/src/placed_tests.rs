use modelgpu_amdgcn::code_object::PlacedCode;

use super::*;

fn region(base: u64) -> Region {
    Region {
        base,
        len: 0x1000,
        host: std::ptr::null_mut(),
    }
}

fn from_file(base: u64, byte: u8) -> Origin {
    Origin::Program(PlacedCode {
        file: vec![byte; 8],
        base,
        size: 0x1000,
    })
}

fn run(trace: &Trace, address: u64, waves: u64) {
    let lanes = 32 * waves;
    trace.add([(address, Executed { waves, lanes })].into_iter());
}

fn waves(placed: &Placed, trace: &Trace, file: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    placed.read(
        trace,
        PLACED | file << FILE_BITS | 0x40,
        4,
        |word, executed| {
            assert_eq!(executed.lanes, 32 * executed.waves);
            found.push((word, executed.waves));
        },
    );
    found
}

#[test]
fn counts_stay_with_the_file_when_its_memory_goes() {
    let (placed, trace) = (Placed::default(), Trace::default());
    assert!(!placed.see(0, &region(0x7000), || from_file(0x7000, 1)));
    run(&trace, 0x7044, 2);
    assert_eq!(waves(&placed, &trace, 0), [(1, 2)]);
    placed.gone(&trace, 0x7000, 0x1000);
    assert_eq!(waves(&placed, &trace, 0), [(1, 2)]);

    // Another kernel comes to the same place, and the first one comes back elsewhere.
    assert!(!placed.see(0, &region(0x7000), || from_file(0x7000, 2)));
    assert!(!placed.see(0, &region(0x9000), || from_file(0x9000, 1)));
    run(&trace, 0x7048, 5);
    run(&trace, 0x9044, 3);
    assert_eq!(waves(&placed, &trace, 0), [(1, 5)]);
    assert_eq!(waves(&placed, &trace, 1), [(2, 5)]);
    let files: Vec<_> = placed
        .files()
        .into_iter()
        .map(|(n, _, file)| (n, file[0]))
        .collect();
    assert_eq!(files, [(0, 1), (1, 2)]);

    placed.forget(&trace, PLACED | 0x40, 4);
    assert_eq!(waves(&placed, &trace, 0), []);
    assert_eq!(waves(&placed, &trace, 1), [(2, 5)]);
}

/// The code on each GPU has its own counts, as each load of a code object has.
#[test]
fn each_gpu_has_its_own_counts() {
    let (placed, trace) = (Placed::default(), Trace::default());
    placed.see(0, &region(0x7000), || from_file(0x7000, 1));
    placed.see(1, &region(0x8000), || from_file(0x8000, 1));
    run(&trace, 0x7040, 1);
    run(&trace, 0x8040, 2);
    assert_eq!(waves(&placed, &trace, 0), [(0, 1)]);
    assert_eq!(waves(&placed, &trace, 1), [(0, 2)]);
}

#[test]
fn an_unknown_origin_is_reported_once() {
    let placed = Placed::default();
    assert!(placed.see(0, &region(0x7000), || Origin::Unknown));
    assert!(!placed.see(0, &region(0x7000), || unreachable!("it is known")));
    assert!(!placed.see(0, &region(0x8000), || Origin::Loader));
    assert!(placed.files().is_empty());
}
