//! A kernel that tests run as far as they can has 100 % of everything, if what they cannot run is excluded.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::gpu::{Stack, data};
use crate::support::json::json;
use crate::support::program::{Program, TARGET};

const SOURCE: &str = "exclusions/exclusions.hip";
/// The figures that a gate can ask for.
const GATES: [&str; 4] = ["lines", "functions", "regions", "branches"];
const BY_NAME: &str = "--exclude-function=^dump_state";

fn report(data: &Path, options: &[&str]) -> Ended {
    let mut report = limited(built("rocov"));
    run(report.arg("report").arg(data).args(options))
}

/// The lines of the source that have the mark of one of these rules.
fn marked(rules: &[&str]) -> BTreeSet<u64> {
    let path = repository("testdata/programs").join(SOURCE);
    let text = std::fs::read_to_string(path).expect("the source");
    let marked = (1..).zip(text.lines()).filter(|(_, line)| {
        let mark = line.split("// excluded: ").nth(1);
        mark.is_some_and(|mark| rules.iter().any(|rule| mark.contains(rule)))
    });
    marked.map(|(number, _)| number).collect()
}

/// The lines that a report excludes.
fn excluded(data: &Path, options: &[&str]) -> BTreeSet<u64> {
    let report = report(data, &[&["--json"], options].concat()).success();
    let report = json(&report.stdout);
    let files = report["rocov"]["columns"][0]["excluded_lines"].as_object();
    let lines = files.into_iter().flat_map(|files| files.values());
    let lines = lines.flat_map(|lines| lines.as_array().expect("lines").iter());
    lines.map(|line| line.as_u64().expect("a number")).collect()
}

#[test]
fn code_that_is_excluded_is_not_missed() {
    let program = Program::build(Stack::usual(), &[SOURCE], &[], &["-O1"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    run(&mut program.under_rocov(TARGET, &data)).success();

    let gates = GATES.map(|what| format!("--fail-under-{what}=100"));
    let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
    report(&data, &[&gates[..], &[BY_NAME]].concat())
        .success()
        .says(&[]);
    let gate = 3;
    report(&data, &gates).with_status(gate);
    report(
        &data,
        &[&gates[..], &[BY_NAME, "--no-default-exclusions"]].concat(),
    )
    .with_status(gate);
    report(&data, &[&gates[..], &[BY_NAME, "--as-llvm-cov"]].concat()).with_status(gate);

    let by_comment = ["EXCL_", "comment"];
    let default = ["default"];
    let all = marked(&[&by_comment[..], &default, &["function"]].concat());
    assert_eq!(excluded(&data, &[BY_NAME]), all);
    let no_name = marked(&[&by_comment[..], &default].concat());
    assert_eq!(excluded(&data, &[]), no_name);
    assert_eq!(
        excluded(&data, &["--no-default-exclusions"]),
        marked(&by_comment)
    );
    assert_eq!(excluded(&data, &["--as-llvm-cov"]), BTreeSet::new());
    let debugging = ["--exclude-line=return value", "--no-default-exclusions"];
    let returns = excluded(&data, &debugging);
    assert_eq!(returns.len(), marked(&by_comment).len() + 2);

    // Formats leave the lines out; annotated source marks them.
    let lcov = report(&data, &["--lcov", BY_NAME]).success().stdout;
    let lines: BTreeSet<u64> = lcov
        .lines()
        .filter_map(|line| line.strip_prefix("DA:"))
        .map(|line| line.split(',').next().expect("a number"))
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert!(lines.is_disjoint(&all), "{lcov}");
    let shown: BTreeSet<u64> = report(&data, &["--show", BY_NAME])
        .success()
        .stdout
        .lines()
        .filter(|line| line.contains("|   excl|"))
        .map(|line| line.split('|').next().expect("a number").trim())
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert_eq!(shown, all);

    let most = format!("--fail-excluded-lines={}", all.len());
    report(&data, &[BY_NAME, &most]).success();
    let fewer = format!("--fail-excluded-lines={}", all.len() - 1);
    let why = format!("{} lines excluded, more than {}", all.len(), all.len() - 1);
    report(&data, &[BY_NAME, &fewer])
        .with_status(gate)
        .says(&[&why]);
}
