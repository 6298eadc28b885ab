//! Tests: what each label covers, and which of them reach a line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::report::pages::{Pages, all, attribute, text};
use crate::report::parts::{export, totals};

/// A function and its counters.
pub(crate) type Counts = (&'static str, &'static [u64]);

/// The counts of `archs.hip` on gfx90a in two tests, and in a run without a label.
pub(crate) const TESTS: [(&str, [Counts; 5]); 3] = [
    (
        "unit tests/scale",
        [
            ("_Z6scaledi", &[4]),
            ("scale", &[6, 4]),
            ("add", &[0]),
            ("_Z3sumIiET_S0_S0_", &[3, 0]),
            ("_Z3sumIdET_S0_S0_", &[0, 0]),
        ],
    ),
    (
        "add",
        [
            ("_Z6scaledi", &[0]),
            ("scale", &[0, 0]),
            ("add", &[3]),
            ("_Z3sumIiET_S0_S0_", &[3, 3]),
            ("_Z3sumIdET_S0_S0_", &[0, 0]),
        ],
    ),
    (
        "(no label)",
        [
            ("_Z6scaledi", &[0]),
            ("scale", &[1, 0]),
            ("add", &[0]),
            ("_Z3sumIiET_S0_S0_", &[0, 0]),
            ("_Z3sumIdET_S0_S0_", &[0, 0]),
        ],
    ),
];

/// The directory of their profiles in the data directory.
const DIRECTORIES: [&str; 3] = ["labels/unit%20tests/scale", "labels/add", ""];

/// A data directory with labelled profiles of `archs.hip`.
pub(crate) struct Labelled {
    pub(crate) place: Place,
    pub(crate) elf: PathBuf,
}

impl Labelled {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        let source = data("archs.hip");
        let elf = compile_source(&source, place.path(), "archs.elf", "gfx90a", &INSTRUMENTED);
        place.keep(&elf);
        Self { place, elf }
    }

    /// Writes a profile with these counts into a directory below the data directory.
    pub(crate) fn add(&self, counts: &[Counts], directory: &str) -> PathBuf {
        let name = self.place.profile_path(&self.elf, "gfx90a", 0);
        let directory = self.place.data().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name.file_name().unwrap());
        let count = |function: &str, number: u64| {
            let counts = counts.iter().find(|(name, _)| *name == function);
            counts.unwrap().1[usize::try_from(number).unwrap()]
        };
        profile::write_counts(&self.elf, &count, RAW_VERSION, &path);
        path
    }

    /// Writes those of [`TESTS`].
    pub(crate) fn add_all(&self) -> Vec<PathBuf> {
        let tests = TESTS.iter().zip(DIRECTORIES);
        let add = |((_, counts), directory): (&(_, [Counts; 5]), _)| self.add(counts, directory);
        tests.map(add).collect()
    }

    /// The counts of llvm-cov on each line with code, with these profiles.
    pub(crate) fn lines(&self, profiles: &[&Path]) -> BTreeMap<u32, u64> {
        let lcov = export(&self.place, &self.elf, profiles, "-format=lcov");
        let lcov = stdout(&lcov);
        let lines = lcov.lines().filter_map(|line| line.strip_prefix("DA:"));
        let line = |line: &str| {
            let (number, count) = line.split_once(',').unwrap();
            (number.parse().unwrap(), count.parse().unwrap())
        };
        lines.map(line).collect()
    }

    /// `rocov which` of these operands.
    fn which(&self, operands: &[&str]) -> Output {
        let mut command = rocov();
        command.current_dir(self.place.path()).arg("which");
        command.args(operands).output().unwrap()
    }
}

