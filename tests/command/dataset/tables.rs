//! The tables, read by DuckDB and pyarrow. llvm-profdata judges the sums, and the tracefiles of raw profiles judge the
//! answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov_tests::artifacts::{built, repository};
use rocov_tests::cli::{data, run, stdout};
use serde_json::{Value, json};

use crate::dataset::{COMMIT, Fleet};

/// The Python that has DuckDB and pyarrow: that of `tools/dev/fleet setup`, or the one that the user names. Without
/// it, the test is not run.
pub(crate) fn python(what: &str) -> Option<PathBuf> {
    let command = built("rocov");
    let own = command
        .ancestors()
        .nth(2)
        .unwrap()
        .join("fleet/venv/bin/python");
    let named = std::env::var_os("ROCOV_FLEET_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or(own);
    let mut import = Command::new(&python);
    import.args(["-c", "import duckdb, pyarrow"]);
    if import.output().is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    // Around the capture of passing tests' output: tools/test counts these lines.
    let _ = writeln!(
        std::io::stderr(),
        "not run: {what} by DuckDB and pyarrow: `tools/dev/fleet setup` installs them"
    );
    None
}

pub(crate) fn example(name: &str) -> PathBuf {
    repository("examples/fleet").join(name)
}

#[test]
fn other_programs_read_the_tables_and_their_sums() {
    let Some(python) = python("tables of a data set") else {
        return;
    };
    let fleet = Fleet::new();
    for pid in 1..=3 {
        fleet.run(&format!("run{pid}"), pid);
    }
    fleet.import(&["run1", "run2", "run3"]);
    let mut look = Command::new(&python);
    look.arg(data("dataset.py")).arg(fleet.path("set"));
    let found: Value = serde_json::from_str(&stdout(&run(&mut look))).unwrap();
    let types = &found["types"];
    assert_eq!(types["counter"]["count"], "int64");
    assert_eq!(types["counter"]["function"], "int32");
    assert_eq!(types["run"]["start"], "timestamp[us, tz=UTC]");
    assert_eq!(types["code_object"]["elf"], "binary");
    assert_eq!(types["function"]["kernel"], "bool");
    assert_eq!(found["versions"], json!(["2"]));
    // Each code object once.
    assert_eq!(found["rows"]["code_object"], 3);
    // The calls of each function on gfx90a, by llvm-profdata from the raw profiles.
    let mut merge = Command::new("llvm-profdata-22");
    merge.arg("merge").arg("-o").arg(fleet.path("all.profdata"));
    for (path, _) in (1..=3).flat_map(|pid| {
        let directory = fleet.path(&format!("run{pid}"));
        crate::dataset::contents(&directory)
            .into_iter()
            .map(move |(name, count)| (directory.join(name), count))
    }) {
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with("gfx90a.") && name.ends_with(".profraw") {
            merge.arg(&path);
        }
    }
    run(&mut merge);
    let mut show = Command::new("llvm-profdata-22");
    show.args(["show", "--all-functions", "--counts"]);
    let shown = stdout(&run(show.arg(fleet.path("all.profdata"))));
    let mut expected = BTreeMap::new();
    let mut name = "";
    for line in shown.lines() {
        if let Some(count) = line.trim().strip_prefix("Function count: ") {
            expected.insert(name.to_owned(), count.parse::<u64>().unwrap());
        } else if line.starts_with("  ") && !line.starts_with("   ") {
            name = line.trim().trim_end_matches(':');
        }
    }
    assert!(
        expected.len() >= 5 && expected.values().any(|count| *count > 0),
        "{shown}"
    );
    let calls: BTreeMap<String, u64> = serde_json::from_value(found["calls"].clone()).unwrap();
    assert_eq!(calls, expected);
}

/// The lines with code of each file, and if they ran.
pub(crate) type Lines = BTreeMap<(String, u64), bool>;

/// The lines in the tracefile of a report.
pub(crate) fn lines(fleet: &Fleet, arguments: &[&str]) -> Lines {
    let text = fleet.done(&[&["report", "--lcov"], arguments].concat());
    let (mut lines, mut file) = (Lines::new(), String::new());
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            file = path.to_owned();
        } else if let Some((number, count)) = line
            .strip_prefix("DA:")
            .and_then(|rest| rest.split_once(','))
        {
            lines.insert((file.clone(), number.parse().unwrap()), count != "0");
        }
    }
    lines
}

