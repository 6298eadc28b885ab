//! `tools/dev/libraries`, as far as it builds nothing: its own run takes hours.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::artifacts::repository;
use crate::support::command::{Ended, limited, run};

fn libraries(arguments: &[&str]) -> Ended {
    let mut command: Command = limited(repository("tools/dev/libraries"));
    run(command.args(arguments))
}

#[test]
fn each_entry_is_listed_with_its_part() {
    let listed = libraries(&["list"]).success().stdout;
    let lines: Vec<_> = listed.lines().collect();
    assert!(lines.len() >= 8, "{listed}");
    let names: BTreeSet<_> = lines
        .iter()
        .map(|line| line.split_once(" (").expect("a name and an origin").0)
        .collect();
    assert_eq!(names.len(), lines.len(), "{listed}");
    assert!(
        listed.contains("rccl (rccl=5.4.3-3): its own build of all-reduce"),
        "{listed}"
    );
    assert!(
        listed.contains("hiprand (ROCm/hipRAND at rocm-6.2.2): "),
        "{listed}"
    );
}

#[test]
fn a_library_without_a_package_asks_for_a_checkout() {
    let output = tempfile::tempdir().expect("a folder");
    let folder = output.path().to_str().expect("a path of text");
    let ended = libraries(&["-o", folder, "hiprand"]).with_status(1);
    assert!(
        ended.stdout.contains(
            "| hiprand |  | not run: give --source hiprand=DIR with a checkout of ROCm/hipRAND at rocm-6.2.2 |"
        ),
        "{}",
        ended.stdout
    );
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, words) in [
        (
            &["nonsense"][..],
            "nonsense is no library; there are: rocprim",
        ),
        (&["-j", "0"], "-j 0: allowed: a number from 1 on"),
        (
            &["--source", "rocprim=/nowhere"],
            "give NAME=DIR with a directory",
        ),
        (&["--wrong"], "see: tools/dev/libraries --help"),
    ] {
        let ended = libraries(arguments).with_status(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}
