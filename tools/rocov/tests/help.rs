//! The help texts are what users read: a change of them is a change to look at.
//!
//! `ROCOV_UPDATE_SNAPSHOTS=1 cargo test -p rocov-cli --test help` writes them anew.

mod common;

use common::{rocov, run, stdout};
use std::env;
use std::fs;
use std::path::Path;

/// All commands that have options.
const COMMANDS: [&str; 10] = [
    "run", "report", "diff", "merge", "kernels", "export", "extract", "show", "flags", "doctor",
];

/// Compares what `rocov ARGUMENTS` prints with the file `snapshots/NAME.txt`.
fn compare(name: &str, arguments: &[&str]) {
    // As for a pipe in CI; clap would wrap at the width of a terminal that COLUMNS gives.
    let found = stdout(&run(rocov().args(arguments).env_remove("COLUMNS")));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(format!("{name}.txt"));
    if env::var_os("ROCOV_UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs", path.display());
}

#[test]
fn help_is_as_reviewed() {
    compare("rocov", &["--help"]);
    for command in COMMANDS {
        compare(command, &[command, "--help"]);
    }
}

#[test]
fn the_readme_shows_the_short_help() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    for command in COMMANDS {
        let help = stdout(&run(rocov().args([command, "-h"]).env_remove("COLUMNS")));
        let (_, usage) = help.split_once("\n\n").unwrap();
        let (usage, _) = usage
            .split_once("\n\nExit status")
            .unwrap_or((usage.trim_end(), ""));
        assert!(
            readme.contains(usage),
            "README.md lacks the help of rocov {command}:\n{usage}"
        );
    }
}
