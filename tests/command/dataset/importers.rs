//! Imports that are repeated, run at once, or are killed.

use std::time::Duration;
use std::{fs, thread};

use rocov_tests::cli::{failure, stderr, stdout};

use crate::dataset::{COMMIT, Fleet};

/// The report of all counts, by test.
fn report(fleet: &Fleet, inputs: &[&str]) -> String {
    fleet.done(&[&["report"], inputs, &["--json", "--per-test"]].concat())
}

#[test]
fn a_run_counts_once_however_often_it_is_imported() {
    let fleet = Fleet::new();
    for pid in 1..=3 {
        fleet.run(&format!("run{pid}"), pid);
    }
    fleet.import(&["run1", "run2"]);
    assert_eq!(
        fleet.import(&["run2", "run3", "run3"]),
        format!("set: 1 run of commit {COMMIT} added, 2 runs there already\n")
    );
    let expected = report(&fleet, &["run1", "run2", "run3"]);
    assert_eq!(report(&fleet, &["set"]), expected);
    // A directory that has grown since has processes of a run that is there.
    fs::copy(
        fleet.path("run3/registry/3.kernels.json"),
        fleet.path("run2/registry/3.kernels.json"),
    )
    .unwrap();
    let options = ["--format", "parquet", "-o", "set", "--commit", COMMIT];
    let day = ["--date", "2026-11-26"];
    let grown = fleet.output(&[&["export", "run2"], &options[..], &day].concat());
    let message = failure(&grown, 1);
    assert!(
        message.starts_with("rocov: run2 contains 1 process of run "),
        "{message}"
    );
    assert!(message.contains("import each process once"), "{message}");
    assert_eq!(report(&fleet, &["set"]), expected);
}

#[test]
fn importers_at_once_add_each_run_once() {
    let fleet = Fleet::new();
    let runs: Vec<_> = (1..=6).map(|pid| format!("run{pid}")).collect();
    for (run, pid) in runs.iter().zip(1..) {
        fleet.run(run, pid);
    }
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let added = thread::scope(|scope| {
        let importers =
            [&runs[..4], &runs[2..], &runs[..]].map(|runs| scope.spawn(|| fleet.import(runs)));
        importers.map(|importer| importer.join().unwrap())
    });
    let added = added.iter().map(|line| {
        let number = line.strip_prefix("set: ").unwrap().split(' ').next();
        number.unwrap().parse::<u32>().unwrap()
    });
    assert_eq!(added.sum::<u32>(), 6);
    assert_eq!(report(&fleet, &["set"]), report(&fleet, &runs));
}

#[test]
fn an_import_that_was_killed_counts_nothing_and_can_be_repeated() {
    let fleet = Fleet::new();
    for pid in 1..=3 {
        fleet.run(&format!("run{pid}"), pid);
    }
    fleet.import(&["run1"]);
    let before = report(&fleet, &["set"]);
    // It had moved all files into place but the last.
    fleet.import(&["run2", "run3"]);
    for date in ["2026-11-26", "2026-11-27"] {
        let runs = fleet
            .path("set/run")
            .join(format!("date={date}/commit={COMMIT}"));
        let files = fs::read_dir(runs)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        files.for_each(|file| fs::remove_file(file).unwrap());
    }
    assert_eq!(report(&fleet, &["set"]), before);
    // With another run next to it, so that the file has another name.
    fleet.run("run4", 2);
    fs::remove_file(fleet.path("run4/registry/2.kernels.json")).unwrap();
    let options = ["--format", "parquet", "-o", "set", "--commit", COMMIT];
    let day = ["--date", "2026-11-26"];
    let both = fleet.output(&[&["export", "run4", "run2"], &options[..], &day].concat());
    assert_eq!(stderr(&both), "");
    fleet.import(&["run3"]);
    let expected = report(&fleet, &["run1", "run2", "run3", "run4"]);
    assert_eq!(report(&fleet, &["set"]), expected);
}

#[test]
fn a_kill_at_any_time_loses_nothing() {
    let fleet = Fleet::new();
    let runs: Vec<_> = (1..=4).map(|pid| format!("run{pid}")).collect();
    for (run, pid) in runs.iter().zip(1..) {
        fleet.run(run, pid);
    }
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let options = ["--format", "parquet", "-o", "set", "--commit", COMMIT];
    for pause in 0..12 {
        let mut import = fleet.command(&[&["export"], &runs[..], &options].concat());
        let mut import = import.stdout(std::process::Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(3 * pause));
        import.kill().unwrap();
        import.wait().unwrap();
    }
    let last = fleet.output(&[&["export"], &runs[..], &options].concat());
    assert_eq!(stderr(&last), "", "{}", stdout(&last));
    assert_eq!(report(&fleet, &["set"]), report(&fleet, &runs));
    let leftovers: Vec<_> = fs::read_dir(fleet.path("set"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(
        leftovers.is_empty() || stdout(&last).contains(": 0 runs"),
        "{leftovers:?}"
    );
}
