//! clang's counters and the trace of the modelled GPU judge each other. A run of a kernel with counters and debug
//! information has both. The lines that one calls executed are those that the other does, as far as both know them:
//! without optimization for each line, and else but for [`MOST_MOVED`].
//!
//! A line of one block is one that all regions on it have one count of. Without optimization, its two counts are equal but
//! for [`MOST_MOVED`]: the compiler's instructions that restore the mask of lanes belong to the lines around them. Lines
//! that close a function are not compared: threads that returned early come there, too, and clang does not count them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::code_object_with_lines;
use crate::support::gpu::{Stack, data};
use crate::support::json::json;
use crate::support::spec::expand;

const TARGET: &str = "gfx90a";

/// The kernels that are compared if `ROCOV_TEST_LEVELS` is not `all`: with branches, loops, calls, inlined functions,
/// templates and early ends.
const SOME: [&str; 6] = ["branches", "calls", "collatz", "ends", "templates", "wave"];

/// The kernel whose threads end within functions. clang counts the whole block that a thread was in, and the trace only
/// the lines up to the end: their counts are not compared.
const WITH_ENDS: &str = "ends";

/// The most lines that differ, in percent: the compiler has moved their instructions into branches or out of them.
const MOST_MOVED: usize = 2;

/// Lines by source and number.
type Lines<T> = BTreeMap<(String, u32), T>;

/// The lines that both know, and those that differ.
#[derive(Default)]
struct Verdict {
    lines: usize,
    /// Lines that only one of them has executed, with the counts of clang and of the trace.
    differ: Vec<String>,
    of_one_block: usize,
    /// Lines of one block with two counts.
    count_differs: Vec<String>,
}

impl Verdict {
    /// Adds the verdict of a kernel at a level of optimization.
    fn add(&mut self, name: &str, level: &str) {
        let stack = Stack::for_target(TARGET);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spec = repository("testdata/kernels")
            .join(name)
            .with_extension("spec");
        let spec = expand(&spec, directory.path());
        let version = stack.code_object_version();
        let object = code_object_with_lines(name, TARGET, level, version);
        let mut command = stack.runner(TARGET, &data(directory.path()));
        command.arg(object).arg(spec).arg(directory.path());
        run(command.env("ROCOV_MODELGPU_TRACE", "1")).success();
        let data = data(directory.path());
        let one_block = of_one_block(&json(report(&data, "mapping", "--json")));
        let clang = counts(&report(&data, "mapping", "--lcov"));
        let trace = counts(&report(&data, "trace", "--lcov"));
        for (line, clang) in &clang {
            let Some(trace) = trace.get(line) else {
                continue;
            };
            let both = || format!("{name} {level}: {}:{}: {clang} and {trace}", line.0, line.1);
            self.lines += 1;
            if (*clang > 0) != (*trace > 0) {
                self.differ.push(both());
            }
            if one_block.contains(line) && name != WITH_ENDS && !closes(line) {
                self.of_one_block += 1;
                if clang != trace {
                    self.count_differs.push(both());
                }
            }
        }
    }
}

/// Returns whether a line has only the bracket that closes a function.
fn closes((file, number): &(String, u32)) -> bool {
    let source = std::fs::read_to_string(file).expect("the source");
    source.lines().nth(*number as usize - 1) == Some("}")
}

/// The report of one kind of counts.
fn report(data: &Path, kind: &str, format: &str) -> String {
    let mut report = limited(built("rocov"));
    report.arg("report").arg(data);
    report.args([format, "--counts", kind]);
    run(&mut report).success().stdout
}

/// The counts of lines in LCOV.
fn counts(lcov: &str) -> Lines<u64> {
    let mut lines = Lines::new();
    let mut file = "";
    for record in lcov.lines() {
        match record.split_once(':') {
            Some(("SF", path)) => file = path,
            Some(("DA", line)) => {
                let (line, count) = line.split_once(',').expect("a line and a count");
                let line = line.parse().expect("a line");
                let count = count.parse().expect("a count");
                lines.insert((file.to_owned(), line), count);
            }
            _ => {}
        }
    }
    lines
}

/// The segments of each source: line, count, and whether it has one.
fn segments(report: &Value) -> impl Iterator<Item = (String, Vec<(u32, u64, bool)>)> {
    let files = report["data"][0]["files"].as_array().expect("files");
    files.iter().map(|file| {
        let name = file["filename"].as_str().expect("a name").to_owned();
        let segments = file["segments"].as_array().expect("segments");
        let number = |it: &Value| it.as_u64().expect("a number");
        let segments = segments.iter().map(|it| {
            let line = u32::try_from(number(&it[0])).expect("a line");
            (line, number(&it[2]), it[3] == true)
        });
        (name, segments.collect())
    })
}

/// The lines on which all regions of the coverage mapping have one count.
fn of_one_block(report: &Value) -> BTreeSet<(String, u32)> {
    let mut lines = BTreeSet::new();
    for (file, segments) in segments(report) {
        let mut around: Option<(u64, bool)> = None;
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            continue;
        };
        for number in first.0..=last.0 {
            let here: Vec<_> = segments.iter().filter(|it| it.0 == number).collect();
            let inside = around.into_iter().chain(here.iter().map(|it| (it.1, it.2)));
            let counts: BTreeSet<u64> = inside.filter(|it| it.1).map(|it| it.0).collect();
            if counts.len() == 1 {
                lines.insert((file.clone(), number));
            }
            around = here.last().map(|it| (it.1, it.2)).or(around);
        }
    }
    lines
}

/// The kernels to compare.
fn kernels() -> Vec<String> {
    if std::env::var("ROCOV_TEST_LEVELS").as_deref() != Ok("all") {
        return SOME.map(str::to_owned).to_vec();
    }
    let sources = crate::support::artifacts::files_with_extension("testdata/kernels", "spec");
    let names = sources.iter().filter_map(|it| it.file_stem());
    names.map(|it| it.to_string_lossy().into_owned()).collect()
}

fn verdict(levels: &[&str]) -> Verdict {
    let mut verdict = Verdict::default();
    for name in kernels() {
        for level in levels {
            verdict.add(&name, level);
        }
    }
    eprintln!(
        "{} lines, {} of them executed by one only; {} of one block, {} of them with two counts",
        verdict.lines,
        verdict.differ.len(),
        verdict.of_one_block,
        verdict.count_differs.len()
    );
    verdict
}

#[test]
fn without_optimization_all_lines_agree() {
    let verdict = verdict(&["-O0"]);
    assert!(verdict.lines > 100 && verdict.of_one_block > 50);
    assert_eq!(verdict.differ, [""; 0]);
    let differ = &verdict.count_differs;
    assert!(
        differ.len() * 100 <= verdict.of_one_block * MOST_MOVED,
        "{} of {} lines: {differ:#?}",
        differ.len(),
        verdict.of_one_block
    );
}

#[test]
fn optimization_moves_few_lines() {
    let verdict = verdict(&["-O2"]);
    assert!(verdict.lines > 100);
    let differ = &verdict.differ;
    assert!(
        differ.len() * 100 <= verdict.lines * MOST_MOVED,
        "{} of {} lines: {differ:#?}",
        differ.len(),
        verdict.lines
    );
}
