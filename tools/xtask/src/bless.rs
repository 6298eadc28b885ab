//! `cargo xtask bless`: the records that tests compare.
//!
//! A record is a file that a test makes again and compares with the committed one, through
//! `rocov_tests::records::compare`. `RECORDS` names these tests. They write their records if `ROCOV_BLESS` is set.

use std::collections::BTreeSet;
use std::io::{Write, sink};

use crate::log::{Summary, stale};
use crate::process::{cargo, is_here, run as run_command, run_logged};
use crate::{Failure, Outcome, say};

/// A kind of records, and the test that compares them.
struct Record {
    name: &'static str,
    what: &'static str,
    /// The test target of cargo.
    target: &'static str,
    /// The test's function. No other test has this name in its own.
    test: &'static str,
    /// A program that the test needs, which may not be here.
    tool: Option<&'static str>,
}

/// The records. The ones that others are made from come first.
const RECORDS: [Record; 8] = [
    record(
        "header",
        "runtime/include/rocov.h",
        ["header", "the_committed_header_is_the_generated_one"],
    ),
    record(
        "abi",
        "the symbols and declarations of librocov: new ones are added",
        [
            "abi",
            "nothing_that_programs_rely_on_changes_within_a_series",
        ],
    ),
    record("help", "help texts", ["command", "help_is_as_reviewed"]),
    record(
        "slips",
        "the answers to slips of a user",
        ["command", "each_slip_gets_a_message_that_helps"],
    ),
    record(
        "chapters",
        "the generated chapters of the book",
        ["docs", "generated_chapters_are_up_to_date"],
    ),
    record(
        "action",
        "the summary and annotations of the action for GitHub",
        [
            "integrations",
            "a_pull_request_has_a_summary_annotations_and_a_gate",
        ],
    ),
    record(
        "evidence",
        "the evidence for each opcode of the modelled GPU",
        ["instructions", "evidence_is_as_recorded"],
    ),
    Record {
        tool: Some("valgrind"),
        ..record(
            "instructions",
            "the instructions and calls of a load, an unload, a drain, an exit and a merge",
            ["instructions", "no_more_instructions_than_recorded"],
        )
    },
];

const fn record(name: &'static str, what: &'static str, test: [&'static str; 2]) -> Record {
    let [target, test] = test;
    Record {
        name,
        what,
        target,
        test,
        tool: None,
    }
}

/// Returns the names of the tests that compare records.
pub fn tests() -> impl Iterator<Item = &'static str> {
    RECORDS.iter().map(|record| record.test)
}

fn usage() -> String {
    let mut text = "\
Usage: cargo xtask bless [--check] [RECORD...]

Writes the files that tests compare with what they make anew: all, or only those of each RECORD. Then look
at the difference, and commit it with its cause.

  --check  write nothing, and list the files that are out of date

The records:

"
    .to_owned();
    for record in &RECORDS {
        text += &format!("  {:13} {}\n", record.name, record.what);
    }
    text + "\n`tools/dev/picture` makes the README's picture, which no test compares."
}

/// The options of a command line.
struct Options {
    is_check: bool,
    records: Vec<&'static Record>,
}

impl Options {
    /// Reads a command line. `None` asks for help.
    fn parse(arguments: &[String]) -> Outcome<Option<Self>> {
        let mut is_check = false;
        let mut names = BTreeSet::new();
        for argument in arguments {
            match argument.as_str() {
                "-h" | "--help" => return Ok(None),
                "--check" => is_check = true,
                name if RECORDS.iter().any(|record| record.name == name) => {
                    names.insert(name);
                }
                other => {
                    return Err(Failure::Usage(format!(
                        "cargo xtask bless: there is no record or option {other}\n\n{}",
                        usage()
                    )));
                }
            }
        }
        let is_wanted = |record: &&Record| names.is_empty() || names.contains(record.name);
        let records = RECORDS.iter().filter(is_wanted).collect();
        Ok(Some(Self { is_check, records }))
    }
}

/// Runs the command.
///
/// # Errors
///
/// Fails if a record is out of date (`--check`), or cannot be made.
pub fn run(arguments: &[String]) -> Outcome {
    let Some(options) = Options::parse(arguments)? else {
        say(usage());
        return Ok(());
    };
    // Without this package: a build of its own.
    let build = ["build", "--release", "--workspace", "--exclude", "xtask"];
    run_command(&mut cargo(build))?;
    compare(&options, &mut sink())
}

