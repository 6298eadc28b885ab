//! Code that ran in one data directory and not in another, by llvm-cov's counts of each.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::report::repository::AFTER;

/// The count of a function's counter, by its symbol and number.
pub(crate) type Counts<'a> = &'a dyn Fn(&str, u64) -> u64;

/// Writes a data directory of this name: `text` compiled for `arch` at `path`, and a profile.
pub(crate) fn ran(
    place: &Place,
    name: &str,
    path: &str,
    text: &str,
    arch: &str,
    counts: Counts<'_>,
) {
    let source = place.path().join(path);
    fs::create_dir_all(source.parent().unwrap()).unwrap();
    fs::write(&source, text).unwrap();
    let elf = compile_source(&source, place.path(), "device.elf", arch, &INSTRUMENTED);
    let name = place.path().join(name);
    let identity = profile::identity(&elf);
    fs::create_dir_all(name.join("objects")).unwrap();
    let profile = name.join(format!("{arch}.{identity}.0.1.profraw"));
    profile::write_counts(&elf, counts, RAW_VERSION, &profile);
    let kept = name.join(format!("objects/{arch}.{identity}.elf"));
    fs::rename(&elf, kept).unwrap();
}

fn diff(place: &Place, arguments: &[&str]) -> Output {
    let mut command = rocov();
    command
        .current_dir(place.path())
        .args(["diff", "before", "after"]);
    command.args(arguments).output().unwrap()
}

