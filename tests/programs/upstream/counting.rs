//! The contents of profiles: every function, and the exact counts.

use std::path::Path;

use super::{RDC, Ran, Toolchain};
use crate::support::command::{limited, run};
use crate::support::program::Program;

/// The output of `rocov report` for a run.
#[track_caller]
fn report(ran: &Ran, program: &Program) -> String {
    ran.toolchain
        .report(&[&ran.data, Path::new("--object"), &program.file])
}

#[test]
fn device_basic() {
    for toolchain in Toolchain::all() {
        for rdc in RDC {
            let program = toolchain.program(&["step"], &[rdc]);
            let ran = Ran::one(toolchain, &program, &[]);
            let merged = ran.merged();
            assert_eq!(
                toolchain.counts(&merged, "_Z4stepPi"),
                (1, vec![1]),
                "{rdc}"
            );
            assert_eq!(toolchain.counts(&merged, "main").0, 1, "{rdc}");
            assert!(report(&ran, &program).contains("TOTAL"), "{rdc}");
        }
    }
}

#[test]
fn symbols() {
    for toolchain in Toolchain::all() {
        for rdc in RDC {
            let program = toolchain.program(&["step"], &[rdc]);
            let ran = Ran::one(toolchain, &program, &[]);
            report(&ran, &program);
            let side = ran.data.with_extension("rocov");
            let objects = std::fs::read_dir(side.join("objects"));
            for entry in objects.expect("device ELFs are kept") {
                let mut readelf = limited("llvm-readelf-22");
                readelf
                    .arg("--dyn-syms")
                    .arg(entry.expect("an entry").path());
                let symbols = run(&mut readelf).success().silently().stdout;
                let is_table = |line: &str| {
                    line.contains(" PROTECTED ") && line.ends_with(" __llvm_profile_sections")
                };
                assert!(symbols.lines().any(is_table), "{rdc}: {symbols}");
            }
        }
    }
}

#[test]
fn basic() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(toolchain, &toolchain.program(&["square"], &[]), &[]);
        let device = toolchain.functions(&ran.device());
        assert_eq!(device.len(), 1, "{device:?}");
        assert_eq!(
            toolchain.counts(&ran.device(), "_Z6squarePiPKii"),
            (64, vec![64])
        );
        assert_eq!(toolchain.counts(&ran.host(), "main").0, 1);
    }
}

#[test]
fn counter_correctness() {
    for toolchain in Toolchain::all() {
        let program = toolchain.program_with_uniformity(&["classify"]);
        let ran = Ran::one(toolchain, &program, &[]);
        let merged = ran.merged();
        assert_eq!(
            toolchain.counts(&merged, "_Z8classifyPii"),
            (64, vec![0, 32])
        );
        if toolchain.newest.is_some() {
            // No work-item of the wave returns early; half of them take the branch.
            let shown = toolchain.shown(&merged, "_Z8classifyPii");
            assert!(shown.contains("Block uniformity: [U, D]"), "{shown}");
        }
    }
}

#[test]
fn coverage() {
    for toolchain in Toolchain::all() {
        let program = toolchain.program(&["magnitude"], &[]);
        let ran = Ran::one(toolchain, &program, &[]);
        let table = report(&ran, &program);
        let row = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|row| {
                row.first()
                    .is_some_and(|name| name.ends_with("magnitude.hip"))
            })
            .unwrap_or_else(|| panic!("no magnitude.hip in the table:\n{table}"));
        let covered: Vec<&str> = row.into_iter().filter(|cell| cell.ends_with('%')).collect();
        // Regions, functions and lines; all branches but one, because no work-item is beyond the
        // count.
        let expected = ["100.00%", "100.00%", "100.00%", "75.00%"];
        assert_eq!(covered, expected, "{table}");
    }
}

#[test]
fn branching() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(toolchain, &toolchain.program(&["histogram"], &[]), &[]);
        let merged = ran.merged();
        assert_eq!(
            toolchain.counts(&merged, "_Z9histogramPKiPii"),
            (256, vec![256])
        );
        // Clang keeps a record of a function that is only inlined. Upstream's test expects none, because LLVM's drain
        // leaves out device functions that the host does not register.
        let device = toolchain.functions(&ran.device());
        assert_eq!(device.len(), 2, "{device:?}");
        // 85 are above 100, 85 of the others above 0.
        let bin = toolchain
            .functions(&merged)
            .into_iter()
            .find(|(name, _)| name.ends_with("_Z3bini"))
            .expect("bin is counted");
        assert_eq!((bin.1.calls, bin.1.blocks), (256, vec![85, 85]));
        assert_eq!(toolchain.counts(&merged, "main").0, 1);
    }
}

#[test]
fn multiple_kernels() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(toolchain, &toolchain.program(&["three"], &[]), &[]);
        let device = toolchain.functions(&ran.device());
        assert_eq!(device.len(), 3, "{device:?}");
        let merged = ran.merged();
        assert_eq!(toolchain.counts(&merged, "_Z4fillPii"), (16, vec![]));
        assert_eq!(toolchain.counts(&merged, "_Z5scalePii"), (16, vec![]));
        assert_eq!(toolchain.counts(&merged, "_Z6negatePii"), (16, vec![16]));
        assert_eq!(toolchain.counts(&merged, "main").0, 1);
    }
}
