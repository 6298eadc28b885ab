//! The whole way of a user: compile the sample with the flags that `rocov flags` prints, run it
//! under `rocov run`, read `rocov report`.
//!
//! The sample says itself which of its lines never run (comments that start with `never`), and
//! prints how often its loop must have turned.

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, rocov_run, run};
use crate::support::compile::{CLANG, sample};
use crate::support::profile::{COV, functions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 3] = ["main.hip", "statistics.h", "statistics.hip"];

/// Work-items of each kernel: 1000 elements in workgroups of 256.
const WORK_ITEMS: u64 = 1024;
const ELEMENTS: u64 = 1000;

/// A run of the sample: the program, its data directory, what it printed.
struct Ran {
    _directory: tempfile::TempDir,
    program: PathBuf,
    data: PathBuf,
    stdout: String,
}

fn run_sample() -> Ran {
    let mut flags = limited(built("rocov"));
    let flags = run(flags.args(["flags", "--clang", CLANG]))
        .success()
        .stdout;
    let flags: Vec<OsString> = flags.split_whitespace().map(OsString::from).collect();
    let program = sample(&flags);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = rocov_run(Some("model"), &data);
    let stdout = run(command.arg(&program)).success().silently().stdout;
    Ran {
        _directory: directory,
        program,
        data,
        stdout,
    }
}

impl Ran {
    /// What `rocov report` prints with these arguments.
    fn report(&self, arguments: &[&str]) -> String {
        let mut report = limited(built("rocov"));
        report
            .arg("report")
            .arg(&self.data)
            .arg("--object")
            .arg(&self.program);
        run(report.args(arguments)).success().silently().stdout
    }
}

/// A source's lines that never run, counted from 1.
fn never(source: &str) -> Vec<usize> {
    let path = repository("testdata/sample").join(source);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.contains("// never"))
        .map(|(index, _)| index + 1)
        .collect()
}

#[test]
fn the_table_counts_the_lines_that_never_run() {
    let ran = run_sample();
    let table = ran.report(&[]);
    for source in SOURCES {
        let row: Vec<&str> = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|row| row.first().is_some_and(|name| name.ends_with(source)))
            .unwrap_or_else(|| panic!("no {source} in the table:\n{table}"));
        // Name, then total, missed and percentage of regions, of functions and of lines.
        let missed: usize = row[8].parse().expect("missed lines are a number");
        assert_eq!(
            missed,
            never(source).len(),
            "missed lines of {source}:\n{table}"
        );
    }
}

#[test]
fn every_line_is_shown_as_run_exactly_if_it_ran() {
    let ran = run_sample();
    let shown = ran.report(&["--show"]);
    for source in SOURCES {
        let lines = counts_shown(&shown, source);
        let missed: Vec<usize> = lines
            .iter()
            .filter(|(_, count)| count.as_str() == "0")
            .map(|(line, _)| *line)
            .collect();
        assert_eq!(
            missed,
            never(source),
            "lines of {source} shown with 0:\n{shown}"
        );
        assert!(
            lines.len() > missed.len(),
            "nothing of {source} ran:\n{shown}"
        );
    }
}

/// The counts beside a source's lines; a line without a count has no entry.
fn counts_shown(shown: &str, source: &str) -> BTreeMap<usize, String> {
    shown
        .lines()
        .skip_while(|line| !line.ends_with(&format!("/{source}:")))
        .skip(1)
        .take_while(|line| !line.ends_with(':') || line.contains('|'))
        .filter_map(|line| {
            let mut columns = line.split('|');
            let number = columns.next()?.trim().parse().ok()?;
            let count = columns.next()?.trim();
            (!count.is_empty()).then(|| (number, count.to_owned()))
        })
        .collect()
}

#[test]
fn counts_are_those_that_the_program_knows() {
    let ran = run_sample();
    ran.report(&[]);
    let merged = ran.data.join("gfx90a.profdata");

    let functions = functions(&merged);
    let calls = |part: &str| -> u64 {
        let mut matching = functions.iter().filter(|(name, _)| name.contains(part));
        let found = matching
            .next()
            .unwrap_or_else(|| panic!("no {part}: {functions:?}"));
        assert!(matching.next().is_none(), "several {part}");
        found.1.calls
    };
    for kernel in [
        "clean_kernel",
        "steps_kernel",
        "histogram_kernel",
        "block_sums_kernel",
    ] {
        assert_eq!(calls(kernel), WORK_ITEMS, "{kernel}");
    }
    assert_eq!(calls("scale_kernel"), 0);
    assert_eq!(calls("bin_of"), ELEMENTS);
    assert_eq!(calls("clamp_to"), ELEMENTS);

    // "sample: 1000 measurements, 59542 steps, all as on the CPU"
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    let steps = words
        .iter()
        .position(|word| *word == "steps,")
        .unwrap_or_else(|| panic!("no steps in {}", ran.stdout));
    let main = std::fs::read_to_string(repository("testdata/sample/main.hip"))
        .expect("the sample can be read");
    let line = 1 + main
        .lines()
        .position(|line| line.contains("// once per step"))
        .expect("the sample marks its loop");
    let lcov = lcov(&ran.data, &merged);
    let expected = format!("DA:{line},{}", words[steps - 1]);
    assert!(
        lcov.lines().any(|record| record == expected),
        "no {expected}:\n{lcov}"
    );
}

/// Exact counts of lines, from the device ELFs that the report kept.
fn lcov(data: &Path, merged: &Path) -> String {
    let mut export = limited(COV);
    export
        .args(["export", "-format=lcov", "-instr-profile"])
        .arg(merged);
    for entry in std::fs::read_dir(data.join("objects")).expect("the report keeps device ELFs") {
        export.arg("-object").arg(entry.expect("an entry").path());
    }
    run(&mut export).success().silently().stdout
}
