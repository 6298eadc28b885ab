//! Reports in the formats of other tools, read by these tools or by what describes them.

use std::collections::BTreeMap;

use super::*;
use crate::report::archs::expected_lines;
use crate::report::pages::Pages;

/// The counts of both archs together on each line.
fn expected() -> Vec<(u32, u64)> {
    expected_lines(|counts| counts.iter().flatten().copied().reduce(|a, b| a + b))
}

/// The branches of archs.hip, by line: how often each side was taken, on both archs together and in
/// both instances of the template.
const BRANCHES: [(u32, [u64; 2]); 3] = [(7, [2, 0]), (17, [3, 3]), (24, [6, 2])];

/// Writes a report of archs.hip to a file.
fn written(format: &str) -> (Place, PathBuf) {
    let (place, elfs) = Place::with_archs();
    let path = place.path().join("report");
    let said = place.of_archs(&elfs, &[format, "--output=report"]);
    assert_eq!(said, "", "the report goes to the file only");
    (place, path)
}

/// Validates a file by xmllint and returns the values of attributes: those that `xpath` gives.
struct Xml(PathBuf);

impl Xml {
    fn validate(&self, option: &str, by: &str) {
        let mut xmllint = Command::new("xmllint");
        run(xmllint
            .arg("--noout")
            .arg(option)
            .arg(data(by))
            .arg(&self.0));
    }

    fn attributes(&self, xpath: &str) -> Vec<String> {
        let mut xmllint = Command::new("xmllint");
        // The description is not on this machine, and nothing is to be fetched.
        xmllint.args(["--nonet", "--xpath", xpath]).arg(&self.0);
        let said = stdout(&run(&mut xmllint));
        let values = said.lines().filter_map(|line| {
            let (_, value) = line.split_once("=\"")?;
            value.strip_suffix('"').map(str::to_owned)
        });
        values.collect()
    }

    fn attribute(&self, xpath: &str) -> String {
        let values = self.attributes(xpath);
        assert_eq!(values.len(), 1, "{xpath}: {values:?}");
        values[0].clone()
    }
}

