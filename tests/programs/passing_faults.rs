//! Faults of the file system that pass, and those that stay: only what no later drain makes good is a loss, and each error
//! gets the advice that solves it.

use std::path::PathBuf;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::Compilation;
use crate::support::gpu::{Stack, data};
use crate::support::profile::raw_profiles;
use crate::support::program::{Program, TARGET, counts};

/// Calls and loop turns in one launch of the kernel.
const CALLS: u64 = 256;
const BRANCHES: u64 = 64;

/// `ENOSPC` of Linux.
const NO_SPACE: i32 = 28;

/// Runs a program that launches, drains, launches and ends, while this number of renames fail with `error`. Returns the
/// profiles of the run.
fn ran(failing: u32, error: i32) -> (Ended, tempfile::TempDir, Vec<PathBuf>) {
    let program = Program::build(Stack::usual(), &["endings/endings.hip"], &[], &["-ldl"]);
    let source = repository("tests/programs/failing_renames.c");
    let shim = Compilation::by("clang-22")
        .arguments(["-Wall", "-Wextra", "-O1", "-shared", "-fPIC"])
        .source(&source)
        .output("libfailing_renames.so");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let mut command = limited(built("rocov"));
    command
        .args(["run", "--strict", "--gpu"])
        .arg(format!("model:{TARGET}"));
    command.arg("-o").arg(&data).args(["--", "sh", "-c"]);
    command.arg(format!("{} 'drain, return'; true", program.file.display()));
    command.env("LD_PRELOAD", shim);
    command.env("FAILING_RENAMES", format!("{failing} {error}"));
    let ended = run(&mut command);
    let profiles = raw_profiles(&data.join("profraw"));
    (ended, directory, profiles)
}

#[test]
fn what_a_later_drain_writes_is_no_loss() {
    let (ended, _directory, profiles) = ran(1, NO_SPACE);
    let ended = ended.success();
    assert!(!ended.stderr.contains("lost"), "{ended}");
    // The program has asked for the drain that failed, and its status says so.
    assert!(
        ended
            .stderr
            .contains(": counts are not written yet: cannot make "),
        "{ended}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended}");
    let [profile] = &profiles[..] else {
        panic!("{profiles:?}: {ended}")
    };
    assert_eq!(counts(profile, "counted"), (2 * CALLS, vec![2 * BRANCHES]));
}

#[test]
fn what_no_drain_writes_is_a_loss_with_advice() {
    for (error, advice) in [
        (NO_SPACE, "make room"),
        (24, "raise the limit on open files (ulimit -n)"),
        (27, "raise the file size limit (ulimit -f)"),
        (
            5,
            "look for disk errors in `dmesg`, and choose another place",
        ),
        (30, "choose a place that is not read-only"),
        (13, "make the place writable"),
    ] {
        let (ended, _directory, profiles) = ran(1000, error);
        assert_eq!(profiles, Vec::<PathBuf>::new(), "{ended}");
        let end = format!("(os error {error}); {advice}, and run the program again");
        let ended = ended
            .with_status(3)
            .says(&[": counts are lost: cannot make ", &end]);
        assert!(
            ended
                .stderr
                .ends_with("rocov: counts are lost: see the lines above\n"),
            "{ended}"
        );
    }
}
