//! A data set of version 1, which rocov wrote before version 2. Its run is next to it, as the judge.

use std::fs;

use rocov_tests::cli::{data, run, stderr, stdout};
use serde_json::Value;

use crate::dataset::{COMMIT, Fleet, contents};

#[test]
fn a_data_set_of_version_1_is_read_and_becomes_one_of_version_2() {
    let fleet = Fleet::new();
    for (name, bytes) in contents(&data("version1")) {
        let path = fleet.path("").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let mark = || fs::read_to_string(fleet.path("set/rocov-dataset.json")).unwrap();
    assert_eq!(mark(), r#"{"rocov_dataset":1}"#);
    // The code of this run adds to its counters without atomic operations, and a data set has no code. Another run has
    // a source of the same name.
    let done = |arguments: &[&str]| {
        let output = run(&mut fleet.command(arguments));
        let said = stderr(&output);
        let is_known = |line: &str| {
            line.contains("without atomic operations") || line.contains("look like one source")
        };
        assert!(said.lines().all(is_known), "{said}");
        stdout(&output)
    };
    let report = |inputs: &[&str]| {
        let options = ["--json", "--per-test"];
        let report = done(&[&["report"], inputs, &options].concat());
        let mut report: Value = serde_json::from_str(&report).expect("JSON");
        for column in report["rocov"]["columns"].as_array_mut().expect("columns") {
            column
                .as_object_mut()
                .expect("a column")
                .remove("non_atomic");
        }
        report
    };
    let of_run = report(&["run"]);
    let text = of_run.to_string();
    assert!(text.contains(r#""name":"suite/first""#), "{text}");
    assert_eq!(report(&["set"]), of_run);
    fleet.done(&["export", "set", "--format", "profraw", "-o", "back"]);
    done(&["merge", "run", "--per-test", "--pooled", "merged"]);
    assert!(contents(&fleet.path("back")) == contents(&fleet.path("merged")));
    // The tables have new files, and the old ones stay.
    let old = contents(&fleet.path("set"));
    assert_eq!(
        fleet.import(&["run"]),
        format!("set: 0 runs of commit {COMMIT} added, 1 run there already\n")
    );
    fleet.run("more", 7);
    fleet.import(&["more"]);
    assert_eq!(mark(), r#"{"rocov_dataset":2}"#);
    assert_eq!(report(&["set"]), report(&["run", "more"]));
    for (name, bytes) in old
        .iter()
        .filter(|file| file.0.extension().unwrap() == "parquet")
    {
        assert!(fs::read(fleet.path("set").join(name)).unwrap() == *bytes);
    }
}