#[test]
fn tests_have_the_figures_of_llvm_cov_on_each_alone() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let Labelled { place, elf } = &labelled;
    let output = place.report(&[&"--json", &"--per-test"]);
    assert_eq!(stderr(&output), "");
    let found = json(output.stdout);
    let paths: Vec<_> = profiles.iter().map(PathBuf::as_path).collect();
    assert_eq!(found["data"][0]["totals"], totals(place, elf, &paths));
    let tests = found["rocov"]["tests"].as_array().unwrap();
    assert_eq!(tests.len(), TESTS.len());
    for ((name, _), profile) in TESTS.iter().zip(&profiles) {
        let test = tests.iter().find(|test| test["name"] == *name).unwrap();
        let column = &test["columns"][0];
        assert_eq!(column["name"], "gfx90a");
        assert_eq!(
            column["summary"],
            totals(place, elf, &[profile.as_path()]),
            "{name}"
        );
    }
    // By hand: `scaled` ran in the first alone, `add` in the second; all that the third ran, the first
    // did too.
    let only = |name: &str| {
        let test = tests.iter().find(|test| test["name"] == name).unwrap();
        test["columns"][0]["only"].clone()
    };
    assert_eq!(only("unit tests/scale")["functions"], 1);
    assert_eq!(only("add")["functions"], 1);
    for what in ["lines", "functions", "regions"] {
        assert_eq!(only("(no label)")[what], 0, "{what}");
    }
    let said = stdout(&place.report(&[&"--per-test"]));
    let (table, parts) = said.split_once("\ngfx90a by test:\n\n").unwrap();
    assert!(
        table.starts_with("gfx90a: 3 profiles of 1 code object\n"),
        "{said}"
    );
    let lines = only("add")["lines"].to_string();
    assert_eq!(columns(parts, "add")[7], lines, "{said}");
    run(place.command().args(["--html=pages", "--per-test"]));
    let pages = Pages::read(&place.path().join("pages"));
    let rows = pages.rows("tests.html", "parts");
    let add = rows.iter().find(|row| row[0] == "add").unwrap();
    assert_eq!(add[6], lines, "{rows:?}");
    assert_eq!(rows[0][..3], ["Test", "Number", "Counted on"]);
    // The lines that llvm-cov has covered with the profile of `add`, and not with each of the others.
    let covered = |profile: &Path| {
        let lines = labelled.lines(&[profile]).into_iter();
        let ran = lines.filter(|(_, count)| *count > 0);
        ran.map(|(line, _)| line).collect::<BTreeSet<_>>()
    };
    let [first, of_add, third] = [0, 1, 2].map(|index| covered(&profiles[index]));
    let alone: Vec<_> = (&(&of_add - &first) - &third).into_iter().collect();
    let mut links = all(pages.page("tests.html"), ".parts th a").into_iter();
    let link = links.find(|link| text(*link) == "add").unwrap();
    let reached = all(pages.page(attribute(link, "href")), ".reached tbody td");
    let shown = text(reached[2]).replace(", ", ",");
    let ranges = shown.split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let [first, last] = [first, last].map(|line| line.parse::<u32>().unwrap());
        // A range goes over lines without code.
        (first..=last).filter(|line| of_add.contains(line))
    });
    assert_eq!(ranges.collect::<Vec<_>>(), alone);
    assert_eq!(alone.len().to_string(), lines);
    let said = stdout(&place.report(&[&"--per-test", &"--markdown"]));
    assert!(said.contains("| `unit tests/scale` | gfx90a | "), "{said}");
}

