//! `cargo xtask mutants`, which `tools/dev/mutants` starts: the tests notice small changes of the tested code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::process::{cargo, run as run_command, run_quietly};
use crate::{Failure, Outcome, repository, say, target};

const USAGE: &str = "\
Usage: tools/dev/mutants [CARGO_MUTANTS_ARGUMENT...]

Changes validation, encoding, merging and the names of files (.cargo/mutants.toml) in one place at a time,
and runs the tests: some must fail. Prints the share of the changes that the tests notice, and the other
changes with the reasons in tests/mutants.txt. The exit status is 1 if the tests notice fewer than 90 %, or
if an unnoticed change has no reason there.

Takes half an hour on two processors (-j 2). `tools/dev/mutants --shard 0/8` tries an eighth of the changes,
`--file GLOB` those in a file.";

/// The percentage of the changes that the tests must notice.
const REQUIRED: usize = 90;

/// Runs the command.
///
/// # Errors
///
/// Fails if the tests notice too few changes, or if an unnoticed change has no reason.
pub fn run(arguments: &[String]) -> Outcome {
    if let [first, ..] = arguments
        && matches!(first.as_str(), "-h" | "--help")
    {
        say(USAGE);
        return Ok(());
    }
    if !run_quietly(&mut cargo(["mutants", "--version"])) {
        run_command(&mut cargo([
            "install",
            "--quiet",
            "--locked",
            "cargo-mutants",
        ]))?;
    }
    let work = target().join("mutants");
    let read = |path: std::path::PathBuf| {
        fs::read_to_string(&path)
            .map_err(|error| Failure::Check(format!("cannot read {}: {error}", path.display())))
    };
    fs::create_dir_all(&work)
        .map_err(|error| Failure::Check(format!("cannot create {}: {error}", work.display())))?;
    // It copies the sources, and builds them next to the copy.
    let mut mutants = cargo(["mutants", "--output"]);
    mutants.arg(&work).args(arguments);
    let ended = run_command(mutants.env_remove("CARGO_TARGET_DIR"));
    let found = work.join("mutants.out");
    // Its exit status reports changes that no test noticed, too. Without outcomes, it failed.
    if !fs::metadata(found.join("outcomes.json")).is_ok_and(|file| file.len() > 0) {
        ended?;
    }
    let noticed = read(found.join("caught.txt"))? + &read(found.join("timeout.txt"))?;
    let missed = read(found.join("missed.txt"))?;
    let verdict = Verdict::new(&noticed, &missed, &read(repository("tests/mutants.txt"))?);
    say(format_args!("\n{}", verdict.text));
    verdict.outcome
}

/// The result of a run.
#[derive(Debug)]
struct Verdict {
    /// The unnoticed changes with their reasons, and the share of those that are noticed.
    text: String,
    outcome: Outcome,
}

impl Verdict {
    /// Judges changes, one a line, by the file with reasons.
    fn new(noticed: &str, missed: &str, reasons: &str) -> Self {
        let reasons = reasons_of(reasons);
        let names: BTreeSet<_> = missed.lines().map(without_place).collect();
        let mut text = String::new();
        let mut problems = Vec::new();
        for name in &names {
            let _ = writeln!(text, "{name}");
            match reasons.get(name.as_str()) {
                Some(reason) => text += reason,
                None => problems.push(format!("no reason in tests/mutants.txt: {name}")),
            }
        }
        let (noticed, missed) = (noticed.lines().count(), missed.lines().count());
        let all = noticed + missed;
        match (1000 * noticed).checked_div(all) {
            None => problems.push("no change was tried".to_owned()),
            Some(permille) => {
                let _ = write!(
                    text,
                    "{}.{} % of {all} changes are noticed, at least {REQUIRED} % must be",
                    permille / 10,
                    permille % 10
                );
                if permille < 10 * REQUIRED {
                    problems.push(format!(
                        "fewer than {REQUIRED} % of the changes are noticed"
                    ));
                }
            }
        }
        let outcome = if problems.is_empty() {
            Ok(())
        } else {
            Err(Failure::Check(problems.join("\n")))
        };
        Self { text, outcome }
    }
}

/// Returns the name of a change without its line and column, because lines move.
fn without_place(change: &str) -> String {
    let mut parts = change.splitn(4, ':');
    if let (Some(file), Some(line), Some(column), Some(rest)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
        && [line, column]
            .iter()
            .all(|number| number.parse::<u32>().is_ok())
    {
        return format!("{file}:{rest}");
    }
    change.to_owned()
}

/// Returns the reason of each change: the lines in its paragraph that start with two spaces.
fn reasons_of(text: &str) -> BTreeMap<&str, String> {
    let mut reasons = BTreeMap::new();
    for paragraph in text.split("\n\n") {
        let (reason, names): (Vec<_>, Vec<_>) = paragraph
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .partition(|line| line.starts_with("  "));
        let reason: String = reason.iter().map(|line| format!("{line}\n")).collect();
        reasons.extend(names.into_iter().map(|name| (name, reason.clone())));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: &str = "\
# Reasons.

src/a.rs: replace - with + in plain
src/a.rs: replace - with / in plain
  The long way makes
  the same.

src/b.rs: replace f -> u8 with 0
  Nobody sees it.
";

    #[test]
    fn an_unnoticed_change_is_printed_with_the_reason_of_its_paragraph() {
        let noticed = "src/c.rs:1:2: replace x\n".repeat(19);
        let missed = "src/a.rs:30:7: replace - with / in plain\n";
        let verdict = Verdict::new(&noticed, missed, REASONS);
        assert_eq!(verdict.outcome, Ok(()));
        assert_eq!(
            verdict.text,
            "src/a.rs: replace - with / in plain\n  The long way makes\n  the same.\n\
             95.0 % of 20 changes are noticed, at least 90 % must be"
        );
    }

    #[test]
    fn a_change_without_a_reason_fails_whatever_its_share() {
        let noticed = "src/c.rs:1:2: replace x\n".repeat(99);
        let missed = "src/b.rs:1:1: replace f -> u8 with 1\nsrc/b.rs:9:1: replace f -> u8 with 1\n";
        let failure = Verdict::new(&noticed, missed, REASONS).outcome;
        let failure = failure.expect_err("no reason").to_string();
        assert_eq!(
            failure,
            "no reason in tests/mutants.txt: src/b.rs: replace f -> u8 with 1"
        );
    }

    #[test]
    fn nine_in_ten_changes_must_be_noticed() {
        let outcome = |noticed, missed| {
            let noticed = "src/c.rs:1:2: replace x\n".repeat(noticed);
            let missed = "src/b.rs:1:1: replace f -> u8 with 0\n".repeat(missed);
            Verdict::new(&noticed, &missed, REASONS).outcome
        };
        assert_eq!(outcome(9, 1), Ok(()));
        let failure = |text: &str| Err(Failure::Check(text.to_owned()));
        assert_eq!(
            outcome(89, 11),
            failure("fewer than 90 % of the changes are noticed")
        );
        assert_eq!(outcome(0, 0), failure("no change was tried"));
    }

    #[test]
    fn each_reason_of_the_repository_belongs_to_a_change() {
        let text = fs::read_to_string(repository("tests/mutants.txt")).expect("reasons");
        let reasons = reasons_of(&text);
        assert!(!reasons.is_empty());
        for (name, reason) in reasons {
            assert!(!reason.is_empty(), "{name} has no reason");
            assert_eq!(without_place(name), name);
        }
    }
}
