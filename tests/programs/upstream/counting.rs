//! The contents of profiles: every function, and the exact counts.

use super::{RDC, Ran, program};
use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::gpu::Stack;
use crate::support::profile::functions;
use crate::support::program::{Program, counts};

/// The output of `rocov report` for a run.
#[track_caller]
fn report(ran: &Ran, program: &Program) -> String {
    let mut report = limited(built("rocov"));
    report.arg("report").arg(&ran.data);
    report.arg("--object").arg(&program.file);
    run(&mut report).success().silently().stdout
}

#[test]
fn device_basic() {
    for stack in Stack::all() {
        for rdc in RDC {
            let program = program(stack, &["step"], &[rdc]);
            let ran = Ran::one(&program, &[]);
            let merged = ran.merged();
            assert_eq!(counts(&merged, "_Z4stepPi"), (1, vec![1]), "{rdc}");
            assert_eq!(counts(&merged, "main").0, 1, "{rdc}");
            assert!(report(&ran, &program).contains("TOTAL"), "{rdc}");
        }
    }
}

#[test]
fn symbols() {
    for stack in Stack::all() {
        for rdc in RDC {
            let program = program(stack, &["step"], &[rdc]);
            let ran = Ran::one(&program, &[]);
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
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["square"], &[]), &[]);
        let device = functions(&ran.device());
        assert_eq!(device.len(), 1, "{device:?}");
        assert_eq!(counts(&ran.device(), "_Z6squarePiPKii"), (64, vec![64]));
        assert_eq!(counts(&ran.host(), "main").0, 1);
    }
}

#[test]
fn counter_correctness() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["classify"], &[]), &[]);
        assert_eq!(counts(&ran.merged(), "_Z8classifyPii"), (64, vec![0, 32]));
    }
}

#[test]
fn coverage() {
    for stack in Stack::all() {
        let program = program(stack, &["magnitude"], &[]);
        let ran = Ran::one(&program, &[]);
        let table = report(&ran, &program);
        let row = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|row| row.first().is_some_and(|it| it.ends_with("magnitude.hip")))
            .unwrap_or_else(|| panic!("no magnitude.hip in the table:\n{table}"));
        let covered: Vec<&str> = row.into_iter().filter(|it| it.ends_with('%')).collect();
        // Regions, functions and lines; all branches but one, because no work-item is beyond the
        // count.
        let expected = ["100.00%", "100.00%", "100.00%", "75.00%"];
        assert_eq!(covered, expected, "{table}");
    }
}

#[test]
fn branching() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["histogram"], &[]), &[]);
        let merged = ran.merged();
        assert_eq!(counts(&merged, "_Z9histogramPKiPii"), (256, vec![256]));
        // 85 are above 100, 85 of the others above 0.
        let bin = functions(&merged)
            .into_iter()
            .find(|(name, _)| name.ends_with("_Z3bini"))
            .expect("bin is counted");
        assert_eq!((bin.1.calls, bin.1.blocks), (256, vec![85, 85]));
        assert_eq!(counts(&merged, "main").0, 1);
    }
}

#[test]
fn multiple_kernels() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["three"], &[]), &[]);
        let device = functions(&ran.device());
        assert_eq!(device.len(), 3, "{device:?}");
        let merged = ran.merged();
        assert_eq!(counts(&merged, "_Z4fillPii"), (16, vec![]));
        assert_eq!(counts(&merged, "_Z5scalePii"), (16, vec![]));
        assert_eq!(counts(&merged, "_Z6negatePii"), (16, vec![16]));
        assert_eq!(counts(&merged, "main").0, 1);
    }
}
