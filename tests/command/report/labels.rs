//! `--label`: the counts of some tests only, by llvm-cov on their profiles.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::report::parts::totals;
use crate::report::per_test::{Labelled, SHARED};

/// The totals of `rocov report` with these options.
fn reported(place: &Place, options: &[&str]) -> Value {
    let mut command = place.command();
    let output = command.arg("--json").args(options).output().unwrap();
    assert_eq!(stderr(&output), "");
    json(output.stdout)["data"][0]["totals"].clone()
}

#[test]
fn a_report_of_labels_has_the_figures_of_llvm_cov_on_their_profiles() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let shared = labelled.add(&SHARED.1, SHARED.0);
    let Labelled { place, elf } = labelled;
    let [scale, add, _] = [0, 1, 2].map(|index: usize| profiles[index].as_path());
    let shared = shared.as_path();
    for (options, profiles) in [
        (&["--label=add"][..], &[add, shared][..]),
        (&["--label", "unit tests/scale"], &[scale, shared]),
        (&["--label", "unit*/*"], &[scale, shared]),
        (
            &["--label=add", "--label=unit tests/**"],
            &[add, scale, shared],
        ),
    ] {
        let expected = totals(&place, &elf, profiles);
        assert_eq!(reported(&place, options), expected, "{options:?}");
    }
    let table = stdout(&place.report(&[&"--label=add"]));
    assert!(
        table.starts_with("gfx90a: 2 profiles of 1 code object\n"),
        "{table}"
    );
}

#[test]
fn code_that_the_labels_did_not_launch_counts_as_zeros() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let Labelled { place, elf } = labelled;
    let other = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&other);
    let written = place.profile(&other, "gfx90a", 0, 5);
    let moved = place.data().join("labels/other");
    fs::create_dir(&moved).unwrap();
    fs::rename(&written, moved.join(written.file_name().unwrap())).unwrap();

    let of_label = totals(&place, &elf, &[&profiles[1]]);
    let zeros = place.profile(&other, "gfx90a", 0, 0);
    let of_others = totals(&place, &other, &[&zeros]);
    fs::remove_file(zeros).unwrap();
    assert_eq!(of_others["lines"]["covered"], 0);
    let found = reported(&place, &["--label=add"]);
    for what in ["lines", "functions", "regions"] {
        for part in ["count", "covered"] {
            let sum = [&of_label, &of_others].map(|totals| totals[what][part].as_u64().unwrap());
            assert_eq!(found[what][part], sum.iter().sum::<u64>(), "{what} {part}");
        }
    }
    let table = stdout(&place.report(&[&"--label=add"]));
    let heading = "gfx90a: 1 profile of 2 code objects, 1 never launched\n";
    assert!(table.starts_with(heading), "{table}");
}

#[test]
fn a_label_that_no_profile_has_is_an_error_that_lists_those_that_some_have() {
    let labelled = Labelled::new();
    labelled.add_all();
    let output = labelled.place.report(&[&"--label=add", &"--label=sub*"]);
    assert_eq!(
        failure(&output, 1),
        "rocov: no profile in rocov-data has the label sub*: use one of these labels: add, unit \
         tests/scale\n"
    );
    let labelled = Labelled::new();
    labelled.add(&crate::report::per_test::TESTS[0].1, "");
    let output = labelled.place.report(&[&"--label=add"]);
    let message = failure(&output, 1);
    assert!(message.contains("rocov run --label NAME"), "{message}");
}

/// The lines that ran in one of two sets of counts only.
fn changed(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> [Vec<u32>; 2] {
    let ran = |counts: &BTreeMap<u32, u64>, line| counts[line] > 0;
    let lines = |from, to| {
        let lines = before.keys().filter(|key| !ran(from, key) && ran(to, key));
        lines.copied().collect()
    };
    [lines(before, after), lines(after, before)]
}

#[test]
fn two_labels_of_one_directory_are_compared() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let [scale, add] = [0, 1].map(|index: usize| labelled.lines(&[&profiles[index]]));
    let [gained, lost] = changed(&scale, &add);
    assert!(!gained.is_empty() && !lost.is_empty());
    let diff = |arguments: &[&str]| {
        let mut command = rocov();
        command.current_dir(labelled.place.path()).arg("diff");
        command.args(arguments).output().unwrap()
    };
    let labels = ["--label", "unit tests/scale", "--label", "add"];
    let output = diff(&[&["rocov-data", "--json"], &labels[..]].concat());
    assert_eq!(stderr(&output), "");
    let found: Value = json(output.stdout);
    assert_eq!(found["before"], "rocov-data, label unit tests/scale");
    assert_eq!(found["after"], "rocov-data, label add");
    assert_eq!(found["lines"][0]["newly_covered"], json!(gained));
    assert_eq!(found["lines"][0]["newly_missed"], json!(lost));
    // The labels of two directories are those of both.
    let output = diff(&["rocov-data", "rocov-data", "--json", "--label=add"]);
    assert_eq!(stderr(&output), "");
    assert_eq!(json(output.stdout)["lines"], json!([]));
    for wrong in [
        &["rocov-data"][..],
        &["rocov-data", "--label=add"],
        &["rocov-data", "--label=a", "--label=b", "--label=c"],
    ] {
        let output = diff(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        let message = stderr(&output);
        assert!(message.contains("name AFTER, or two labels"), "{message}");
        assert!(message.contains("Usage: rocov diff"), "{message}");
    }
    fs::write(labelled.place.path().join("saved.json"), "{}").unwrap();
    let output = diff(&["rocov-data", "saved.json", "--label=add"]);
    let message = failure(&output, 1);
    assert!(
        message.contains("saved.json is a report, which contains no labels"),
        "{message}"
    );
}