/// The files that llvm-cov has covered lines in, with the counts of each test.
#[test]
fn tests_have_the_files_that_they_ran() {
    let labelled = Labelled::new();
    let idle = TESTS[0].1.map(|(name, _)| (name, &[0, 0][..]));
    let runs = [("add", TESTS[1].1), ("idle", idle)];
    let runs = runs.map(|(name, counts)| (name, labelled.add(&counts, &format!("labels/{name}"))));
    let place = &labelled.place;
    let tests = |options: &[&dyn AsRef<OsStr>]| {
        let output =
            place.report(&[&[&"--json" as &dyn AsRef<OsStr>, &"--per-test"], options].concat());
        json(output.stdout)["rocov"]["tests"].clone()
    };
    let found = tests(&[]);
    for (test, (name, profile)) in found.as_array().unwrap().iter().zip(&runs) {
        assert_eq!(test["name"], *name);
        let alone = json(export(place, &labelled.elf, &[profile], "-format=text").stdout);
        let files = alone["data"][0]["files"].as_array().unwrap().iter();
        let ran = files.filter(|file| file["summary"]["lines"]["covered"] != 0);
        let ran: Vec<_> = ran.map(|file| file["filename"].clone()).collect();
        assert_eq!(ran.is_empty(), *name == "idle");
        assert_eq!(test["columns"][0]["files"], Value::from(ran), "{name}");
    }
    let figures = tests(&[&"--summary-only"]);
    assert_eq!(figures[0]["columns"][0]["files"], Value::Null);
}

#[test]
fn the_first_page_names_kernels_that_never_ran_and_the_nearest_tests() {
    let labelled = Labelled::new();
    // Without the test `add`, which launches the kernel `add`.
    let near = labelled.add(&TESTS[0].1, DIRECTORIES[0]);
    let other = labelled.add(&TESTS[2].1, "labels/other");
    run(labelled
        .place
        .command()
        .args(["--html=pages", "--per-test"]));
    let pages = Pages::read(&labelled.place.path().join("pages"));
    let index = pages.page("index.html");
    let [row] = all(index, ".never tbody tr")[..] else {
        panic!("{}", index.html());
    };
    let link = all(row, "th a")[0];
    assert_eq!(text(link), "add");
    assert!(attribute(link, "href").ends_with("#L31"), "{}", row.html());
    let near_to = all(row, ".near div").into_iter().map(text);
    let reached = |profile: &Path| {
        let lines = labelled.lines(&[profile]).into_values();
        lines.filter(|count| *count > 0).count()
    };
    let expected = [("unit tests/scale", near), ("other", other)]
        .map(|(name, profile)| format!("{name} reaches {} lines of this file", reached(&profile)));
    assert_eq!(near_to.collect::<Vec<_>>(), expected);
    let about = all(index, "section:has(.never) .about")[0];
    assert_eq!(text(about), "1 of 2 kernels.");

    // All kernels.
    labelled.add_all();
    run(labelled
        .place
        .command()
        .args(["--html=pages", "--per-test"]));
    let pages = Pages::read(&labelled.place.path().join("pages"));
    let about = all(
        pages.page("index.html"),
        "[aria-labelledby=never-ran] .about",
    )[0];
    assert_eq!(text(about), "None: all 2 kernels ran.");
}

