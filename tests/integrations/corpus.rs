//! `tools/dev/corpus`, as far as it downloads nothing: its own run takes half an hour.

use std::process::Command;

use crate::support::artifacts::repository;
use crate::support::command::{Ended, limited, run};

fn corpus(arguments: &[&str]) -> Ended {
    let mut command: Command = limited(repository("tools/dev/corpus"));
    run(command.args(arguments))
}

#[test]
fn each_package_is_listed_with_its_code() {
    let listed = corpus(&["list"]).success().stdout;
    for package in ["librocblas4=", "librccl1=", "bitsandbytes=="] {
        assert!(listed.contains(package), "{listed}");
    }
    for line in listed.lines() {
        assert_eq!(line.matches(": ").count(), 2, "{line}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, words) in [
        (
            &["nonsense"][..],
            "nonsense is no entry; there are: rocblas",
        ),
        (&["-o"], "-o: give a directory"),
        (&["--wrong"], "--wrong: allowed: -o DIR"),
        (
            &["run", "nonsense"],
            "nonsense is no program; there are: rocblas, rocrand, rocsparse",
        ),
    ] {
        let ended = corpus(arguments).with_status(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}