/// Some services fail on counts of more than 31 bits.
#[test]
fn counts_above_a_largest_one_are_that_one() {
    const MOST: u64 = 2_147_483_647;
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    let raw = place.profile_path(&elf, "gfx90a", 0);
    let count = |_: &str, number: u64| [10_485_760_000, MOST, 7][number as usize % 3];
    profile::write_counts(&elf, &count, RAW_VERSION, &raw);
    let lines = |tracefile: &str| -> Vec<(u32, u64)> {
        crate::report::archs::lcov_lines(tracefile)
            .into_iter()
            .collect()
    };
    let export = crate::report::parts::export(&place, &elf, &[&raw], "-format=lcov");
    let all = lines(&stdout(&export));
    assert!(all.iter().any(|(_, count)| *count > MOST), "{all:?}");
    let capped: Vec<_> = all
        .iter()
        .map(|(line, count)| (*line, MOST.min(*count)))
        .collect();
    let lcov = stdout(&place.report(&[&"--lcov", &"--max-count=2147483647"]));
    assert_eq!(lines(&lcov), capped);
    assert_eq!(lines(&stdout(&place.report(&[&"--lcov"]))), all);
    let xml = place.path().join("report.xml");
    run(place
        .command()
        .args(["--cobertura", "--max-count=2147483647", "-oreport.xml"]));
    let hits = Xml(xml).attributes("//class/lines/line/@hits");
    let expected: Vec<_> = capped.iter().map(|(_, count)| count.to_string()).collect();
    assert_eq!(hits, expected);
    for wrong in [
        &["--max-count=9"][..],
        &["--json", "--max-count=9"],
        &["--lcov", "--max-count=0"],
    ] {
        let output = place.command().args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn lcov_and_genhtml_read_the_tracefile() {
    let (place, path) = written("--lcov");
    let mut lcov = Command::new("lcov");
    lcov.args(["--rc", "lcov_branch_coverage=1", "--summary"]);
    let output = run(lcov.arg(&path));
    let said = stdout(&output) + &stderr(&output);
    for figure in [
        "(26 of 26 lines)",
        "(5 of 5 functions)",
        "(5 of 6 branches)",
    ] {
        assert!(said.contains(figure), "{said}");
    }
    let page = place.path().join("page");
    let mut genhtml = Command::new("genhtml");
    genhtml
        .args(["--branch-coverage", "-o"])
        .arg(&page)
        .arg(&path);
    let said = stdout(&run(&mut genhtml));
    assert!(said.contains("(5 of 6 branches)"), "{said}");
    let source = fs::read_to_string(page.join("data/archs.hip.gcov.html"))
        .or_else(|_| fs::read_to_string(page.join("archs.hip.gcov.html")))
        .unwrap();
    assert!(source.contains("return value * 2;"), "{source}");
}

#[test]
fn cobertura_is_as_its_dtd_says_and_has_the_counts() {
    let (_place, path) = written("--cobertura");
    let xml = Xml(path);
    xml.validate("--dtdvalid", "cobertura.dtd");
    for (name, value) in [
        ("lines-covered", "26"),
        ("lines-valid", "26"),
        ("branches-covered", "5"),
        ("branches-valid", "6"),
        ("line-rate", "1.0000"),
        ("branch-rate", "0.8333"),
    ] {
        assert_eq!(
            xml.attribute(&format!("/coverage/@{name}")),
            value,
            "{name}"
        );
    }
    let source = data("archs.hip").display().to_string();
    assert_eq!(xml.attribute("//class/@filename"), source);

    let numbers = xml.attributes("//class/lines/line/@number");
    let hits = xml.attributes("//class/lines/line/@hits");
    let number = |text: &String| text.parse::<u64>().unwrap();
    let lines: Vec<_> = numbers
        .iter()
        .map(number)
        .zip(hits.iter().map(number))
        .collect();
    let expected = expected()
        .into_iter()
        .map(|(line, count)| (line.into(), count));
    assert_eq!(lines, expected.collect::<Vec<_>>());

    let numbers = xml.attributes("//class/lines/line[@branch='true']/@number");
    let coverage = xml.attributes("//line[@branch='true']/@condition-coverage");
    let branches = BRANCHES.map(|(line, sides)| {
        let covered = sides.iter().filter(|count| **count > 0).count();
        (line.to_string(), format!("{}% ({covered}/2)", 50 * covered))
    });
    let found: Vec<_> = numbers.into_iter().zip(coverage).collect();
    assert_eq!(found, branches);

    let names = xml.attributes("//method/@name");
    assert!(names.contains(&"scaled(int)".to_owned()), "{names:?}");
    let instance = "double sum&lt;double&gt;(double, double)".to_owned();
    assert!(names.contains(&instance), "{names:?}");
}

#[test]
fn sonar_is_as_its_schema_says_and_has_the_lines() {
    let (_place, path) = written("--sonar");
    let xml = Xml(path);
    xml.validate("--schema", "sonar.xsd");
    let source = data("archs.hip").display().to_string();
    assert_eq!(xml.attribute("/coverage/file/@path"), source);
    let numbers = xml.attributes("//lineToCover/@lineNumber");
    let covered = xml.attributes("//lineToCover/@covered");
    let lines: Vec<_> = numbers.into_iter().zip(covered).collect();
    let expected = expected().into_iter();
    let expected = expected.map(|(line, count)| (line.to_string(), (count > 0).to_string()));
    assert_eq!(lines, expected.collect::<Vec<_>>());
    for (line, sides) in BRANCHES {
        let line = format!("//lineToCover[@lineNumber='{line}']");
        let covered = sides.iter().filter(|count| **count > 0).count();
        assert_eq!(xml.attribute(&format!("{line}/@branchesToCover")), "2");
        assert_eq!(
            xml.attribute(&format!("{line}/@coveredBranches")),
            covered.to_string()
        );
    }
}

#[test]
fn a_line_that_ran_on_no_arch_is_not_covered() {
    let (place, elfs) = Place::with_archs();
    let arguments = ["--sonar", "--arch=gfx942", "--output=report"];
    place.of_archs(&elfs, &arguments);
    let xml = Xml(place.path().join("report"));
    let missed = xml.attributes("//lineToCover[@covered='false']/@lineNumber");
    let expected = expected_lines(|counts| counts[1].filter(|count| *count == 0));
    let expected = expected.iter().map(|(line, _)| line.to_string());
    assert_eq!(missed, expected.collect::<Vec<_>>());
}

#[test]
fn markdown_is_as_reviewed() {
    let (place, elfs) = Place::with_archs();
    let folder = data("").parent().unwrap().to_path_buf();
    let map = format!("--path-map={}=.", folder.display());
    let said = place.of_archs(&elfs, &["--markdown", &map]);
    let expected = "\
### Coverage of GPU code

| | Lines | Functions | Regions | Branches |
|---|---:|---:|---:|---:|
| gfx90a | 100.00% (22/22) | 100.00% (4/4) | 100.00% (10/10) | 100.00% (4/4) |
| gfx942 | 45.83% (11/24) | 50.00% (2/4) | 46.15% (6/13) | 33.33% (2/6) |
| **all** | 100.00% (26/26) | 100.00% (4/4) | 92.31% (12/13) | 83.33% (5/6) |

<details><summary>Files: lines</summary>

| File | gfx90a | gfx942 | **all** | Not run |
|---|---:|---:|---:|---|
| `data/archs.hip` | 100.00% | 45.83% | 100.00% | on gfx942: 13, 16-21, 27-28, 31-34 |

</details>
";
    assert_eq!(said, expected);
}

/// One call writes what a call for each format writes.
#[test]
fn all_formats_are_written_in_one_call() {
    let labelled = crate::report::per_test::Labelled::new();
    labelled.add_all();
    let place = labelled.place;
    let report = |arguments: &[&str]| {
        let mut command = place.command();
        // Cobertura's format has the time of the report.
        command
            .env("SOURCE_DATE_EPOCH", "1790000000")
            .arg("--per-test");
        stdout(&run(command.args(arguments)))
    };
    let formats = ["lcov", "cobertura", "json", "sonar", "markdown"];
    let options = formats.map(|format| format!("--{format}"));
    let files = formats.map(|format| format!("all.{format}"));
    let mut all = vec!["--html", "pages", "-o", "all.table"];
    for (option, file) in options.iter().zip(&files) {
        all.extend([option.as_str(), file]);
    }
    // Nothing else goes to standard output.
    assert_eq!(report(&all), "pages/index.html\n");
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    for (option, file) in options.iter().zip(&files) {
        let alone = report(&[option]);
        assert!(!alone.is_empty());
        assert_eq!(read(file), alone, "{option}");
    }
    let table = report(&[]);
    assert_eq!(read("all.table"), table);
    let tests = Pages::read(&place.path().join("pages")).rows("tests.html", "parts");
    for (name, _) in crate::report::per_test::TESTS {
        assert!(tests.iter().any(|row| row[0] == name), "{name}: {tests:?}");
    }

    // The place of one format.
    let lcov = report(&["--lcov"]);
    for arguments in [
        &["--lcov", "-o", "one"][..],
        &["--lcov", "--output-path", "one"],
        &["--lcov", "one"],
        &["--lcov=one"],
        &["-oone", "--lcov", "rocov-data"],
        &["--lcov", "one", "rocov-data"],
    ] {
        assert_eq!(report(arguments), "", "{arguments:?}");
        assert_eq!(read("one"), lcov, "{arguments:?}");
        fs::remove_file(place.path().join("one")).unwrap();
    }
    for (arguments, expected) in [
        (&["--lcov", "rocov-data"][..], &lcov),
        (&["--lcov", "--cobertura", "one"], &lcov),
        (&["--lcov", "--html", "pages"], &lcov),
        (&["--lcov=-", "-o", "one"], &lcov),
        (&["--lcov", "-o", "one", "--table", "-"], &table),
        (&["--lcov", "one", "-o-"], &table),
        (&["--table", "--html", "pages"], &table),
    ] {
        assert_eq!(report(arguments), *expected, "{arguments:?}");
    }
}

#[test]
fn a_badge_is_an_image_with_the_lines_of_all() {
    let (_place, path) = written("--badge");
    let xml = Xml(path.clone());
    let label = xml.attribute("/*/@aria-label");
    assert_eq!(
        label,
        "GPU coverage: 100.00% (26/26) of lines on gfx90a, gfx942"
    );
    let image = fs::read_to_string(path).unwrap();
    assert!(
        image.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""),
        "{image}"
    );
    assert!(image.contains(">100%</text>"), "{image}");
    // It needs nothing from elsewhere.
    assert_eq!(image.matches("http").count(), 1, "{image}");
}

#[test]
fn functions_can_be_left_out_of_json() {
    let (place, elfs) = Place::with_archs();
    let read = |options: &[&str]| json(place.of_archs(&elfs, options));
    let whole = read(&["--json"]);
    let mut expected = whole.clone();
    for export in expected["data"].as_array_mut().unwrap() {
        export.as_object_mut().unwrap().remove("functions").unwrap();
    }
    let found = read(&["--json", "--skip-functions"]);
    assert_eq!(found["data"], expected["data"]);
}

#[test]
fn formats_with_one_place_are_refused() {
    let place = Place::new();
    for arguments in [
        &["--lcov", "--json"][..],
        &["--lcov", "--json=-"],
        &["--lcov", "--json", "-oreport"],
        &["--lcov", "report", "--json", "./report"],
        &["--table", "report", "--output", "other"],
        &["--html", "x.html", "--lcov", "x.html"],
        &["--summary-only"],
        &["--show", "--lcov"],
        &["--show", "--sort=worst"],
        &["--fail-under-lines=101"],
        &["--output"],
    ] {
        let output = place.command().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let output = place.report(&[&"--lcov", &"--json"]);
    let said = stderr(&output);
    let expected = "--lcov and --json both go to standard output: use another file for one of them, as in `--json \
    FILE`";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn each_binary_has_figures_of_its_own() {
    let place = Place::new();
    let one = compile(place.path(), "one.elf", "gfx90a", &INSTRUMENTED);
    let flags = [&INSTRUMENTED[..], &["-O0"]].concat();
    let other = compile(place.path(), "other.elf", "gfx90a", &flags);
    place.profile(&one, "gfx90a", 0, 1);
    place.profile(&other, "gfx90a", 0, 0);
    let report = |by: &str| {
        let said = stdout(&place.report(&[&by, &"--object", &one, &other]));
        let mut totals = BTreeMap::new();
        let mut label = String::new();
        for line in said.lines() {
            match line.split_once(' ') {
                Some(("TOTAL", _)) => {
                    drop(totals.insert(label.clone(), columns(line, "TOTAL")[8].to_owned()))
                }
                _ if line.starts_with("gfx") || line.starts_with("all:") => {
                    line.clone_into(&mut label)
                }
                _ => {}
            }
        }
        totals
    };
    let missed = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        owned.collect()
    };
    // Both objects have the same functions: a line ran in all if it ran in one.
    assert_eq!(
        report("--by=binary"),
        missed(&[
            ("gfx90a one.elf", "2"),
            ("gfx90a other.elf", "10"),
            ("all: gfx90a one.elf, gfx90a other.elf", "2")
        ])
    );
    assert_eq!(
        report("--by=arch"),
        missed(&[("gfx90a: 2 profiles of 2 code objects", "2")])
    );
}
