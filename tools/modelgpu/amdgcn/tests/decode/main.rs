//! Compares the decoder with llvm-objdump. The inputs are the device code of every HIP source that
//! tests run but one, for the targets in turn, at -O0 to -O2 (the programs in testdata/programs at -O1).
//!
//! The test compares the offsets of all instructions, their sizes and their mnemonics without the
//! encoding suffix. For a modelled instruction it also compares the operands. Each printed
//! register, inline constant and literal must have been decoded, in this order; the first register
//! stands for a range. The offsets of memory instructions, displacements of branches and numbers of
//! SOPP must be equal.
//!
//! The test does not compare modifiers (negation, absolute value, op_sel, SDWA's and DPP's
//! controls, clamp), the counters of s_waitcnt, hardware register numbers, cache policy bits and
//! the number of registers in a range. A listing has no plain number for these, or only an
//! execution can get them wrong. It also skips the operands of instructions that are not modelled,
//! because they never run. `testing/tests/instructions` executes every modelled instruction
//! and its modifiers.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

mod objdump;
mod objects;
mod operands;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use modelgpu_amdgcn::{Program, modelled_instructions};

use objects::{Object, objects};

/// Compares one object and returns its number of instructions.
fn compare(object: &Object, file: &Path, modelled: &BTreeSet<&str>) -> usize {
    object.compile(file);
    let bytes = std::fs::read(file).expect("clang's output");
    let program =
        Program::load(&bytes).unwrap_or_else(|error| panic!("{}: {error}", object.name()));
    let mut expected = objdump::listing(file);
    let count = expected.len();
    for (pc, decoded) in program.disassemble() {
        let offset = pc - program.object().base;
        let place = format!("{} at {offset:#x}", object.name());
        let printed = expected.remove(&offset);
        let printed = printed.unwrap_or_else(|| panic!("{place}: there is no {decoded:?}"));
        match decoded {
            Ok(listed) => {
                assert_eq!(
                    (
                        printed.mnemonic.as_str(),
                        printed.second.as_deref(),
                        printed.size
                    ),
                    (listed.mnemonic, listed.second, listed.size.into()),
                    "{place}"
                );
                if modelled.contains(listed.mnemonic) {
                    let difference = operands::difference(&printed, &listed);
                    assert_eq!(difference, None, "{place}: {printed:?}, {listed:?}");
                }
            }
            // llvm-objdump has a name for zeros on RDNA.
            Err(words) => assert!(
                [".long", "v_illegal"].contains(&printed.mnemonic.as_str()),
                "{place}: {words:x?}, {printed:?}"
            ),
        }
    }
    let missed = expected.first_key_value();
    assert!(
        missed.is_none(),
        "{}: not decoded: {missed:x?}",
        object.name()
    );
    count
}

#[test]
fn every_instruction_is_what_objdump_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let modelled = modelled_instructions().into_iter().collect();
    let objects = objects();
    let (next, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The compilers take nearly all of the time.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(object) = objects.get(number) else {
                        break;
                    };
                    let file = directory.path().join(format!("{number}.co"));
                    let count = compare(object, &file, &modelled);
                    compared.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    let (objects, compared) = (objects.len(), compared.into_inner());
    println!("{compared} instructions in {objects} objects agree");
}
