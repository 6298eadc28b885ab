//! `rocov report --per-test` and `rocov which` against the calls of llvm-profdata and llvm-cov that have the
//! same coverage: `cargo bench -p rocov-cli --bench labels`, or with other numbers of labels: `... -- 50`.
//!
//! The bench generates 500 source files of four functions and a header that all share, in ten code objects
//! with a kernel each: 501 sources and 2,010 functions. Under each label, every code object has a raw profile.
//! A tenth of its counters, in runs of ten, have counts.
//!
//! The bench starts llvm-profdata and llvm-cov for the code objects of a few labels, as many at a time as there
//! are processors, and multiplies their time by the number of labels. Processor time is that of all processes
//! together.
//!
//! The bench fails if a command takes longer than its limit.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rocov_tests::cli::random::Random;
use rocov_tests::cli::{place, profile, rocov, run};

use support::{CodeObject, Shape, Taken, code_objects, each, export, merge};

const OBJECTS: usize = 10;
const SHAPE: Shape = Shape {
    files: 50,
    functions: 4,
    files_to_kernel: 50,
};
/// Numbers of labels, if none are given, and the most seconds that `rocov report --per-test` may take.
const LABELS: [(usize, f64); 2] = [(50, 1.0), (1000, 2.0)];
/// The number of labels up to which `rocov which` may take at most [`ALLOWED_WHICH`] seconds.
const WHICH_LABELS: usize = 50;
const ALLOWED_WHICH: f64 = 0.2;
/// The number of labels that llvm-profdata and llvm-cov run for.
const OF_LLVM: usize = 5;
/// The number of times that each is run for each row, in turn. The fastest counts.
const RUNS: usize = 3;
/// The number of counters that have counts together.
const COUNTED: usize = 10;

fn main() {
    let given: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let all = if given.is_empty() {
        LABELS.map(|(labels, _)| labels).into()
    } else {
        given
    };
    let objects = code_objects(OBJECTS, SHAPE, "labels-bench");
    println!("                    llvm             --per-test                which");
    println!("labels       s  processor s       s  processor s       s  processor s");
    for labels in all {
        compare(labels, &objects);
    }
}

/// Prints a line of the table.
fn compare(labels: usize, objects: &[CodeObject]) {
    let data = tempfile::tempdir().unwrap();
    for object in objects {
        object.keep(data.path());
        write(object, labels, data.path());
    }
    let indexed = tempfile::tempdir().unwrap();
    let mut calls = Vec::new();
    for object in objects {
        let name = object.profile_name();
        for label in 0..OF_LLVM.min(labels) {
            let raw = directory(data.path(), label).join(&name);
            calls.push((raw, indexed.path().join(format!("{label}.{name}")), object));
        }
    }
    let by_llvm = |(raw, indexed, object): &(PathBuf, PathBuf, &CodeObject)| {
        run(&mut merge(raw, indexed));
        run(export(indexed, &object.elf).stdout(Stdio::null()));
    };
    let [mut llvm, mut per_test, mut which] = [const { Taken::MOST }; 3];
    let line = format!("{}:10", first_source(&objects[0]).display());
    for _ in 0..RUNS {
        llvm.improve(|| each(&calls, by_llvm));
        per_test.improve(|| print(&["report", "--per-test"], data.path(), "TOTAL"));
        which.improve(|| print(&["which", &line], data.path(), "gfx90a"));
    }
    let times = labels as f64 / OF_LLVM.min(labels) as f64;
    llvm.seconds *= times;
    llvm.processor *= times;
    println!("{labels:>6}  {llvm}  {per_test}  {which}");
    let limits = LABELS.iter().filter(|(number, _)| *number == labels);
    for (_, limit) in limits {
        assert!(
            per_test.seconds <= *limit,
            "rocov report --per-test takes {:.2} s, expected at most {limit}",
            per_test.seconds
        );
    }
    assert!(
        labels > WHICH_LABELS || which.seconds <= ALLOWED_WHICH,
        "rocov which takes {:.2} s, expected at most {ALLOWED_WHICH}",
        which.seconds
    );
}

/// The directory of a label's profiles.
fn directory(data: &Path, label: usize) -> PathBuf {
    data.join(format!("labels/test%20{label}"))
}

/// Writes the profiles of a code object under all labels.
fn write(object: &CodeObject, labels: usize, data: &Path) {
    let name = object.profile_name();
    for label in 0..labels {
        let directory = directory(data, label);
        fs::create_dir_all(&directory).unwrap();
        let mut random = Random(label as u64 + 1);
        let fill = |section: &mut [u8]| {
            for counters in section.chunks_mut(8 * COUNTED) {
                if !random.word().is_multiple_of(10) {
                    continue;
                }
                for counter in counters.chunks_exact_mut(8) {
                    counter.copy_from_slice(&random.count().to_le_bytes());
                }
            }
        };
        let path = directory.join(&name);
        profile::write_filled(&object.elf, place::RAW_VERSION, &path, fill);
    }
}

/// The first source file of a code object.
fn first_source(object: &CodeObject) -> PathBuf {
    object.elf.with_file_name("source_0_0.h")
}

/// Runs rocov on a data directory, and checks that it prints `text`.
fn print(arguments: &[&str], data: &Path, text: &str) {
    let mut command: Command = rocov();
    let output = run(command.args(arguments).arg(data));
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains(text), "no {text} in {output}");
}
