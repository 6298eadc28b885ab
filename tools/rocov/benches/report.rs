//! `rocov report` against the `llvm-cov export` calls that have the same coverage:
//! `cargo bench -p rocov-cli --bench report`, or with other numbers of source files: `... -- 20 200`.
//!
//! The bench generates source files of 163 lines, each with 8 functions (a loop, four conditions, a
//! template of a header that all share) and a kernel that calls them; ten files to a code object, as
//! one unit. 2,000 files are 200 code objects for gfx90a, compiled by clang 22 and kept in the target
//! directory, and a raw profile of each, half of its counts 0.
//!
//! The bench starts llvm-cov once for each code object, as many at a time as there are processors, with an
//! indexed profile that is there already, and ignores its output. The report reads raw profiles, finds the
//! figures of all files and writes the table. Processor time is that of all processes together, which also
//! holds on a machine that others use. Memory is the largest that the kernel reports of the command (`VmHWM`,
//! read every few milliseconds).
//!
//! The bench fails if the report takes more than a tenth of llvm-cov's time at 2,000 files, or more memory
//! than a file is allowed.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rocov_tests::cli::{rocov, run};

use support::{CodeObject, Shape, Taken, code_objects, each, export};

/// Numbers of source files, if none are given.
const FILES: [usize; 3] = [20, 200, 2000];
const SHAPE: Shape = Shape {
    files: 10,
    functions: 8,
    files_to_kernel: 1,
};
/// The largest share of llvm-cov's time that the report may take.
const ALLOWED: f64 = 0.1;
/// The number of source files from which on that holds. With fewer, the start of the command is a part of it.
const FROM_FILES: usize = 2000;
/// Most memory, in kB: what the command takes by itself, and for each source file.
const ALLOWED_KB: [usize; 2] = [40_000, 60];
/// The number of times that each is run for each row, in turn. The fastest counts.
const RUNS: usize = 3;
/// The interval of looks at the memory.
const INTERVAL: Duration = Duration::from_millis(3);

fn main() {
    let given: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let all = if given.is_empty() {
        FILES.into()
    } else {
        given
    };
    let largest = all.iter().max().copied().unwrap_or(0);
    let objects = code_objects(largest.div_ceil(SHAPE.files), SHAPE, "report-bench");
    println!("                             llvm-cov             rocov        rocov/llvm-cov");
    println!(
        " files  code objects       s  processor s       s  processor s     s  processor s    MB"
    );
    for files in all {
        compare(files, &objects[..files.div_ceil(SHAPE.files)]);
    }
}

/// Prints a line of the table.
fn compare(files: usize, objects: &[CodeObject]) {
    let data = tempfile::tempdir().unwrap();
    for object in objects {
        fs::copy(object.raw(), data.path().join(object.profile_name())).unwrap();
        object.keep(data.path());
    }
    let export = |object: &CodeObject| {
        run(export(&object.indexed, &object.elf).stdout(Stdio::null()));
    };
    let (mut llvm, mut rocov) = (Taken::MOST, Taken::MOST);
    let mut most = 0;
    for _ in 0..RUNS {
        llvm.improve(|| each(objects, export));
        rocov.improve(|| most = report(data.path()).max(most));
    }
    let ratio = rocov.seconds / llvm.seconds;
    println!(
        "{files:>6}  {:>12}  {llvm}  {rocov}  {ratio:>4.2}  {:>11.2}  {:>4.0}",
        objects.len(),
        rocov.processor / llvm.processor,
        most as f64 / 1000.0
    );
    let [base, of_file] = ALLOWED_KB;
    let allowed = base + of_file * files;
    assert!(most <= allowed, "{most} kB, expected at most {allowed}");
    assert!(
        files < FROM_FILES || ratio <= ALLOWED,
        "{ratio:.2} of llvm-cov's time at {files} files, expected at most {ALLOWED}"
    );
}

/// Reports, and returns the most memory that the command had, in kB.
fn report(data: &Path) -> usize {
    let mut command = rocov();
    command.arg("report").arg(data).arg("--output");
    let table = data.join("table.txt");
    let mut child = command.arg(&table).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = number.unwrap_or(0).max(most);
        thread::sleep(INTERVAL);
    };
    assert!(ended.success());
    assert!(fs::read_to_string(table).unwrap().contains("\nTOTAL "));
    most
}
