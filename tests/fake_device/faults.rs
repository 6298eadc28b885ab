//! A message names each fault in a code object, and no other code object loses counts.

use std::fs;

use rocov::device::Device;
use rocov::drain::{Idle, Outcome, Scope, Session};

use crate::support::fake_device::FakeDevice;
use crate::{FIRST, SAXPY, SECOND, VECADD, collatz, counts, loaded, merged, output};

const COLLATZ: &str = "_Z7collatzPKjPjjj";
const MIB: u64 = 1 << 20;

/// Words of the section bounds table.
const NAMES_START: u64 = 0;
const COUNTERS_START: u64 = 2;
const COUNTERS_STOP: u64 = 3;
const DATA_START: u64 = 4;
const DATA_STOP: u64 = 5;
const VERSION: u64 = 6;

/// Drains vecadd, broken by `break_it`, together with a good collatz. Returns vecadd's outcome;
/// collatz must have its exact counts.
fn outcome_beside(break_it: impl FnOnce(&mut FakeDevice)) -> Outcome {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    let (_, size) = device.find(SECOND, &format!("__profc_{COLLATZ}"));
    let count: Vec<u64> = (1..=size / 8).collect();
    device.count(SECOND, COLLATZ, &count);
    break_it(&mut device);
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    let outcome = session.drain(&device, &name);
    assert_eq!(outcome.files.len(), 1, "{:?}", outcome.losses);
    assert_eq!(counts(&merged(directory.path()), COLLATZ), count);
    outcome
}

/// The only line about vecadd, without its origin.
fn loss(break_it: impl FnOnce(&mut FakeDevice)) -> String {
    let outcome = outcome_beside(break_it);
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let line = loss.to_string();
    let (place, what) = line
        .split_once(" on gfx90a 0: ")
        .expect("the code object is named");
    assert!(
        place.starts_with("memory://1#offset=0x7f0000000000&size="),
        "{line}"
    );
    what.to_owned()
}

/// Changes a word of vecadd's table.
fn set(device: &FakeDevice, word: u64, change: impl FnOnce(u64) -> u64) -> u64 {
    let (table, _) = device.find(FIRST, "__llvm_profile_sections");
    let at = table + 8 * word;
    let old = u64::from_le_bytes(device.peek(at, 8).try_into().unwrap());
    let new = change(old);
    device.poke(at, &new.to_le_bytes());
    new
}

#[test]
fn a_table_that_lies_is_refused_with_field_value_and_limit() {
    // The ELF is gone, so only the table leads to the sections.
    let loss = |break_it: &mut dyn FnMut(&FakeDevice)| {
        loss(|device| {
            device.images_gone = true;
            break_it(device);
        })
    };
    let segment = |device: &FakeDevice| {
        use rocov::device::Device;
        device.code_objects(FIRST).unwrap()[0].segment
    };

    let mut words = (0, 0);
    let line = loss(&mut |device| {
        let stop = set(device, COUNTERS_STOP, |old| old);
        words = (set(device, COUNTERS_START, |_| stop + 8), stop);
    });
    let (start, stop) = words;
    assert_eq!(
        line,
        format!(
            "counts are lost: the counters section ends before it starts: {start:#x}..{stop:#x}; build it again"
        )
    );

    let line = loss(&mut |device| {
        let start = set(device, DATA_START, |old| old);
        set(device, DATA_STOP, |_| start + 256 * MIB + 64);
    });
    assert_eq!(
        line,
        "counts are lost: the data section has 268435520 bytes, at most 268435456 are allowed; build it again"
    );

    let line = loss(&mut |device| {
        set(device, DATA_STOP, |old| old - 8);
    });
    assert_eq!(
        line,
        "counts are lost: the data section has 120 bytes, not a multiple of 64; build it again"
    );

    let line = loss(&mut |device| {
        set(device, COUNTERS_STOP, |old| old - 1);
    });
    assert_eq!(
        line,
        "counts are lost: the counters section has 31 bytes, not a multiple of 8; build it again"
    );

    let mut expected = String::new();
    let line = loss(&mut |device| {
        let start = set(device, NAMES_START, |old| old - 0x10_0000);
        let stop = set(device, NAMES_START + 1, |old| old);
        expected = format!(
            "counts are lost: the names section {start:#x}..{stop:#x} is not inside the loaded \
             segment {}; build it again",
            segment(device)
        );
    });
    assert_eq!(line, expected);

    let mut expected = String::new();
    let line = loss(&mut |device| {
        set(device, VERSION, |_| 0x10);
        expected = format!(
            "counts are lost: the version word's address 0x10 is not inside the loaded segment {}; build it again",
            segment(device)
        );
    });
    assert_eq!(line, expected);

    let line = loss(&mut |device| {
        let start = set(device, DATA_START, |old| old);
        set(device, COUNTERS_STOP, |_| start + 8);
    });
    assert!(
        line.starts_with("counts are lost: the counters section 0x")
            && line.contains(" overlaps the data section 0x"),
        "{line}"
    );
}

#[test]
fn a_table_that_disagrees_with_the_elf_costs_nothing() {
    let (directory, name) = output();
    let device = loaded();
    device.count(FIRST, VECADD, &[64, 60]);
    let (start, stop) = (
        set(&device, DATA_START, |old| old),
        set(&device, DATA_STOP, |old| old),
    );
    set(&device, DATA_STOP, |old| old - 64);
    let outcome = Session::default().drain(&device, &name);
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let expected = format!(
        "__llvm_profile_sections places the data section at {start:#x}..{:#x}, but the ELF's section headers place it \
        at {start:#x}..{stop:#x}; rocov uses the headers; build it again",
        stop - 64
    );
    assert!(loss.to_string().ends_with(&expected), "{loss}");
    assert_eq!(counts(&merged(directory.path()), VECADD), [64, 60]);
}