/// Each section has the counts of llvm-cov on its test alone, and they add up to the report without tests. The count of a
/// line is the largest of its regions, which can be another one in each test, so that the sum may be larger.
#[test]
fn sections_of_lcov_are_those_of_tests() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let place = &labelled.place;
    run(place.command().args(["--lcov", "tests.info", "--per-test"]));
    run(place.command().args(["--lcov", "whole.info"]));
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    // The records of each line, branch and function, without their counts; and their counts.
    let counts = |section: &str| -> BTreeMap<String, u64> {
        let records = section.lines().filter_map(|line| {
            let (kind, values) = line.split_once(':')?;
            let (key, count) = match kind {
                "DA" | "BRDA" => values.rsplit_once(',')?,
                "FNDA" => values.split_once(',').map(|(count, key)| (key, count))?,
                _ => return None,
            };
            let count = if count == "-" { "0" } else { count };
            Some((format!("{kind}:{key}"), count.parse().unwrap()))
        });
        records.collect()
    };
    let text = read("tests.info");
    let sections: Vec<_> = text.split_inclusive("end_of_record\n").collect();
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for ((label, _), profile) in TESTS.iter().zip(&profiles) {
        let name = match *label {
            "(no label)" => "",
            label => &label.replace([' ', '/'], "_"),
        };
        let start = format!("TN:{name}\nSF:");
        let mut found = sections
            .iter()
            .filter(|section| section.starts_with(&start));
        let section = found.next().unwrap_or_else(|| panic!("{start} in {text}"));
        assert_eq!(found.next(), None);
        let counts = counts(section);
        // The section without a name has the rest.
        for (line, count) in labelled.lines(&[profile]) {
            let found = counts[&format!("DA:{line}")];
            assert!(
                found == count || name.is_empty() && found < count,
                "{label}: {line}"
            );
        }
        for (key, count) in counts {
            *sum.entry(key).or_default() += count;
        }
    }
    assert_eq!(sections.len(), TESTS.len());
    let whole = counts(&read("whole.info"));
    assert!(sum.keys().eq(whole.keys()));
    for (key, count) in &whole {
        let is_line = key.starts_with("DA:");
        let larger = is_line && *count > 0 && sum[key] > *count;
        assert!(
            sum[key] == *count || larger,
            "{key}: {} of {count}",
            sum[key]
        );
    }

    let summary = |name: &str| {
        let mut lcov = Command::new("lcov");
        lcov.args(["--rc", "lcov_branch_coverage=1", "--summary"]);
        let output = run(lcov.arg(place.path().join(name)));
        let said = stdout(&output) + &stderr(&output);
        let figures = said.lines().filter(|line| line.contains(" of "));
        figures.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(summary("tests.info"), summary("whole.info"));
    assert_eq!(summary("tests.info").len(), 3);
    let mut genhtml = Command::new("genhtml");
    genhtml
        .current_dir(place.path())
        .args(["--show-details", "-o", "page"]);
    run(genhtml.arg("tests.info"));
    let mut grep = Command::new("grep");
    grep.args(["-rl", "unit_tests_scale"])
        .arg(place.path().join("page"));
    assert_ne!(stdout(&run(&mut grep)), "");
}

#[test]
fn without_labels_there_are_no_tests() {
    let labelled = Labelled::new();
    labelled.add(&TESTS[0].1, "");
    for output in [
        labelled.place.report(&[&"--per-test"]),
        labelled.which(&["archs.hip:4"]),
    ] {
        let message = failure(&output, 1);
        assert!(message.contains("rocov run --label NAME"), "{message}");
    }
}

/// Counts of both tests, which no one can tell apart.
pub(crate) const SHARED: (&str, [Counts; 5]) = (
    "labels/add&unit%20tests%2Fscale",
    [
        ("_Z6scaledi", &[2]),
        ("scale", &[2, 2]),
        ("add", &[1]),
        ("_Z3sumIiET_S0_S0_", &[0, 0]),
        ("_Z3sumIdET_S0_S0_", &[0, 0]),
    ],
);

#[test]
fn what_may_be_of_several_tests_is_credited_to_each() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let shared = labelled.add(&SHARED.1, SHARED.0);
    let Labelled { place, elf } = labelled;
    let found = json(place.report(&[&"--json", &"--per-test"]).stdout);
    let tests = found["rocov"]["tests"].as_array().unwrap();
    assert_eq!(tests.len(), TESTS.len());
    for ((name, _), profile) in TESTS.iter().zip(&profiles) {
        let test = tests.iter().find(|test| test["name"] == *name).unwrap();
        let (of_test, other): (&[&Path], _) = match *name {
            "add" => (&[profile, &shared], json!(["unit tests/scale"])),
            "unit tests/scale" => (&[profile, &shared], json!(["add"])),
            _ => (&[profile], Value::Null),
        };
        let expected = totals(&place, &elf, of_test);
        assert_eq!(test["columns"][0]["summary"], expected, "{name}");
        assert_eq!(test["shared_with"], other, "{name}");
    }
    let said = stdout(&place.report(&[&"--per-test"]));
    let row = said.lines().find(|line| line.starts_with("add ")).unwrap();
    assert!(row.ends_with("  unit tests/scale"), "{said}");
    let said = stdout(&place.report(&[&"--per-test", &"--markdown"]));
    assert!(said.contains("| Shared with |"), "{said}");
    run(place.command().args(["--html=pages", "--per-test"]));
    let rows = Pages::read(&place.path().join("pages")).rows("tests.html", "parts");
    let add = rows.iter().find(|row| row[0] == "add").unwrap();
    assert_eq!(add.last().unwrap(), "unit tests/scale", "{rows:?}");
}