#[test]
fn the_questions_have_the_answers_of_reports() {
    let Some(python) = python("questions to a data set") else {
        return;
    };
    let fleet = Fleet::new();
    // One run of an old commit, with all tests. Two of a new one, which lack a test.
    for pid in 1..=3 {
        fleet.run(&format!("run{pid}"), pid);
    }
    for pid in [2, 3] {
        for label in ["labels/add", "labels/add&b", "labels/unit%20tests"] {
            fs::remove_dir_all(fleet.path(&format!("run{pid}/profraw/{label}"))).unwrap();
        }
    }
    fleet.done(&[
        "export", "run1", "--format", "parquet", "-o", "set", "--commit", "old",
    ]);
    fleet.import(&["run2", "run3"]);
    let archs = ["gfx90a", "gfx942"];
    let lines_of =
        |inputs: &[&str]| archs.map(|arch| lines(&fleet, &[inputs, &["--arch", arch]].concat()));
    let (old, new) = (lines_of(&["run1"]), lines_of(&["run2", "run3"]));
    let (file, number) = old[0]
        .iter()
        .find(|(_, ran)| **ran)
        .map(|(place, _)| place)
        .unwrap();
    let name = Path::new(file).file_name().unwrap().to_str().unwrap();
    let diff = format!("--- a/data/{name}\n+++ b/data/{name}\n@@ -{number} +{number} @@\n");
    fs::write(fleet.path("diff"), diff).unwrap();
    let mut ask = Command::new(&python);
    ask.arg(example("duckdb_questions.py"))
        .arg(fleet.path("set"));
    ask.args(["--since", "old", "--until", COMMIT, "--diff"])
        .arg(fleet.path("diff"));
    let answers: Value = serde_json::from_str(&stdout(&run(&mut ask))).unwrap();

    let number_of = |archs: &[Lines; 2]| {
        let all = archs.iter().flatten();
        let covered = all.clone().filter(|(_, ran)| **ran).count();
        (all.count(), covered)
    };
    let ((old_lines, old_covered), (new_lines, new_covered)) = (number_of(&old), number_of(&new));
    assert_eq!(
        answers["trend"],
        json!([
            ["2026-11-25", "old", 1, old_lines, old_covered],
            ["2026-11-26", COMMIT, 2, new_lines, new_covered]
        ])
    );
    let mut files: BTreeMap<&String, (i64, i64)> = BTreeMap::new();
    for ((file, _), ran) in new.iter().flatten() {
        let (lines, missed) = files.entry(file).or_default();
        *lines += 1;
        *missed += i64::from(!ran);
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(file, (lines, missed))| (-missed, -lines, *file));
    let files = files
        .iter()
        .map(|(file, (lines, missed))| json!([file, lines, missed]));
    assert_eq!(answers["worst_files"], Value::Array(files.collect()));
    let mut lost = Vec::new();
    for (arch, (old, new)) in archs.iter().zip(old.iter().zip(&new)) {
        for ((file, line), ran) in old {
            if *ran && new.get(&(file.clone(), *line)) == Some(&false) {
                lost.push(json!([arch, file, line]));
            }
        }
    }
    assert!(!lost.is_empty());
    assert_eq!(answers["lost_lines"], Value::Array(lost));
    let mut one = Vec::new();
    for (place, ran) in &new[0] {
        if let Some(other) = new[1].get(place)
            && ran != other
        {
            one.push(json!([place.0, place.1, archs[usize::from(*other)]]));
        }
    }
    assert_eq!(answers["one_arch"], Value::Array(one));
    // The tests of that line, by the raw profiles.
    let place = format!("{name}:{number}");
    let which = fleet.done(&["which", &place, "run1", "--json"]);
    let which: Value = serde_json::from_str(&which).unwrap();
    let tests: BTreeSet<&str> = which["lines"][0]["tests"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|test| test["label"].as_str())
        .collect();
    assert!(tests.len() > 1);
    let asked: BTreeSet<&str> = answers["tests_to_run"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0].as_str().unwrap())
        .collect();
    assert_eq!(asked, tests);
    // Kernels that no run launched, by the functions of the report of all runs.
    let mut idle = Vec::new();
    for arch in archs {
        let json = fleet.done(&["report", "run1", "run2", "run3", "--json", "--arch", arch]);
        let json: Value = serde_json::from_str(&json).unwrap();
        for kernel in ["add", "kernel", "scale"] {
            let functions = json["data"][0]["functions"].as_array().unwrap();
            let of_kernel = functions
                .iter()
                .filter(|function| function["name"] == kernel);
            let counts: Vec<_> = of_kernel
                .map(|function| function["count"].as_u64().unwrap())
                .collect();
            if !counts.is_empty() && counts.iter().all(|count| *count == 0) {
                idle.push(json!([arch, kernel]));
            }
        }
    }
    assert_eq!(answers["idle_kernels"], Value::Array(idle));
}
