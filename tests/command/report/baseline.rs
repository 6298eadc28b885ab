//! `rocov baseline`, and reports that are held to it.

use serde_json::Value;

use super::*;

/// 2026-11-21 and 2026-11-28, in seconds since 1970.
const DAYS: [&str; 2] = ["1795219200", "1795824000"];

/// Data of archs.hip on both archs, with a baseline of it.
struct Based {
    place: Place,
    elfs: [PathBuf; 2],
}

impl Based {
    fn new() -> Self {
        let (place, elfs) = Place::with_archs();
        let based = Self { place, elfs };
        let output = based.rocov("baseline", DAYS[0], &[]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        based
    }

    fn rocov(&self, subcommand: &str, time: &str, arguments: &[&str]) -> Output {
        let mut command = rocov();
        command.current_dir(self.place.path()).arg(subcommand);
        command.env("SOURCE_DATE_EPOCH", time);
        command.args(arguments).arg("--object").args(&self.elfs);
        command.output().unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.place.path().join("rocov-baseline.json")).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    /// The lines about gates of a command with this status.
    #[track_caller]
    fn gates(&self, subcommand: &str, arguments: &[&str], status: i32) -> Vec<String> {
        let output = self.rocov(subcommand, DAYS[1], arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{said}");
        let lines = said.lines();
        let gates = lines.filter_map(|line| line.strip_prefix("rocov: gate: "));
        gates.map(str::to_owned).collect()
    }

    /// Writes counts for gfx942: those of a function that does not run, or all.
    fn run_again(&self, count: u64) {
        let path = self.place.profile_path(&self.elfs[1], "gfx942", 0);
        profile::write_counts(&self.elfs[1], &|_, _| count, RAW_VERSION, &path);
    }
}

#[test]
fn a_baseline_has_the_figures_of_the_report() {
    let based = Based::new();
    let stored = based.json();
    let output = based.rocov("report", DAYS[0], &["--json", "--summary-only"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for (index, arch) in ["gfx90a", "gfx942"].iter().enumerate() {
        let column = &stored["columns"][*arch];
        assert_eq!(column["date"], "2026-11-21");
        let export = &report["data"][index];
        let files = column["files"].as_object().unwrap();
        assert_eq!(files.len(), 1);
        let file = &export["files"][0];
        for (stored, summary) in [
            (&column["total"], &export["totals"]),
            (files.values().next().unwrap(), &file["summary"]),
        ] {
            for what in ["lines", "functions", "regions", "branches"] {
                let expected = [&summary[what]["covered"], &summary[what]["count"]];
                let stored = [&stored[what][0], &stored[what][1]];
                assert_eq!(stored, expected, "{arch} {what}");
            }
        }
    }
    assert_eq!(stored["all"]["total"]["lines"], serde_json::json!([26, 26]));
    // Nothing is replaced unless the user wants it.
    let said = failure(&based.rocov("baseline", DAYS[0], &[]), 1);
    assert!(
        said.contains("rocov-baseline.json exists: use --update"),
        "{said}"
    );
    // A report in JSON gives the same.
    let json = based.place.path().join("report.json");
    fs::write(&json, stdout(&based.rocov("report", DAYS[0], &["--json"]))).unwrap();
    let mut command = rocov();
    command
        .current_dir(based.place.path())
        .env("SOURCE_DATE_EPOCH", DAYS[0]);
    run(command.args(["baseline", "report.json", "-o", "other.json"]));
    let other = fs::read_to_string(based.place.path().join("other.json")).unwrap();
    assert_eq!(other, based.text());
}

#[test]
fn figures_only_rise_unless_the_user_lets_them_drop() {
    let based = Based::new();
    let gate = "--baseline=rocov-baseline.json";
    assert_eq!(based.gates("report", &[gate], 0), [""; 0]);
    // Nothing runs on gfx942: 24 lines are missed instead of 13, and 26 lines ran on gfx90a or on gfx942 before.
    based.run_again(0);
    let stored = based.text();
    let gates = based.gates("report", &[gate], 3);
    let line = "gfx942: 0.00% of lines ran (24 of 24 did not run), less than 45.83% (13 of 24 did not run) in the baseline of 2026-11-21, \
                most in ";
    assert!(gates[0].starts_with(line), "{gates:?}");
    assert!(
        gates[0].contains("archs.hip (11 more); cover them, or"),
        "{gates:?}"
    );
    let lowering = "write the lower figures with `rocov baseline rocov-data -o rocov-baseline.json --update --allow-drop`";
    assert!(gates[0].ends_with(lowering), "{gates:?}");
    assert_eq!(based.gates("baseline", &["--update"], 3), gates);
    assert_eq!(based.text(), stored);
    based.gates("baseline", &["--update", "--allow-drop"], 0);
    let column = |based: &Based| based.json()["columns"]["gfx942"].clone();
    assert_eq!(column(&based)["total"]["lines"], serde_json::json!([0, 24]));
    assert_eq!(column(&based)["date"], "2026-11-28");
    assert_eq!(based.gates("report", &[gate], 0), [""; 0]);
    // All runs, and then less again.
    based.run_again(7);
    assert_eq!(based.gates("report", &[gate], 0), [""; 0]);
    based.gates("baseline", &["--update"], 0);
    assert_eq!(
        column(&based)["total"]["functions"],
        serde_json::json!([4, 4])
    );
    based.run_again(0);
    assert!(!based.gates("report", &[gate], 3).is_empty());
}

#[test]
fn an_arch_that_did_not_run_is_missing_or_carried_forward() {
    let based = Based::new();
    fs::remove_file(based.place.profile_path(&based.elfs[1], "gfx942", 0)).unwrap();
    let gate = "--baseline=rocov-baseline.json";
    let carry = "--carry-forward=rocov-baseline.json";
    let line = "gfx942: the baseline of 2026-11-21 contains it, but this report does not; run the tests on it as \
    well, use --arch to name the archs that they ran on, or use --carry-forward";
    assert_eq!(based.gates("report", &[gate], 3), [line]);
    assert_eq!(based.gates("report", &[gate, "--arch=gfx90a"], 0), [""; 0]);
    assert_eq!(based.gates("report", &[gate, carry], 0), [""; 0]);
    let report = |arguments: &[&str]| {
        stdout(&based.rocov("report", DAYS[1], &[arguments, &[carry]].concat()))
    };
    let said = report(&[]);
    let line = "\nCarried forward:\n  gfx942, 7 days old (2026-11-21): lines 45.83% (11/24), functions 50.00% (2/4), ";
    assert!(said.contains(line), "{said}");
    assert!(
        report(&["--markdown"])
            .contains("\n| gfx942, 7 days old | 45.83% (11/24) | 50.00% (2/4) |")
    );
    let json: Value = serde_json::from_str(&report(&["--json", "--summary-only"])).unwrap();
    let carried = &json["rocov"]["carried_forward"][0];
    assert_eq!(carried["days"], 7);
    assert_eq!(carried["summary"]["lines"]["covered"], 11);
    assert!(!report(&["--arch=gfx90a"]).contains("Carried"));
    let pages = based.place.path().join("pages");
    report(&["--html", pages.to_str().unwrap()]);
    let page = fs::read_to_string(pages.join("index.html")).unwrap();
    let line = "Carried forward: gfx942, 7 days old (2026-11-21): lines 45.83% (11/24), functions 50.00% (2/4)";
    assert!(page.contains(line), "{page}");
    // Its components have theirs.
    let component = "--component-sources=parts=archs.hip";
    let file = based.place.path().join("rocov-baseline.json");
    let whole = based.text();
    let mut stored = based.json();
    let total = stored["columns"]["gfx942"]["total"].clone();
    stored["columns"]["gfx942"]["components"] = serde_json::json!({"parts": total});
    fs::write(&file, stored.to_string()).unwrap();
    let said = report(&[component]);
    assert!(
        said.contains("\n    parts: lines 45.83% (11/24), functions"),
        "{said}"
    );
    let said = report(&[component, "--markdown"]);
    let row = "\n| `parts` | gfx942, 7 days old | 45.83% (11/24) | 50.00% (2/4) |";
    assert!(said.contains(row), "{said}");
    let json: Value = serde_json::from_str(&report(&[component, "--json"])).unwrap();
    let carried = &json["rocov"]["carried_forward"][0]["components"][0];
    assert_eq!(carried["name"], "parts");
    assert_eq!(carried["summary"]["lines"]["covered"], 11);
    fs::write(&file, whole).unwrap();
    // The figures of the other arch stay.
    based.gates("baseline", &["--update"], 0);
    let stored = based.json();
    assert_eq!(stored["columns"]["gfx942"]["date"], "2026-11-21");
    assert_eq!(stored["columns"]["gfx90a"]["date"], "2026-11-28");
    assert_eq!(stored["all"]["date"], "2026-11-21");
}

#[test]
fn files_that_are_no_baselines_are_refused() {
    let (place, elfs) = Place::with_archs();
    for (text, expected) in [
        ("", "x.json is not a baseline: EOF"),
        ("{}", "x.json is not a baseline"),
        (
            "{\"rocov_baseline\": 1, \"columns\": {}}",
            "x.json has no figures for any arch, so every report would pass: remove it, and write it again with `rocov \
             baseline -o x.json`",
        ),
        (
            "{\"rocov_baseline\": 2}",
            "x.json is a baseline of version 2, expected 1",
        ),
        (
            "{\"rocov_baseline\": 1, \"columns\": {\"a\": {\"date\": \"2026-02-30\", \"files\": {}, \"total\": \
             {\"lines\": [0, 0], \"functions\": [0, 0], \"regions\": [0, 0], \"branches\": [0, 0]}}}}",
            "x.json contains an impossible date or figure",
        ),
    ] {
        fs::write(place.path().join("x.json"), text).unwrap();
        let said = failure(
            &place.report(&[&"--baseline=x.json", &"--object", &elfs[0]]),
            1,
        );
        assert!(said.contains(expected), "{said}");
    }
    let said = failure(&place.report(&[&"--carry-forward=none.json"]), 1);
    assert_eq!(
        said,
        "rocov: there is no baseline none.json: `rocov baseline -o none.json` writes one\n"
    );
}

/// `rocov baseline` stores what `rocov report` reports.
#[test]
fn the_options_of_reports_in_the_project_file_are_those_of_its_baseline() {
    let (place, elfs) = Place::with_archs();
    fs::create_dir(place.path().join(".git")).unwrap();
    let text = "[report]\narch = 'gfx90a'\nfail-under-lines = 1\n\
                [components.shapes]\nsources = 'archs.hip'\nfail-under-lines = 1\n";
    fs::write(place.path().join("rocov.toml"), text).unwrap();
    let mut command = rocov();
    command.current_dir(place.path()).arg("baseline");
    run(command.arg("--object").args(&elfs));
    let text = fs::read_to_string(place.path().join("rocov-baseline.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let columns = stored["columns"].as_object().unwrap();
    assert_eq!(columns.keys().collect::<Vec<_>>(), ["gfx90a"]);
    let column = &columns["gfx90a"];
    assert_eq!(column["components"]["shapes"], column["total"]);
}

/// A program that no longer runs leaves its sources out of the report.
#[test]
fn a_source_that_is_missing_breaks_the_gate_unless_filters_leave_it_out() {
    let based = Based::new();
    let other = based.place.path().join("other.hip");
    fs::write(&other, "void nothing();\n").unwrap();
    let path = based.place.path().join("rocov-baseline.json");
    let mut stored = based.json();
    let column = &mut stored["columns"]["gfx942"];
    let name = fs::canonicalize(&other).unwrap().display().to_string();
    let shares = serde_json::json!({
        "lines": [8, 10], "functions": [1, 1], "regions": [1, 1], "branches": [0, 0]
    });
    column["files"][&name] = shares;
    let lines = column["total"]["lines"].as_array_mut().unwrap();
    for (figure, more) in lines.iter_mut().zip([8, 10]) {
        *figure = (figure.as_u64().unwrap() + more).into();
    }
    stored.as_object_mut().unwrap().remove("all");
    let text = stored.to_string();
    fs::write(&path, &text).unwrap();

    let missing = format!("gfx942: {name} not in this report, but in the baseline of 2026-11-21; ");
    let gate = ["--baseline=rocov-baseline.json"];
    let gates = based.gates("report", &gate, 3);
    assert!(
        gates.iter().any(|line| line.starts_with(&missing)),
        "{gates:?}"
    );
    let gates = based.gates("baseline", &["--update"], 3);
    assert!(
        gates.iter().any(|line| line.starts_with(&missing)),
        "{gates:?}"
    );
    assert_eq!(based.text(), text);

    // 80 % of 10 lines is no part of the figures of the others.
    let arguments = [gate[0], "--exclude=other.hip"];
    let output = based.rocov("report", DAYS[1], &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = "this report's options leave out 1 source of the baseline; run it without filters to check everything";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));

    // A source that was removed is no loss.
    fs::remove_file(&other).unwrap();
    let gates = based.gates("report", &gate, 0);
    assert_eq!(gates, [""; 0]);
    let gates = based.gates("baseline", &["--update"], 0);
    assert_eq!(gates, [""; 0]);
}
