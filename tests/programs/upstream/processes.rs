//! Several processes.

use std::path::Path;

use super::{Ran, Toolchain};
use crate::support::command::run;
use crate::support::program::{TARGET, device_profiles};

const PROCESSES: u64 = 3;

/// Runs classify this number of times at once, with a drain before each exit. Profiles in `data`
/// have names of this pattern.
fn run_at_once(toolchain: Toolchain, data: &Path, pattern: &str) {
    let program = toolchain.program(&["classify"], &[]);
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                let mut command = program.with_pattern(TARGET, &data.join(pattern));
                run(command.arg("collect")).success().silently();
            });
        }
    });
}

/// One profile for each process, merged by llvm-profdata; and one profile for all processes.
#[test]
fn multi_process_merge() {
    for toolchain in Toolchain::all() {
        for (pattern, files) in [
            ("run.%p.profraw", PROCESSES as usize),
            ("pool.%m.profraw", 1),
        ] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let data = directory.path().join("data");
            run_at_once(toolchain, &data, pattern);
            let profiles = device_profiles(&data);
            assert_eq!(profiles.len(), files, "{profiles:?}");
            let merged = directory.path().join("merged.profdata");
            toolchain.merge(std::slice::from_ref(&data), &merged);
            assert_eq!(
                toolchain.counts(&merged, "_Z8classifyPii"),
                (64 * PROCESSES, vec![0, 32 * PROCESSES]),
                "{pattern}"
            );
        }
    }
}

/// Neither the preloaded library nor the parent starts HSA, or the child would inherit a dead HSA.
#[test]
fn fork_safety() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(toolchain, &toolchain.program(&["children"], &[]), &[]);
        assert_eq!(
            toolchain.counts(&ran.device(), "_Z9incrementPi"),
            (1, vec![])
        );
    }
}
