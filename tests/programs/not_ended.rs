//! A drain never ends the program or a thread of it, not even with messages that nobody reads,
//! files above the program's limit, or cancelled threads.

use std::path::Path;

use crate::support::artifacts::names;
use crate::support::command::{Ended, run};
use crate::support::gpu::{Stack, data};
use crate::support::json::json;
use crate::support::program::{Program, TARGET, counts, device_profiles};

/// Calls of the kernel in one launch.
const CALLS: u64 = 256;

/// Runs testdata/programs/guest/limits under rocov to its end and expects its own status.
fn limits(what: &str, data: &Path) -> Ended {
    // ROCr 7.2.4 itself prints at its end: with and without rocov, SIGPIPE ends the program then, or a
    // full pipe blocks it.
    let stack = match what {
        "unread" | "full" => Stack::Debian12,
        _ => Stack::usual(),
    };
    let libraries = ["-ldl", "-pthread"];
    let program = Program::build(stack, &["guest/limits.hip"], &[], &libraries);
    let mut command = program.under_rocov(TARGET, data);
    let ended = run(command.arg(what).env("ROCOV_VERBOSE", "1")).with_status(3);
    assert_eq!(ended.stdout, "to its end\n", "{ended}");
    ended
}

#[track_caller]
fn assert_launches(data: &Path, launches: u64) {
    let profiles = device_profiles(data);
    assert_eq!(profiles.len(), 1, "{profiles:?}");
    assert_eq!(counts(&profiles[0], "counted").0, launches * CALLS);
}

fn is_counted(what: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    limits(what, &data);
    assert_launches(&data, 2);
}

/// As in `program 2>&1 | head`.
#[test]
fn lines_that_nobody_reads_any_more_are_nothing() {
    is_counted("unread");
    is_counted("pending");
}

#[test]
fn a_full_pipe_is_not_waited_for_for_ever() {
    is_counted("full");
}

#[test]
fn a_file_above_the_limit_is_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let ended = limits("large", &data);
    let lines = ended.stderr.lines();
    let lost: Vec<_> = lines
        .filter(|line| line.contains("counts are lost: "))
        .collect();
    assert_eq!(lost.len(), 1, "{ended}");
    assert!(lost[0].contains("File too large"), "{ended}");
    // There are no partial files: rocov kept the device ELFs before the limit was set. `rocov run`, which has no
    // limit, records that the counts are lost.
    assert_eq!(names(&data), ["objects", "profraw", "registry"], "{ended}");
    let registries = names(&data.join("registry"));
    assert_eq!(registries.len(), 1, "{ended}");
    let registry = std::fs::read_to_string(data.join("registry").join(&registries[0]));
    let registry = json(registry.expect("a registry"));
    let process = &registry["processes"][0];
    assert_eq!(process["loads"], json("[]"), "{ended}");
    let note = process["notes"][0].as_str().expect("a note");
    assert!(note.contains("they are lost"), "{ended}");
    assert_eq!(names(&data.join("profraw")), [""; 0], "{ended}");
}

#[test]
fn a_thread_is_cancelled_in_its_own_code() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    limits("cancel", &data);
    assert_launches(&data.join("profraw/labels/of_a_thread"), 1);
    assert_launches(&data, 2);
}
