//! A program that differs between archs. The pages show which arch misses which line, and have
//! llvm-cov's counts and marks of each arch.
//!
//! Comments in the program mark the lines that never run: `never` on any arch, or `not on gfx942`.

use std::path::{Path, PathBuf};

use scraper::{ElementRef, Html, Selector};

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{Compilation, device_header};
use crate::support::gpu::Stack;
use crate::support::profile::{cov, merged_of_arch};
use crate::support::program::rocov_flags;

const ARCHS: [&str; 2] = ["gfx90a", "gfx942"];

#[test]
fn the_pages_say_what_each_arch_misses_as_llvm_cov_does() {
    let stack = Stack::for_target("gfx942");
    // The skip is already printed: a program needs a HIP that knows its target.
    if let Stack::Interpreter = stack {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let source = repository("testdata/programs/archs/quantise.hip");
    let program = compiled(&source, stack);
    for arch in ARCHS {
        let mut command = stack.launcher(arch, &data);
        run(command.arg(&program)).success();
    }
    let pages = directory.path().join("pages");
    let mut report = limited(built("rocov"));
    report.arg("report").arg(&data).arg("--html").arg(&pages);
    report.arg("--host-binary").arg(&program);
    let said = run(&mut report).success().silently().stdout;
    assert_eq!(Path::new(said.trim()), pages.join("index.html"));
    let page = page(&pages);
    let rows = all(page.root_element(), "table.source tr[id]");

    let text = std::fs::read_to_string(&source).expect("a source that can be read");
    let missed = |column: usize| -> Vec<usize> {
        let class = format!("x{column}");
        let numbers = (1..).zip(&rows);
        let has = |row: &&ElementRef<'_>| row.value().classes().any(|own| own == class);
        numbers
            .filter(|(_, row)| has(row))
            .map(|(number, _)| number)
            .collect()
    };
    let marked = |marks: &[&str]| -> Vec<usize> {
        let lines = (1..).zip(text.lines());
        let has = |line: &str| marks.iter().any(|mark| line.contains(mark));
        lines
            .filter(|(_, line)| has(line))
            .map(|(number, _)| number)
            .collect()
    };
    assert_eq!(missed(0), marked(&["// never"]));
    assert_eq!(missed(1), marked(&["// never", "// not on gfx942"]));
    // `rounded` also ran on the host, and its host counts have a separate row.
    let calls = all(rows[11], "td.n").into_iter().map(content);
    assert_eq!(calls.collect::<Vec<_>>(), ["1000", "0", "2000"]);

    for (column, arch) in ARCHS.iter().enumerate() {
        let expected = shown_by_llvm_cov(&data, arch);
        assert_eq!(expected.len(), rows.len());
        for (number, (row, line)) in (1..).zip(rows.iter().zip(expected)) {
            let count = content(all(*row, "td.n")[column]);
            assert_eq!(short(&count), line.count, "{arch}: line {number}");
            // llvm-cov marks the whole of a missed line. Other lines are the host's.
            if !["", "0"].contains(&line.count.as_str()) {
                let marks = all(*row, "mark").into_iter().filter(|mark| {
                    let on = mark.value().attr("data-on");
                    on.is_none_or(|on| on.split(", ").any(|name| name == *arch))
                });
                let marks: Vec<_> = marks.map(content).collect();
                assert_eq!(marks, line.missed, "{arch}: line {number}");
            }
        }
    }
}

/// The program for both archs, with instrumented host code.
fn compiled(source: &Path, stack: Stack) -> PathBuf {
    Compilation::on(stack)
        .arguments(rocov_flags(stack, &["--host"]))
        .arguments(stack.flags())
        .arguments(ARCHS.map(|arch| format!("--offload-arch={arch}")))
        .arguments(["-O1"])
        .source(source)
        .reads([device_header()])
        .output("quantise")
}

/// A line of llvm-cov's output: its count, and the parts of it that did not run.
struct Line {
    count: String,
    missed: Vec<String>,
}

/// The program's source, by `llvm-cov show`.
fn shown_by_llvm_cov(data: &Path, arch: &str) -> Vec<Line> {
    let mut objects = std::fs::read_dir(data.join("objects"))
        .expect("device ELFs are kept")
        .map(|entry| entry.expect("an entry").path());
    let is_of_arch = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(arch)
    };
    let object = objects.find(is_of_arch).expect("a device ELF of the arch");
    let mut show = limited(cov());
    show.args(["show", "-format=html", "-instr-profile"]);
    show.arg(merged_of_arch(data, arch)).arg(object);
    let page = Html::parse_document(&run(&mut show).success().stdout);
    let rows = all(page.root_element(), "tr").into_iter();
    let lines = rows.filter(|row| !all(*row, "td.line-number").is_empty());
    let line = |row: ElementRef<'_>| {
        let counts = all(row, "td.covered-line, td.uncovered-line, td.skipped-line");
        let missed = all(row, "td.code .red").into_iter().map(content);
        Line {
            count: counts
                .first()
                .map(|cell| content(*cell))
                .unwrap_or_default(),
            missed: missed.filter(|text| !text.is_empty()).collect(),
        }
    };
    lines.map(line).collect()
}

/// A count in llvm-cov's notation, up to some thousands.
fn short(count: &str) -> String {
    match count.parse::<u64>() {
        Ok(count @ 1000..) => format!("{}.{:02}k", count / 1000, count % 1000 / 10),
        _ => count.to_owned(),
    }
}

/// The page of the only source.
fn page(pages: &Path) -> Html {
    let mut sources = std::fs::read_dir(pages.join("source")).expect("a folder with pages");
    let path = sources.next().expect("a page").expect("an entry").path();
    Html::parse_document(&std::fs::read_to_string(path).expect("a page that can be read"))
}

fn all<'a>(within: ElementRef<'a>, selector: &str) -> Vec<ElementRef<'a>> {
    let selector = Selector::parse(selector).expect("a selector");
    within.select(&selector).collect()
}

fn content(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    text.trim().to_owned()
}
