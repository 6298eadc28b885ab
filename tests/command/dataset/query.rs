//! `rocov query`. DuckDB judges its answers. The engine needs the feature `query`: `tools/dev/fleet features` builds
//! it, and runs these tests with it.

use std::fs;

use rocov_tests::cli::{failure, rocov, run, stderr, stdout};

use crate::dataset::tables::example;

#[test]
fn questions_are_printed_and_need_their_options() {
    let text = fs::read_to_string(example("questions/lost_lines.sql")).unwrap();
    let printed = run(rocov().args(["query", "set", "lost_lines", "--print"]));
    assert_eq!(stdout(&printed), text);
    for (arguments, reason) in [
        (&["query", "set"][..], "<QUESTION>"),
        (
            &["query", "set", "trend", "--sql", "x"],
            "cannot be used with",
        ),
        (&["query", "set", "best_files"], "worst_files"),
        (
            &["query", "set", "lost_lines", "--since", "a"],
            "lost_lines needs --until COMMIT",
        ),
        (
            &["query", "set", "tests_to_run", "--since", "a"],
            "tests_to_run needs --diff FILE",
        ),
        (&["query", "set", "trend", "--memory", "0"], "--memory"),
    ] {
        let output = rocov().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[cfg(not(feature = "query"))]
#[test]
fn a_rocov_without_an_engine_names_the_way_to_one() {
    let message = failure(
        &rocov().args(["query", "set", "trend"]).output().unwrap(),
        1,
    );
    assert_eq!(
        message,
        "rocov: cannot query set: this rocov has no SQL engine; build one that has it with `ROCOV_PARTS= cargo install \
         --path tools/rocov --features query` in a clone of rocov, or use examples/fleet/duckdb_questions.py\n"
    );
}

#[cfg(feature = "query")]
mod with_engine {
    use std::process::Command;

    use serde_json::{Value, json};

    use super::*;
    use crate::dataset::tables::python;
    use crate::dataset::{COMMIT, Fleet};

    /// A fleet of an old commit with all tests, and of a new one with one of them, on one arch.
    fn fleet() -> Fleet {
        let fleet = Fleet::new();
        for pid in 1..=3 {
            fleet.run(&format!("run{pid}"), pid);
        }
        for pid in [2, 3] {
            let labels = fleet.path(&format!("run{pid}/profraw/labels"));
            for label in ["add&b", "unit%20tests"] {
                fs::remove_dir_all(labels.join(label)).unwrap();
            }
            for profile in fs::read_dir(labels.join("add")).unwrap() {
                let profile = profile.unwrap();
                if profile.file_name().to_string_lossy().starts_with("gfx942.") {
                    fs::remove_file(profile.path()).unwrap();
                }
            }
        }
        fleet.done(&[
            "export", "run1", "--format", "parquet", "-o", "set", "--commit", "old",
        ]);
        fleet.import(&["run2", "run3"]);
        fleet
    }

    fn ask(fleet: &Fleet, arguments: &[&str]) -> String {
        fleet.done(&[&["query", "set"], arguments].concat())
    }

    /// Asks the SQL in a file.
    fn ask_sql(fleet: &Fleet, sql: &str, arguments: &[&str]) -> std::process::Output {
        fs::write(fleet.path("sql"), sql).unwrap();
        fleet.output(&[&["query", "set", "--sql", "sql"], arguments].concat())
    }

    #[test]
    fn query_has_the_answers_of_duckdb() {
        let Some(python) = python("questions to rocov query") else {
            return;
        };
        let fleet = fleet();
        let diff = "--- a/data/archs.hip\n+++ b/data/archs.hip\n@@ -5,20 +5,20 @@\n".to_owned();
        let diff = diff + &"-x\n".repeat(20) + &"+y\n".repeat(20);
        fs::write(fleet.path("diff"), diff).unwrap();
        let since = ["--since", "old", "--until", COMMIT];
        let mut duckdb = Command::new(&python);
        duckdb.arg(example("duckdb_questions.py")).arg("set");
        duckdb
            .args(since)
            .args(["--diff", "diff"])
            .current_dir(fleet.path(""));
        let expected: Value = serde_json::from_str(&stdout(&run(&mut duckdb))).unwrap();
        let expected = expected.as_object().unwrap();
        assert_eq!(expected.len(), 6);
        for (name, rows) in expected {
            let options = ["--diff", "diff", "--format", "json"];
            let answer = ask(&fleet, &[&[name.as_str()][..], &since, &options].concat());
            let answer: Vec<serde_json::Map<String, Value>> =
                serde_json::from_str(&answer).unwrap();
            // The maps have their keys in the order of the alphabet.
            let sorted = |row: Vec<Value>| {
                let mut row: Vec<_> = row.iter().map(Value::to_string).collect();
                row.sort();
                row
            };
            let answer = answer
                .into_iter()
                .map(|row| sorted(row.into_iter().map(|cell| cell.1).collect()));
            let rows: Vec<_> = rows
                .as_array()
                .unwrap()
                .iter()
                .map(|row| sorted(row.as_array().unwrap().clone()))
                .collect();
            assert_eq!(answer.collect::<Vec<_>>(), rows, "{name}");
            assert!(!rows.is_empty() || name == "idle_kernels", "{name}");
        }
    }

    #[test]
    fn an_answer_is_a_table_csv_or_json() {
        let fleet = fleet();
        let sql = "SELECT arch, count(*) AS profiles FROM profile WHERE commit = 'old' GROUP BY arch ORDER BY arch";
        let form = |format: &str| {
            let output = ask_sql(&fleet, sql, &["--format", format]);
            assert_eq!(stderr(&output), "");
            stdout(&output)
        };
        assert_eq!(form("csv"), "arch,profiles\ngfx90a,8\ngfx942,4\n");
        assert_eq!(
            form("table"),
            "arch    profiles\ngfx90a         8\ngfx942         4\n"
        );
        let json: Value = serde_json::from_str(&form("json")).unwrap();
        let rows = json!([{"arch": "gfx90a", "profiles": 8}, {"arch": "gfx942", "profiles": 4}]);
        assert_eq!(json, rows);
        let none = ask_sql(
            &fleet,
            "SELECT arch, run FROM profile WHERE arch = 'x'",
            &["--format", "csv"],
        );
        assert_eq!(stdout(&none), "arch,run\n");
    }

    #[test]
    fn a_file_counts_with_its_run_and_is_read_if_its_partition_is_wanted() {
        let fleet = fleet();
        let runs = |sql: &str| ask_sql(&fleet, sql, &["--format", "csv"]);
        let counters = "SELECT count(*) AS n FROM counter WHERE commit = 'old'";
        let before = stdout(&runs(counters));
        // The files of the new commit are damaged.
        for (name, _) in crate::dataset::contents(&fleet.path("set/counter")) {
            if name.to_string_lossy().contains(COMMIT) {
                fs::write(fleet.path("set/counter").join(name), "PAR1 no more").unwrap();
            }
        }
        assert_eq!(stdout(&runs(counters)), before);
        let all = "SELECT count(*) AS n FROM counter";
        let message = failure(&runs(all), 1);
        assert!(
            message.starts_with("rocov: set/counter/date=")
                && message.contains(" is damaged: restore it from a copy"),
            "{message}"
        );
        // An import that was killed before it had moved the file of the runs.
        for (name, _) in crate::dataset::contents(&fleet.path("set/run")) {
            if name.to_string_lossy().contains(COMMIT) {
                fs::remove_file(fleet.path("set/run").join(name)).unwrap();
            }
        }
        assert_eq!(stdout(&runs(all)), before);
    }

    #[test]
    fn a_question_that_has_no_answer_is_one_line() {
        let fleet = fleet();
        let unknown = fleet.output(&[
            "query",
            "set",
            "lost_lines",
            "--since",
            "x",
            "--until",
            "old",
        ]);
        let message = failure(&unknown, 1);
        assert!(
            message.contains("no run in set matches commit=x: choose from "),
            "{message}"
        );
        for (sql, reason) in [
            ("SELEC 1", "cannot run the query: "),
            ("SELECT nothing FROM run", "nothing"),
            ("SELECT * FROM runs", "runs"),
            ("CREATE TABLE a AS SELECT 1", "DDL not supported"),
            ("COPY run TO 'file.csv'", "DML not supported"),
            ("", "cannot run the query: "),
        ] {
            let message = failure(&ask_sql(&fleet, sql, &[]), 1);
            assert!(message.contains(reason), "{sql}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        assert!(!fleet.path("file.csv").exists());
        let message = failure(&fleet.output(&["query", "run1", "trend"]), 1);
        assert!(
            message.contains("run1 is not a rocov data set"),
            "{message}"
        );
    }
}
