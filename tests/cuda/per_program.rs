//! Counts of programs instead of threads, in all formats.

use std::fs;

use crate::instrument::{Uncounted, data};
use crate::setup::step;
use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};
use crate::support::json::json;

const SOURCE: &str = "\
def rows(p, n):
    i = program_id(0)
    if i < n:
        p[i] = i
    p[0] = n

def free(p):
    p[1] = 1
";

/// A kernel with programs of 128 threads, and one that leaves the number to the launch.
fn ptx(source: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n\n.visible .entry rows(.param .u64 p)\n.reqntid 128\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .b32 %r<2>;\n\t.loc 1 2 1\n\tmov.u32 %r1, %tid.x;\n\t.loc 1 3 1\n\
         \tsetp.gt.u32 %p1, %r1, 7;\n\t@%p1 bra $L;\n\t.loc 1 4 1\n\tadd.u32 %r1, %r1, 1;\n$L:\n\t.loc 1 5 1\n\tret;\n}}\n\
         .visible .entry free(.param .u64 p)\n.maxntid 256\n{{\n\t.loc 1 8 1\n\tret;\n}}\n.file 1 \"{source}\"\n"
    )
}

/// The records of LCOV that have counts.
fn counted(lcov: &str) -> Vec<&str> {
    let kinds = ["DA:", "FNDA:", "TN:"];
    let lines = lcov.lines();
    lines
        .filter(|line| kinds.iter().any(|kind| line.starts_with(kind)))
        .collect()
}

#[test]
fn a_report_has_counts_of_programs() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let place = data();
    let source = place.path().join("kernels.py");
    fs::write(&source, SOURCE).expect("it can be written");
    let text = ptx(&source.display().to_string());
    let file = uncounted.file("kernels.text", format!("{text}\0"));
    // Four programs, of which one runs the body in half of its threads; and 96 threads.
    let counts = Uncounted::plant(&text, "512,64,512,96");
    let counted_in = place.path().join("rocov-data");
    let steps = [
        step("load", &file),
        "label:a".to_owned(),
        counts,
        "pop".to_owned(),
    ];
    run(&mut uncounted.command(&counted_in, &steps)).success();
    let report = |options: &[&str]| -> Ended {
        let mut report = limited(built("rocov"));
        report.current_dir(place.path()).arg("report");
        run(report.args(options)).success()
    };

    let threads = [
        "FNDA:512,rows",
        "FNDA:96,free",
        "DA:2,512",
        "DA:3,512",
        "DA:4,64",
        "DA:5,512",
        "DA:8,96",
    ];
    let programs = [
        "FNDA:4,rows",
        "FNDA:96,free",
        "DA:2,4",
        "DA:3,4",
        "DA:4,1",
        "DA:5,4",
        "DA:8,96",
    ];
    let silent = report(&["--lcov"]).silently();
    assert_eq!(counted(&silent.stdout), threads);
    assert_eq!(
        counted(&report(&["--lcov", "--per=thread"]).stdout),
        threads
    );
    let found = report(&["--lcov", "--per=program"]);
    assert_eq!(counted(&found.stdout), programs);
    found.says(&["the counts of 1 kernel are per thread (free)"]);
    let by_label = report(&["--lcov", "--per-test", "--per=program"]).stdout;
    assert_eq!(counted(&by_label)[1..], programs, "{by_label}");
    assert_eq!(counted(&by_label)[0], "TN:a");

    let unit = |options: &[&str]| {
        let found = json(report(&[&["--json"], options].concat()).stdout);
        let column = &found["rocov"]["columns"][0];
        let lines = column["line_tables"].to_string();
        (column["per"].to_string(), lines)
    };
    let (per, lines) = unit(&["--per", "program"]);
    assert_eq!(per, "\"program\"");
    assert!(lines.contains("[0,2,4],[0,3,4],[0,4,1],[0,5,4]"), "{lines}");
    assert_eq!(unit(&[]).0, "\"thread\"");

    let heading = |options: &[&str]| report(options).stdout.lines().next().map(str::to_owned);
    let start = "sm_90: 2 profiles of 1 code object, counted by PTX";
    assert_eq!(
        heading(&["--per=program"]),
        Some(format!("{start} per program"))
    );
    assert_eq!(heading(&[]), Some(format!("{start} per thread")));
    let shown = report(&["--per=program", "--show", "kernels.py"]).stdout;
    assert!(shown.starts_with(&format!("{start} per program\n")));
    let body = shown.lines().find(|line| line.contains("p[i] = i"));
    assert_eq!(body, Some("    4|      1|        p[i] = i"), "{shown}");

    // Coverage stays, so no gate breaks. The project's file has the option.
    fs::write(
        place.path().join("rocov.toml"),
        "[report]\nper = \"program\"\n",
    )
    .expect("it can be written");
    report(&["--html", "pages", "--fail-under-lines=100"]);
    let page = fs::read_to_string(place.path().join("pages/index.html")).expect("it was written");
    assert!(page.contains("Counted by PTX per program"), "{page}");
    assert!(page.contains("counted by PTX per program</dd>"), "{page}");
}
