//! Pages that are compared with an earlier report, by llvm-cov's counts of both.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::report::browser::browse;
use crate::report::diff::{Counts, KERNELS, counted, later, ran};
use crate::report::pages::{ARCHS, Pages, all, attribute, lines_with, text};
use crate::report::repository::AFTER;

/// Data of one kernel on both archs, before and after: gfx90a gains lines, and gfx942 gains and loses some.
fn of_kernel() -> Place {
    let place = Place::new();
    let runs: [(&str, [Counts<'_>; 2]); 2] = [
        (
            "before",
            [&|_, number| u64::from(number != 2), &|_, number| {
                u64::from(number != 1)
            }],
        ),
        ("after", [&|_, _| 1, &|_, number| u64::from(number < 2)]),
    ];
    for (name, counts) in runs {
        for (arch, counts) in ARCHS.into_iter().zip(counts) {
            ran(&place, name, "kernel.hip", AFTER, arch, counts);
        }
    }
    place
}

/// Pages of the data `after`.
fn pages(place: &Place, arguments: &[&str]) -> Pages {
    let mut command = place.command();
    run(command.args(["after", "--html=out"]).args(arguments));
    Pages::read(&place.path().join("out"))
}

/// Runs rocov in a place.
fn rocov_in(place: &Place, arguments: &[&str]) {
    run(rocov().current_dir(place.path()).args(arguments));
}

/// The difference between the shares of lines that ran, in percentage points.
fn points(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> String {
    let share = |lines: &BTreeMap<u32, u64>| {
        let ran = lines.values().filter(|count| **count > 0).count();
        100.0 * ran as f64 / lines.len() as f64
    };
    let points = share(after) - share(before);
    let sign = if points < 0.0 { "−" } else { "+" };
    format!("{sign}{:.2}", points.abs())
}

/// The differences in the cells of lines of a table, for each column.
fn differences(pages: &Pages, cells: &str) -> Vec<String> {
    let cells = all(pages.page("index.html"), cells).into_iter();
    let difference = |cell| {
        all(cell, ".up, .down, .new")
            .first()
            .map(|cell| text(*cell))
    };
    cells
        .map(|cell| difference(cell).unwrap_or_default())
        .collect()
}

#[test]
fn lines_and_figures_are_compared_with_an_earlier_report() {
    let place = of_kernel();
    rocov_in(&place, &["report", "before", "--json", "-o", "before.json"]);
    for before in ["before", "before.json"] {
        let pages = pages(&place, &[&format!("--compare={before}")]);
        let page = pages.source("kernel.hip");
        let mut expected = Vec::new();
        let mut lost_anywhere = Vec::new();
        for (column, arch) in ARCHS.into_iter().enumerate() {
            let [then, now] = ["before", "after"].map(|name| counted(&place, name, arch));
            expected.push(points(&then, &now));
            let cells = all(page.root_element(), "table.source tr[id]").into_iter();
            let marked = |class: &str| -> Vec<u32> {
                let rows = cells.clone().filter(|row| {
                    let cell = all(*row, "td.n")[column];
                    cell.value().classes().any(|name| name == class)
                });
                rows.map(|row| attribute(row, "id")[1..].parse().unwrap())
                    .collect()
            };
            let turned = |is: &dyn Fn(bool, bool) -> bool| -> Vec<u32> {
                let lines = now
                    .iter()
                    .filter(|(line, count)| is(then[line] > 0, **count > 0));
                lines.map(|(line, _)| *line).collect()
            };
            let lost = turned(&|then, now| then && !now);
            assert_eq!(marked("lost"), lost, "{arch}");
            assert_eq!(marked("won"), turned(&|then, now| !then && now), "{arch}");
            lost_anywhere.extend(lost);
        }
        assert!(!lost_anywhere.is_empty());
        assert_eq!(lines_with(page, "lost"), lost_anywhere);
        let found = differences(&pages, ".files td.lines");
        assert_eq!(found[..2], expected);
        assert_eq!(differences(&pages, ".totals td.lines"), found);
        let title = text(all(pages.page("index.html"), "#since")[0]);
        assert_eq!(title, format!("Since {before}"));

        if before == "before" {
            continue;
        }
        let said = browse(&pages, &pages.source_page("kernel.hip"), "earlier", 1280);
        let shown: Vec<_> = lost_anywhere.iter().map(u32::to_string).collect();
        assert_eq!(said["rows"], json!(shown));
        assert_eq!(said["address"], "#lost");
        for contrast in ["contrast", "contrastOfOther"] {
            assert_eq!(said[contrast], json!([]), "{contrast}");
        }
        let said = browse(&pages, "index.html", "earlier", 1280);
        assert_eq!(said["rows"], json!(["kernel.hip"]));
        for contrast in ["contrast", "contrastOfOther"] {
            assert_eq!(said[contrast], json!([]), "{contrast}");
        }
        let narrow = browse(&pages, "index.html", "earlier", 500);
        assert_eq!(narrow["overflow"], 0);
    }
}

#[test]
fn figures_are_compared_with_a_baseline() {
    let place = of_kernel();
    // A file that is gone, and one that is new.
    let one = |place: &Place, data: &str, name: &str| {
        let (macros, kernels) = KERNELS.split_at(KERNELS.find("\nKERNEL").unwrap());
        let text = macros.to_owned() + &kernels.replace("KERNEL ", &format!("KERNEL {name}_"));
        ran(
            place,
            data,
            &format!("{name}.hip"),
            &text,
            "gfx90a",
            &|_, _| 1,
        );
    };
    one(&place, "before", "old");
    one(&place, "after", "fresh");
    let mut baseline = rocov();
    baseline.env("SOURCE_DATE_EPOCH", "1795219200");
    run(baseline
        .current_dir(place.path())
        .args(["baseline", "before"]));
    let by_report = pages(&place, &["--compare=before"]);
    let lines = differences(&by_report, ".files td.lines");
    assert_eq!(lines[..3], ["new", "", "new"], "{lines:?}");
    for option in [
        "--compare=rocov-baseline.json",
        "--baseline=rocov-baseline.json",
    ] {
        // The baseline is a gate, too, which does not hold here.
        let mut command = place.command();
        command
            .args(["after", "--html=out", option])
            .output()
            .unwrap();
        let by_baseline = Pages::read(&place.path().join("out"));
        for cells in [".files td.m", ".totals td.m"] {
            let found = differences(&by_baseline, cells);
            assert_eq!(found, differences(&by_report, cells));
            assert!(found.iter().any(|number| !number.is_empty()));
        }
        let index = by_baseline.page("index.html");
        assert_eq!(text(all(index, "#since")[0]), "Since 2026-11-21");
        let about = text(all(index, "#since + .about")[0]);
        assert!(
            about.contains("It has figures only: --compare with"),
            "{about}"
        );
        assert!(about.ends_with("Not here any more: old.hip."), "{about}");
        let page = by_baseline.source("kernel.hip");
        assert_eq!(lines_with(page, "lost"), [0; 0]);
    }
    // An arch that the baseline lacks has no differences.
    rocov_in(
        &place,
        &["baseline", "before", "--arch=gfx942", "-o", "other.json"],
    );
    let of_other = pages(&place, &["--compare=other.json"]);
    let lines = differences(&of_other, ".files td.lines");
    let [then, now] = ["before", "after"].map(|name| counted(&place, name, "gfx942"));
    let all_columns = ["", &points(&then, &now), ""];
    assert_eq!(lines.last_chunk(), Some(&all_columns.map(str::to_owned)));
    // With another filter, sources that it leaves out are not gone.
    let some = pages(
        &place,
        &["--compare=rocov-baseline.json", "--include=kernel.hip"],
    );
    let about = text(all(some.page("index.html"), "#since + .about")[0]);
    assert!(!about.contains("Not here any more"), "{about}");
}

#[test]
fn functions_that_do_not_run_any_more_are_on_the_first_page() {
    let place = Place::new();
    let before: Counts<'_> = &|name, number| u64::from(name != "started" && number == 0);
    let after: Counts<'_> = &|name, _| u64::from(!["stopped", "unused"].contains(&name));
    ran(&place, "before", "one/src/k.hip", KERNELS, "gfx90a", before);
    ran(&place, "after", "two/src/k.hip", &later(), "gfx90a", after);
    let pages = pages(&place, &["--compare=before"]);
    let line = later().lines().position(|line| line.contains("stopped"));
    let place_of = format!("k.hip:{}", line.unwrap() + 1);
    let rows = pages.rows("index.html", "lost-functions");
    assert_eq!(rows[1..], [["kernel stopped".to_owned(), place_of]]);
    // Files are the same though their directories are not.
    let about = text(all(pages.page("index.html"), "#since + .about")[0]);
    assert!(!about.contains("Not here any more"), "{about}");
    let mut command = place.command();
    let output = command.args(["after", "--html=out", "--compare=none"]);
    let said = failure(&output.output().unwrap(), 1);
    assert!(
        said.starts_with("rocov: cannot compare with none: "),
        "{said}"
    );
    let mut command = place.command();
    let output = command.args(["after", "--compare=before"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--html <PATH>"));
}
