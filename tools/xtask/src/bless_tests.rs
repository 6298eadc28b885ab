//! The table of records against the sources, and what is printed of each.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::repository;

/// Returns the Rust sources of tests, with their texts.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    let mut folders = ["runtime", "src", "tests", "tools"]
        .map(repository)
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                sources.push((path, text));
            }
        }
    }
    sources
}

#[test]
fn each_test_that_compares_records_is_in_the_table() {
    let own = repository("tools/xtask");
    let is_user = |(path, text): &(PathBuf, String)| {
        // The second is of the modelled GPU, which uses nothing of rocov.
        let uses_one =
            text.contains("records::compare(") || text.contains(" compare_record(RECORD");
        uses_one && !path.starts_with(&own)
    };
    let users: Vec<_> = sources().into_iter().filter(is_user).collect();
    let mut unused: BTreeSet<_> = tests().collect();
    for (path, text) in &users {
        let is_of_source = |test: &&str| text.contains(&format!("\nfn {test}() {{"));
        let found: Vec<_> = tests().filter(is_of_source).collect();
        assert!(
            !found.is_empty(),
            "{}: add its test to RECORDS in tools/xtask/src/bless.rs",
            path.display()
        );
        for test in found {
            unused.remove(test);
        }
    }
    assert_eq!(unused, BTreeSet::new(), "tests that compare no records");
}

#[test]
fn a_record_is_selected_by_its_name_alone() {
    let names = |arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(|&word| word.to_owned()).collect();
        let options = Options::parse(&arguments)?.expect("not the help");
        let names: Vec<_> = options.records.iter().map(|record| record.name).collect();
        Ok::<_, Failure>((options.is_check, names))
    };
    assert_eq!(names(&["help", "--check"]), Ok((true, vec!["help"])));
    assert_eq!(names(&["slips", "abi"]), Ok((false, vec!["abi", "slips"])));
    let (is_check, all) = names(&[]).expect("all");
    assert_eq!((is_check, all.len()), (false, RECORDS.len()));
    let failure = names(&["helps"]).expect_err("no such record");
    assert_eq!(failure.status(), 2);
    assert!(
        failure
            .to_string()
            .contains("there is no record or option helps")
    );
}

#[test]
fn the_state_of_a_record_is_that_of_its_files() {
    let state = |log: &str, succeeded| state(&Summary::from_log(log), succeeded);
    let ok = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out\n";
    assert_eq!(state(ok, true), "up to date");
    let log = format!("record written: a\n{ok}");
    assert_eq!(state(&log, true), "1 file written");
    assert_eq!(
        state("record stale: a\nrecord stale: b\n", false),
        "2 files out of date"
    );
    assert_eq!(state("error: could not compile", false), "failed");
    let none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out\n";
    assert!(state(none, true).starts_with("failed: its test was renamed"));
}

#[test]
fn instructions_are_recorded_in_the_release_profile_only() {
    assert!(changes_the_profile("CARGO_PROFILE_RELEASE_OPT_LEVEL"));
    assert!(changes_the_profile("RUSTFLAGS"));
    assert!(!changes_the_profile("CARGO_PROFILE_DEV_DEBUG"));
    let instructions = RECORDS.last().expect("the last record");
    let reason = cannot_run(instructions, &["RUSTFLAGS".to_owned()]);
    assert_eq!(
        reason.as_deref(),
        Some("RUSTFLAGS changes the release profile, for which instructions are recorded")
    );
    assert_eq!(cannot_run(&RECORDS[0], &["RUSTFLAGS".to_owned()]), None);
    let missing = Record {
        tool: Some("no-such-tool"),
        ..record("", "", ["", ""])
    };
    let reason = cannot_run(&missing, &[]);
    assert_eq!(reason.as_deref(), Some("no-such-tool is not installed"));
}

#[test]
fn no_name_of_a_test_is_within_another() {
    let texts: String = sources().into_iter().map(|(_, text)| text).collect();
    for test in tests() {
        let count = texts.matches(&format!("{test}() {{")).count();
        assert_eq!(count, 1, "{test}");
    }
}

#[test]
fn each_test_is_in_its_target() {
    for record in &RECORDS {
        let function = format!("\nfn {}() {{", record.test);
        let found = sources()
            .into_iter()
            .find(|(_, text)| text.contains(&function));
        let (path, _) = found.unwrap_or_else(|| panic!("no source has {}", record.test));
        let is_target =
            |part: &OsStr| part == record.target || *part == *format!("{}.rs", record.target);
        assert!(
            path.iter().any(is_target),
            "{}: {} is not in --test {}",
            record.name,
            path.display(),
            record.target
        );
    }
}
