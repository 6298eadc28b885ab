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
        .map(|line| line.split_once(": ").expect("a name and a part").0)
        .collect();
    assert_eq!(names.len(), lines.len(), "{listed}");
    assert!(names.contains("rccl"), "{listed}");
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
