//! Data sets that are damaged or of another version, and runs that cannot be imported.

use std::fs;
use std::path::PathBuf;

use rocov_tests::cli::{failure, stderr, stdout};

use crate::dataset::{COMMIT, Fleet};

/// The one file of a table.
fn file(fleet: &Fleet, table: &str) -> PathBuf {
    let mut path = fleet.path("set").join(table);
    while path.is_dir() {
        path = fs::read_dir(path).unwrap().next().unwrap().unwrap().path();
    }
    path
}

#[test]
fn damage_is_one_line_that_names_the_file() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    fleet.import(&["run1"]);
    let report = || fleet.output(&["report", "set", "--json"]);
    let whole = stdout(&report());
    for table in ["run", "profile", "counter", "code_object"] {
        let path = file(&fleet, table);
        let bytes = fs::read(&path).unwrap();
        for damaged in [&bytes[..bytes.len() / 2], &bytes[..0], b"PAR1 no more"] {
            fs::write(&path, damaged).unwrap();
            let message = failure(&report(), 1);
            let name = path.strip_prefix(fleet.place.path()).unwrap().display();
            assert!(
                message.starts_with(&format!("rocov: {name} is damaged: ")),
                "{table}: {message}"
            );
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(stdout(&report()), whole);
}

#[test]
fn a_missing_file_is_one_line_that_names_it() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    fleet.import(&["run1"]);
    let report = || fleet.output(&["report", "set", "--json", "--where", "arch=gfx90a"]);
    let whole = stdout(&report());
    for table in ["profile", "counter"] {
        let path = file(&fleet, table);
        let kept = fleet.path("kept");
        fs::rename(&path, &kept).unwrap();
        let name = path.strip_prefix(fleet.place.path()).unwrap().display();
        // Also if the report has the counts of another arch only.
        assert_eq!(
            failure(&report(), 1),
            format!(
                "rocov: {name} is missing: restore it from a copy, or import the runs into a new data set\n"
            )
        );
        fs::rename(&kept, &path).unwrap();
    }
    let tables = ["profile", "counter"].map(|table| fleet.path(&format!("set/{table}")));
    let all = tables.each_ref().map(|table| table.with_extension("kept"));
    let renamed = |from: &[PathBuf; 2], to: &[PathBuf; 2]| {
        for (from, to) in from.iter().zip(to) {
            fs::rename(from, to).unwrap();
        }
    };
    renamed(&tables, &all);
    let message = failure(&report(), 1);
    assert!(
        message.starts_with("rocov: set/profile/date=2026-11-25/commit=1a2b3c/arch=.../")
            && message.contains(".parquet is missing: "),
        "{message}"
    );
    renamed(&all, &tables);
    assert_eq!(stdout(&report()), whole);
}

#[test]
fn bytes_that_change_make_no_panic() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    fleet.import(&["run1"]);
    for table in ["run", "profile", "counter", "code_object"] {
        let path = file(&fleet, table);
        let bytes = fs::read(&path).unwrap();
        for at in (4..bytes.len()).step_by(bytes.len() / 12) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            fs::write(&path, damaged).unwrap();
            let output = fleet.output(&["report", "set", "--json"]);
            let said = stderr(&output);
            assert!(
                matches!(output.status.code(), Some(0 | 1)) && !said.contains("panicked"),
                "{table} at {at}: {said}"
            );
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn another_version_is_not_read() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    fleet.import(&["run1"]);
    let mark = fleet.path("set/rocov-dataset.json");
    fs::write(&mark, r#"{"rocov_dataset": 9}"#).unwrap();
    let import = [
        "export", "run1", "--format", "parquet", "-o", "set", "--commit", COMMIT,
    ];
    for arguments in [&["report", "set"][..], &import] {
        assert_eq!(
            failure(&fleet.output(arguments), 1),
            "rocov: set is a data set of version 9, expected 1 to 2: use the rocov that wrote it\n"
        );
    }
    fs::write(&mark, "nonsense").unwrap();
    let message = failure(&fleet.output(&["report", "set"]), 1);
    assert!(
        message.starts_with("rocov: set/rocov-dataset.json is damaged: "),
        "{message}"
    );
}

#[test]
fn a_run_is_imported_whole_or_not_at_all() {
    let fleet = Fleet::new();
    for pid in 1..=3 {
        fleet.run(&format!("run{pid}"), pid);
    }
    let profiles = fs::read_dir(fleet.path("run2/profraw")).unwrap();
    let profile = profiles
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_file())
        .unwrap();
    let bytes = fs::read(&profile).unwrap();
    fs::write(&profile, &bytes[..bytes.len() - 40]).unwrap();
    fs::remove_dir_all(fleet.path("run3/objects")).unwrap();
    let import = ["--format", "parquet", "-o", "set", "--commit", COMMIT];
    let output = fleet.output(&[&["export", "run1", "run2", "run3", "none"], &import[..]].concat());
    let message = stderr(&output);
    assert_eq!(
        (output.status.code(), message.lines().count()),
        (Some(1), 3),
        "{message}"
    );
    assert!(
        message.contains("rocov: run2 is not imported: cannot read run2/profraw/"),
        "{message}"
    );
    assert!(
        message.contains("rocov: run3 is not imported: the device ELF of code object "),
        "{message}"
    );
    assert!(
        message.contains("rocov: none is not imported: "),
        "{message}"
    );
    assert_eq!(
        stdout(&output),
        format!("set: 1 run of commit {COMMIT} added\n")
    );
    fs::write(&profile, bytes).unwrap();
    fleet.import(&["run2"]);
    let json = |inputs: &[&str]| fleet.done(&[&["report"], inputs, &["--json"]].concat());
    assert_eq!(json(&["set"]), json(&["run1", "run2"]));
}