#[track_caller]
fn json(place: &Place) -> Value {
    let output = diff(place, &["--json"]);
    assert_eq!(
        (stderr(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The lines of a data directory's only source on an arch, by llvm-cov.
pub(crate) fn counted(place: &Place, name: &str, arch: &str) -> BTreeMap<u32, u64> {
    let directory = place.path().join(name);
    let objects = fs::read_dir(directory.join("objects")).unwrap();
    let mut elfs = objects.map(|object| object.unwrap().path());
    let elf = elfs.find(|elf| elf.file_name().unwrap().to_str().unwrap().starts_with(arch));
    let mut export = Command::new("llvm-cov-22");
    export.args(["export", "-format=lcov", "-instr-profile"]);
    export.arg(profile::indexed(&directory, arch));
    let tracefile = stdout(&run(export.arg(elf.unwrap())));
    crate::report::archs::lcov_lines(&tracefile)
        .into_iter()
        .collect()
}

#[test]
fn lines_gained_and_lost_are_those_of_llvm_covs_counts() {
    let place = Place::new();
    let runs: [(&str, [(&str, Counts<'_>); 2]); 2] = [
        (
            "before",
            [
                ("gfx90a", &|_, number| u64::from(number != 2)),
                ("gfx942", &|_, number| u64::from(number != 1)),
            ],
        ),
        (
            "after",
            [
                ("gfx90a", &|_, _| 1),
                ("gfx942", &|_, number| u64::from(number < 2)),
            ],
        ),
    ];
    for (name, archs) in runs {
        for (arch, counts) in archs {
            ran(&place, name, "kernel.hip", AFTER, arch, counts);
        }
    }
    let found = json(&place);
    let mut losses = 0;
    for (index, arch) in ["gfx90a", "gfx942"].into_iter().enumerate() {
        let (before, after) = (
            counted(&place, "before", arch),
            counted(&place, "after", arch),
        );
        let lines = |is: &dyn Fn(bool, bool) -> bool| -> Vec<u32> {
            let lines = after
                .iter()
                .filter(|(line, ran)| is(before[line] > 0, **ran > 0));
            lines.map(|(line, _)| *line).collect()
        };
        let (gained, lost) = (lines(&|a, b| !a && b), lines(&|a, b| a && !b));
        assert!(!gained.is_empty());
        losses += lost.len();
        let change = &found["lines"][index];
        assert_eq!(change["arch"], arch);
        assert_eq!(change["newly_covered"], json!(gained), "{arch}");
        assert_eq!(change["newly_missed"], json!(lost), "{arch}");
        let totals = &found["totals"][index];
        assert_eq!(totals["lines"]["before"]["total"], before.len());
        let covered = |lines: &BTreeMap<u32, u64>| lines.values().filter(|line| **line > 0).count();
        assert_eq!(totals["lines"]["before"]["covered"], covered(&before));
        assert_eq!(totals["lines"]["after"]["covered"], covered(&after));
    }
    assert!(losses > 0);
    assert_eq!(found["totals"][2]["name"], "all");
    assert_eq!(found["functions"], json!([]));

    let output = diff(&place, &["--fail-on-loss"]);
    let path = place.path().join("kernel.hip");
    let line = format!(
        "rocov: gate: gfx942: {}: lines 10, 12-13 no longer run\n",
        path.display()
    );
    assert_eq!(stderr(&output), line);
    assert_eq!(output.status.code(), Some(3));
    let output = diff(&place, &["--fail-on-loss", "--arch=gfx90a"]);
    assert_eq!(
        (stderr(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
    let expected = "\
before -> after

        What              Before          After         Change
gfx90a  lines       75.00% (6/8)  100.00% (8/8)  +25.00 points
gfx90a  functions  100.00% (1/1)  100.00% (1/1)              =
gfx90a  regions     50.00% (3/6)   66.67% (4/6)  +16.67 points
gfx90a  branches    25.00% (1/4)   75.00% (3/4)  +50.00 points

Files whose lines changed:
  kernel.hip, on gfx90a: 75.00% (6/8) -> 100.00% (8/8)

Newly covered lines:
  kernel.hip, on gfx90a: 12-13
";
    assert_eq!(stdout(&output), expected);
}

pub(crate) const KERNELS: &str = "\
#define __global__ __attribute__((global))
#define KERNEL extern \"C\" __global__ void
KERNEL moved(int *value) {
  if (*value > 3) {
    *value = 1;
  }
}
KERNEL grown(int *value) {
  *value = 1;
}
KERNEL removed(int *value) {
  *value = 1;
}
KERNEL stopped(int *value) {
  *value = 1;
}
KERNEL started(int *value) {
  *value = 1;
}
";

/// The source with a comment at the top, a kernel with a branch more, and others instead of one.
pub(crate) fn later() -> String {
    let grown = "KERNEL grown(int *value) {\n  if (*value)\n    *value = 2;\n";
    let removed = "KERNEL removed(int *value) {\n  *value = 1;\n}\n";
    let added = removed.replace("removed", "added") + &removed.replace("removed", "unused");
    let later = KERNELS.replace("KERNEL grown(int *value) {\n", grown);
    "// Once more.\n".to_owned() + &later.replace(removed, &added)
}

#[test]
fn functions_are_known_though_the_source_is_another() {
    let place = Place::new();
    let before: Counts<'_> = &|name, number| u64::from(name != "started" && number == 0);
    let after: Counts<'_> = &|name, number| {
        u64::from(!["stopped", "unused"].contains(&name) && (name != "grown" || number == 0))
    };
    ran(&place, "before", "one/src/k.hip", KERNELS, "gfx90a", before);
    ran(&place, "after", "two/src/k.hip", &later(), "gfx90a", after);
    let found = json(&place);
    let [old, source] = ["one", "two"].map(|path| place.path().join(path).join("src/k.hip"));
    let functions = found["functions"].as_array().unwrap();
    let functions = functions.iter().map(|function| {
        assert_eq!(function["is_kernel"], true);
        let is_gone = function["change"] == "gone";
        let source = if is_gone { &old } else { &source };
        assert_eq!(function["filename"], source.to_str().unwrap());
        (
            function["change"].as_str().unwrap(),
            function["symbol"].as_str().unwrap(),
        )
    });
    let expected = [
        ("gained", "added"),
        ("gained", "started"),
        ("lost", "stopped"),
        ("gone", "removed"),
        ("new", "unused"),
        ("changed", "grown"),
    ];
    assert_eq!(functions.collect::<Vec<_>>(), expected);
    // The branch in the kernel that moved by a line: `then` alone is new in it.
    let counts = counted(&place, "after", "gfx90a");
    let then = later()
        .lines()
        .position(|line| line == "    *value = 1;")
        .unwrap() as u32
        + 1;
    assert_eq!(counts[&then], 1);
    let started = later()
        .lines()
        .position(|line| line.contains("started"))
        .unwrap() as u32
        + 1;
    let gained = [then, then + 1, started, started + 1, started + 2];
    assert_eq!(found["lines"][0]["newly_covered"], json!(gained));

    let output = diff(
        &place,
        &["--markdown", "--fail-on-loss", "--output-path=out.md"],
    );
    let said = stderr(&output);
    let stopped = later()
        .lines()
        .position(|line| line.contains("stopped"))
        .unwrap()
        + 1;
    let expected = [
        format!(
            "rocov: gate: gfx90a: {}: lines {stopped}-{} no longer run",
            source.display(),
            stopped + 2
        ),
        format!(
            "rocov: gate: gfx90a: kernel stopped no longer runs ({}:{stopped})",
            source.display()
        ),
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let markdown = fs::read_to_string(place.path().join("out.md")).unwrap();
    for part in [
        "| gfx90a | functions | 80.00% (4/5) | 66.67% (4/6) | -13.33 points |\n",
        "\n**Functions that ran before, but are gone**\n\n- kernel removed (one/src/k.hip:11), on gfx90a: had 3/3 \
        lines\n",
        "\n**Changed functions, whose lines are not compared**\n\n- kernel grown (two/src/k.hip:9), on gfx90a: 3/3 -> 4/5 lines\n",
    ] {
        assert!(markdown.contains(part), "{part} in {markdown}");
    }
}

#[test]
fn reports_in_json_are_compared_as_the_data_that_they_are_of() {
    let place = Place::new();
    // llvm-cov leaves the side that is never false out.
    let text = KERNELS.replace("if (*value > 3)", "while (true) if (*value > 3)");
    let before: Counts<'_> = &|name, number| u64::from(name != "started" && number == 0);
    ran(&place, "before", "src/k.hip", &text, "gfx90a", before);
    ran(&place, "after", "src/k.hip", &later(), "gfx90a", &|_, _| 1);
    for name in ["before", "after"] {
        let mut report = rocov();
        report
            .current_dir(place.path())
            .args(["report", name, "--json"]);
        run(report.arg(format!("--output-path={name}.json")));
    }
    let of = |names: [&str; 2], arguments: &[&str]| {
        let mut diff = rocov();
        diff.current_dir(place.path()).arg("diff").args(names);
        let output = diff.args(arguments).output().unwrap();
        let said = stdout(&output).replace(".json", "");
        (output.status.code(), said, stderr(&output))
    };
    for format in ["--json", "--markdown", "--fail-on-loss"] {
        let expected = of(["before", "after"], &[format]);
        assert_eq!(of(["before.json", "after.json"], &[format]), expected);
        assert_eq!(of(["before.json", "after"], &[format]), expected);
        assert!(expected.1.contains("grown"), "{expected:?}");
    }
    // A comparison of an arch that neither report has is one with losses.
    let reports = ["before.json", "after.json"];
    let (status, _, said) = of(reports, &["--arch=gfx999", "--fail-on-loss"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("no profile of gfx999 in before.json"),
        "{said}"
    );
    assert!(said.contains("gfx90a"), "{said}");
    for names in [reports, ["before", "after"]] {
        let (status, table, said) = of(names, &["--include=zz*", "--fail-on-loss"]);
        assert_eq!((status, &*table), (Some(1), ""), "{said}");
        assert!(said.starts_with("rocov: nothing to compare: "), "{said}");
    }
    fs::write(place.path().join("figures.json"), {
        let mut report = rocov();
        report.current_dir(place.path());
        run(report.args(["report", "after", "--json", "--summary-only"])).stdout
    })
    .unwrap();
    fs::write(place.path().join("other.json"), "{\"data\": []}").unwrap();
    for (name, expected) in [
        (
            "figures.json",
            "contains no functions; write it without --summary-only",
        ),
        (
            "other.json",
            "is not a report that `rocov report --json` of this version wrote",
        ),
    ] {
        let (status, _, said) = of(["before", name], &[]);
        assert_eq!(status, Some(1));
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_is_not_there_at_all_is_a_loss() {
    let place = Place::new();
    let all: Counts<'_> = &|_, _| 1;
    ran(&place, "before", "src/k.hip", KERNELS, "gfx90a", all);
    ran(&place, "after", "src/k.hip", KERNELS, "gfx90a", all);
    let output = diff(&place, &["--fail-on-loss"]);
    assert_eq!(
        (stderr(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
    assert!(!stdout(&output).contains(':'), "{}", stdout(&output));

    let other = KERNELS
        .replace("KERNEL ", "KERNEL other_")
        .replace("define KERNEL other_", "define KERNEL ");
    ran(&place, "before", "src/other.hip", &other, "gfx90a", all);
    ran(&place, "before", "src/k.hip", KERNELS, "gfx942", all);
    let output = diff(&place, &["--fail-on-loss"]);
    let file = place.path().join("src/other.hip");
    let expected = [
        "rocov: gate: gfx942: nothing of it is in after".to_owned(),
        format!(
            "rocov: gate: gfx90a: {} ran but is gone: it was removed, or its code \
             object was not loaded",
            file.display()
        ),
    ];
    assert_eq!(stderr(&output).lines().collect::<Vec<_>>(), expected);
    assert_eq!(output.status.code(), Some(3));
    let output = diff(
        &place,
        &["--fail-on-loss", "--exclude=other.hip", "--arch=gfx90a"],
    );
    assert_eq!(
        (stderr(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
}

#[test]
fn a_directory_without_profiles_is_named() {
    let place = Place::new();
    ran(&place, "before", "k.hip", KERNELS, "gfx90a", &|_, _| 1);
    let message = failure(&diff(&place, &[]), 1);
    let line = "cannot compare after: after does not exist in ";
    assert!(message.contains(line), "{message}");
    fs::create_dir(place.path().join("after")).unwrap();
    let message = failure(&diff(&place, &[]), 1);
    let line = "cannot compare after: after is empty; name the directory";
    assert!(message.contains(line), "{message}");
    ran(&place, "after", "k.hip", KERNELS, "gfx90a", &|_, _| 1);
    let message = failure(&diff(&place, &["--arch=gfx942"]), 1);
    assert!(
        message.contains("no profile of gfx942 in before"),
        "{message}"
    );
}