/// Checks all records of the built workspace. The output of their tests goes to a log.
///
/// # Errors
///
/// Fails if a record is out of date, or cannot be made.
pub fn check(log: &mut dyn Write) -> Outcome {
    let options = Options {
        is_check: true,
        records: RECORDS.iter().collect(),
    };
    compare(&options, log)
}

/// Runs the tests of records.
fn compare(options: &Options, log: &mut dyn Write) -> Outcome {
    let targets: BTreeSet<_> = options.records.iter().map(|record| record.target).collect();
    // At once, so that cargo compiles them side by side.
    run_command(cargo_test().arg("--no-run").args(target_arguments(targets)))?;
    let (mut written, mut outdated, mut failed) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for record in &options.records {
        if let Some(reason) = cannot_run(record, &profile_variables()) {
            say(format_args!("{:13} not run: {reason}", record.name));
            let _ = writeln!(log, "not run: the record {}: {reason}", record.name);
            continue;
        }
        let mut test = cargo_test();
        test.args(["--quiet", "--no-fail-fast"])
            .args(target_arguments([record.target]))
            .args(["--", record.test]);
        // A stale record is no bug: its test needs no backtrace.
        test.env("RUST_BACKTRACE", "0");
        if options.is_check {
            test.env_remove("ROCOV_BLESS");
        } else {
            test.env("ROCOV_BLESS", "1");
        }
        let mut output = Vec::new();
        let succeeded = run_logged(&mut test, &mut output)?;
        let _ = log.write_all(&output);
        let text = String::from_utf8_lossy(&output);
        let summary = Summary::from_log(&text);
        say(format_args!(
            "{:13} {}",
            record.name,
            state(&summary, succeeded)
        ));
        if !succeeded {
            say(text.trim_end());
        }
        if summary.stale.is_empty() && (!succeeded || summary.passed == 0) {
            failed.push(record.name);
        }
        written.extend(summary.written);
        outdated.extend(summary.stale);
    }
    if !written.is_empty() {
        let paths: Vec<_> = written.into_iter().collect();
        say(format_args!(
            "\nWritten:\n{}\nLook at the difference.",
            paths.join("\n")
        ));
    }
    let mut problems = Vec::new();
    if !failed.is_empty() {
        problems.push(format!("no record was made: {}", failed.join(", ")));
    }
    if !outdated.is_empty() {
        problems.push(stale(&outdated));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::Check(problems.join("\n")))
}

/// Returns the state of a record after its test.
fn state(summary: &Summary, succeeded: bool) -> String {
    let files = |count| match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    if !summary.stale.is_empty() {
        return format!("{} out of date", files(summary.stale.len()));
    }
    if !succeeded {
        return "failed".to_owned();
    }
    if summary.passed == 0 {
        return "failed: its test was renamed: change RECORDS in tools/xtask/src/bless.rs"
            .to_owned();
    }
    match summary.written.len() {
        0 => "up to date".to_owned(),
        count => format!("{} written", files(count)),
    }
}

/// Returns why a record cannot be made here.
fn cannot_run(record: &Record, profile: &[String]) -> Option<String> {
    let tool = record.tool?;
    if let Some(variable) = profile.first() {
        return Some(format!(
            "{variable} changes the release profile, for which instructions are recorded"
        ));
    }
    (!is_here(tool)).then(|| format!("{tool} is not installed"))
}

/// Returns the names of variables that change how cargo compiles a release.
fn profile_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| changes_the_profile(name)).collect()
}

fn changes_the_profile(name: &str) -> bool {
    name.starts_with("CARGO_PROFILE_RELEASE_") || name.ends_with("RUSTFLAGS")
}

/// Returns the start of a command that tests parts of the workspace. Other packages' features would compile them again, so
/// that it selects all packages.
fn cargo_test() -> std::process::Command {
    cargo(["test", "--release", "--workspace"])
}

/// Returns cargo's options for some test targets.
fn target_arguments<'a>(targets: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    targets
        .into_iter()
        .flat_map(|target| ["--test", target])
        .collect()
}

#[cfg(test)]
#[path = "bless_tests.rs"]
mod tests;