#[test]
fn commands_without_data_sets_name_the_way_there() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    fleet.import(&["run1"]);
    for arguments in [
        &["merge", "set", "-o", "out"][..],
        &["diff", "set", "run1"],
        &["kernels", "set"],
    ] {
        let message = failure(&fleet.output(arguments), 1);
        assert!(
            message.contains("set is a data set, which contains no profiles")
                && message.contains(" write them with `rocov export set --format profraw"),
            "{arguments:?}: {message}"
        );
    }
    let elsewhere = fleet.output(&["report", "run1", "--where", "commit=x"]);
    assert!(failure(&elsewhere, 1).contains("--where commit=x is for data sets"));
    let none = fleet.output(&["report", "set", "--where", "commit=x"]);
    let message = failure(&none, 1);
    assert!(
        message.contains(
            "no run in set matches commit=x: choose from the runs of 2026-11-25 to 2026-11-25, of \
        commits 1a2b3c, on gfx90a, gfx942"
        ),
        "{message}"
    );
    fs::create_dir(fleet.path("full")).unwrap();
    fs::write(fleet.path("full/file"), "").unwrap();
    let import = [
        "export", "run1", "--format", "parquet", "-o", "full", "--commit", "c",
    ];
    assert!(failure(&fleet.output(&import), 1).contains("full contains other files"));
}

#[cfg(not(feature = "s3"))]
#[test]
fn a_bucket_without_object_stores_is_one_line() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    let place = "s3://bucket/set";
    for arguments in [
        &["report", place, "--json"][..],
        &["which", "kernel.hip:9", place],
        &["export", place, "--format", "profraw", "-o", "back"],
        &[
            "export", "run1", "--format", "parquet", "-o", place, "--commit", COMMIT,
        ],
    ] {
        let message = failure(&fleet.output(arguments), 1);
        assert_eq!(
            message,
            "rocov: cannot use s3://bucket/set: this rocov was built without support for object stores; build it with \
            `ROCOV_PARTS= cargo install --path tools/rocov --features s3` in a clone of rocov, or copy the data set with `aws s3 sync`\n",
            "{arguments:?}"
        );
    }
    assert!(!fleet.path("s3:").exists() && !fleet.path("back").exists());
    let message = failure(&fleet.output(&["merge", place, "-o", "out"]), 1);
    assert!(
        message.contains(
            "s3://bucket/set is a data set, which contains no profiles: write them with `rocov export \
                          s3://bucket/set"
        ),
        "{message}"
    );
}

#[test]
fn options_of_another_format_are_usage_errors() {
    let fleet = Fleet::new();
    fleet.run("run1", 1);
    for (arguments, reason) in [
        (
            &["--format", "parquet"][..],
            "name the directory to write with -o DIR",
        ),
        (
            &["--format", "rocpd", "--commit", "c"],
            "are for --format parquet",
        ),
        (
            &["--format", "parquet", "-o", "set", "--where", "commit=c"],
            "--where is for --format profraw",
        ),
        (
            &["--format", "profraw", "-o", "back", "--force"],
            "--force is for --format rocpd",
        ),
        (
            &["run2", "--format", "parquet", "-o", "set", "--run", "a"],
            "name one DIR",
        ),
        (
            &["--format", "parquet", "-o", "set", "--commit", "a/b"],
            "of A-Z a-z 0-9",
        ),
        (
            &["--format", "parquet", "-o", "set", "--date", "2026-13-01"],
            "use a date such as",
        ),
        (
            &[
                "--format",
                "profraw",
                "-o",
                "back",
                "--where",
                "branch=main",
            ],
            "use commit=COMMIT",
        ),
    ] {
        let output = fleet.output(&[&["export", "run1"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(reason), "{arguments:?}: {message}");
    }
    assert!(!fleet.path("set").exists() && !fleet.path("back").exists());
}
