//! The help texts are what users read: a change of them is a change to look at.
//!
//! `ROCOV_UPDATE_SNAPSHOTS=1 cargo test -p rocov-cli --test help` writes them anew.

mod common;

use common::{rocov, run, stderr, stdout};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// All commands that have options.
const COMMANDS: [&str; 16] = [
    "run",
    "dump",
    "status",
    "report",
    "which",
    "diff",
    "merge",
    "kernels",
    "export",
    "clean",
    "extract",
    "show",
    "flags",
    "doctor",
    "completions",
    "man",
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

#[test]
fn bash_completes_commands_and_options() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rocov.bash");
    let script = stdout(&run(rocov().args(["completions", "bash"])));
    fs::write(&file, script).unwrap();
    // As bash does for TAB: the function that is registered gets the command and the word to complete.
    let complete = |before: &str, word: &str, number: usize| {
        let script = format!(
            "source {}; function=$(complete -p rocov | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
             COMP_WORDS=(rocov {before} {word}); COMP_CWORD={number}; \
             $function rocov {word} rocov; echo ${{COMPREPLY[@]}}",
            file.display()
        );
        stdout(&run(Command::new("bash").args(["--norc", "-c", &script])))
    };
    assert_eq!(complete("", "rep", 1), "report\n");
    assert_eq!(
        complete("report", "--fail-under-l", 2),
        "--fail-under-lines\n"
    );
    for shell in ["zsh", "fish"] {
        let script = stdout(&run(rocov().args(["completions", shell])));
        assert!(script.contains("fail-under-lines"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    run(rocov().arg("man").arg(&pages));
    for command in COMMANDS
        .map(|command| format!("rocov-{command}"))
        .iter()
        .chain([&"rocov".to_owned()])
    {
        let page = pages.join(format!("{command}.1"));
        let mut man = Command::new("groff");
        let output = run(man.args(["-man", "-Tutf8", "-ww", "-z"]).arg(&page));
        assert_eq!(stderr(&output), "", "{}", page.display());
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{text}");
    }
}