#[test]
fn records_that_share_counters_are_told_apart() {
    let (directory, name) = output();
    let device = loaded();
    device.count(FIRST, VECADD, &[64, 60]);
    device.count(FIRST, SAXPY, &[7, 3]);
    let (first, _) = device.find(FIRST, &format!("__profd_{VECADD}"));
    let (second, _) = device.find(FIRST, &format!("__profd_{SAXPY}"));
    let (lower, higher) = (first.min(second), first.max(second));
    let pointer = u64::from_le_bytes(device.peek(lower + 16, 8).try_into().unwrap());
    // The counters of the first record, claimed by the other record.
    device.poke(
        higher + 16,
        &pointer.wrapping_sub(higher - lower).to_le_bytes(),
    );
    let outcome = Session::default().drain(&device, &name);
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    assert!(
        loss.to_string().contains("record 1 (name hash 0x"),
        "{loss}"
    );
    let expected =
        "claims the counters of record 0 at byte 0; its counts are left out; build it again";
    assert!(loss.to_string().ends_with(expected), "{loss}");
    let left = if lower == first {
        (VECADD, [64, 60])
    } else {
        (SAXPY, [7, 3])
    };
    let functions = merged(directory.path());
    assert_eq!(functions.len(), 1, "{functions:?}");
    assert_eq!(counts(&functions, left.0), left.1);
}

#[test]
fn a_version_before_the_first_is_refused_by_its_number() {
    for (word, number) in [(7_u64, 7), (1 << 56 | 5, 5), (0, 0)] {
        let line = loss(|device| {
            let at = set(device, VERSION, |old| old);
            device.poke(at, &word.to_le_bytes());
        });
        assert_eq!(
            line,
            format!(
                "counts are lost: unknown raw profile version {number}, expected 8 to 11; compile with clang 15 or \
                later, or use a newer rocov"
            )
        );
    }
}

#[test]
fn a_failing_copy_is_named() {
    let line = loss(|device| device.break_reads(FIRST));
    assert_eq!(
        line,
        "counts are lost: hsa_memory_copy failed with status 0x1000; run the program again"
    );
}

#[test]
fn a_record_that_points_outside_costs_only_its_own_counts() {
    let (directory, name) = output();
    let device = loaded();
    device.count(FIRST, VECADD, &[64, 60]);
    device.count(FIRST, SAXPY, &[7, 3]);
    let (record, _) = device.find(FIRST, &format!("__profd_{VECADD}"));
    let name_hash = u64::from_le_bytes(device.peek(record, 8).try_into().unwrap());
    // Its counter pointer, relative to the record.
    device.poke(record + 16, &0x1234_5678_u64.to_le_bytes());
    let mut session = Session::default();
    let outcome = session.drain(&device, &name);

    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let line = loss.to_string();
    assert!(
        line.contains(&format!(
            "(name hash {name_hash:#018x}) claims 16 bytes at byte"
        )),
        "{line}"
    );
    assert!(
        line.ends_with("counters section of 32 bytes; its counts are left out; build it again"),
        "{line}"
    );
    let functions = merged(directory.path());
    assert_eq!(counts(&functions, SAXPY), [7, 3]);
    assert!(!functions.contains_key(VECADD), "{functions:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_tried_again() {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    device.count(FIRST, VECADD, &[3, 1]);
    let files = session.drain(&device, &name).files;
    fs::remove_file(&files[0]).unwrap();
    fs::create_dir(&files[0]).unwrap();
    device.count(FIRST, VECADD, &[1, 0]);

    let outcome = session.drain(&device, &name);
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let expected = format!("cannot replace {}: ", files[0].display());
    assert!(loss.to_string().contains(&expected), "{loss}");
    assert_eq!(outcome.files, files[1..]);

    fs::remove_dir(&files[0]).unwrap();
    let outcome = session.drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(counts(&merged(directory.path()), VECADD), [4, 1]);
}

/// A marked code object keeps its mark alongside one that cannot be marked. rocov reads it again only
/// if it may have counted more.
#[test]
fn what_cannot_be_read_has_nothing_else_read_again() {
    let (_directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    device.break_reads(FIRST);
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    let agent = device.agents().unwrap()[0].handle;
    let (first, _) = device.find(FIRST, &format!("__profc_{VECADD}"));
    let (second, _) = device.find(SECOND, &format!("__profc_{COLLATZ}"));
    let mut mark = |moment| {
        device.reads.borrow_mut().clear();
        let idle = Idle::from([(agent, moment)]);
        let outcome = session.mark(&device, &name, Scope::Unlabelled, &idle);
        assert_eq!(outcome.losses.len(), 1, "{:?}", outcome.losses);
        let reads = device.reads.borrow();
        [first, second].map(|counters| {
            let has = |(at, len): &(u64, usize)| (*at..at + *len as u64).contains(&counters);
            reads.iter().any(has)
        })
    };
    assert_eq!(mark(7), [true, true]);
    assert_eq!(mark(7), [true, false]);
    assert_eq!(mark(8), [true, true]);
}