#[test]
fn the_tests_that_reach_a_line_have_the_counts_of_llvm_cov_on_each_alone() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let shared = labelled.add(&SHARED.1, SHARED.0);
    // By test and what it is shared with, as they are to be listed.
    let of = |index: usize, label: Option<&str>, others: &[&str]| {
        let profile = [&profiles[..], std::slice::from_ref(&shared)].concat()[index].clone();
        let lines = labelled.lines(&[&profile]);
        (json!({"label": label, "shared_with": others}), lines)
    };
    let tests = [
        of(2, None, &[]),
        of(1, Some("add"), &[]),
        of(3, Some("add"), &["unit tests/scale"]),
        of(0, Some("unit tests/scale"), &[]),
        of(3, Some("unit tests/scale"), &["add"]),
    ];
    let lines: Vec<_> = tests[0].1.keys().copied().collect();
    let source = data("archs.hip");
    let source = source.to_str().unwrap();
    let places = lines.iter().map(|line| format!("{source}:{line}"));
    let places: Vec<_> = places.collect();
    let mut operands: Vec<_> = places.iter().map(String::as_str).collect();
    operands.extend(["--json", "rocov-data"]);
    let output = labelled.which(&operands);
    assert_eq!(stderr(&output), "");
    let found = json(output.stdout);
    assert_eq!(found["rocov_which"], 1);
    assert_eq!(found["lines"].as_array().unwrap().len(), lines.len());
    for (line, found) in lines.iter().zip(found["lines"].as_array().unwrap()) {
        let reaching = tests.iter().filter(|(_, counts)| counts[line] > 0);
        let expected = reaching.map(|(test, counts)| {
            let mut test = test.clone();
            test["counts"] = json!({"gfx90a": counts[line]});
            test
        });
        let tests: Vec<_> = expected.collect();
        let expected = json!({"source": source, "line": line, "archs": ["gfx90a"], "tests": tests});
        assert_eq!(*found, expected, "{line}");
    }
}

#[test]
fn sources_are_found_by_their_ends_and_what_has_no_answer_is_told() {
    let labelled = Labelled::new();
    labelled.add_all();
    let path = data("archs.hip");
    let source = path.to_str().unwrap();
    let add = fs::read_to_string(&path).unwrap();
    let add = 1 + add.lines().position(|line| line.contains(" add(")).unwrap();
    let expected = format!("{source}:{add}\nTest  gfx90a\nadd        3\n");
    for file in ["archs.hip", "data/archs.hip", source] {
        let output = labelled.which(&[&format!("{file}:{add}")]);
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
    }
    let output = labelled.which(&["archs.hip:1", "nothing.hip:3", &format!("archs.hip:{add}")]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), expected);
    let said = stderr(&output);
    let said: Vec<_> = said.lines().collect();
    let [no_code, unknown] = said[..] else {
        panic!("{said:?}");
    };
    assert!(
        no_code.contains("archs.hip:1: there is no GPU code on line 1"),
        "{no_code}"
    );
    assert!(unknown.contains("nothing.hip"), "{unknown}");
    assert!(
        unknown.contains(&format!(", but from {source}")),
        "{unknown}"
    );
    for wrong in [&["rocov-data"][..], &["archs.hip:0"], &["a:1", "b", "c"]] {
        let output = labelled.which(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&output).contains("FILE:LINE"), "{wrong:?}");
    }
}
