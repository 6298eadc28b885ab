//! The reports of tools that find bad accesses, leaks and races.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::artifacts::{built, cache_directory};
use crate::support::command::{limited, run};

/// Valgrind over the program that the caller appends, reporting to `log`.
pub(crate) fn valgrind(log: &Path) -> Command {
    let mut valgrind = limited("valgrind");
    valgrind
        // The address sanitizer checks leaks: Valgrind would search all of the GPUs' memory for
        // pointers.
        .args(["--quiet", "--leak-check=no", "--num-callers=40"])
        .arg(format!("--log-file={}", log.display()));
    valgrind
}

/// A directory with a librocov.so without line information for Valgrind, which names a frame's
/// library only if it knows no source line.
pub(crate) fn without_lines() -> PathBuf {
    let directory = cache_directory().join("without_lines");
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let unfinished = tempfile::NamedTempFile::new_in(&directory).expect("a file can be made");
    let mut strip = limited("strip");
    strip.args(["--strip-debug", "-o"]).arg(unfinished.path());
    run(strip.arg(built("librocov.so"))).success().silently();
    // Another test may be using the existing copy.
    let library = directory.join("librocov.so");
    unfinished.persist(library).expect("a file can be renamed");
    directory
}

/// Valgrind's reports about librocov's own code.
pub(crate) fn about_librocov(log: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(log).expect("Valgrind writes its log");
    let mut reports = reports(&log);
    reports.retain(|report| is_of_librocov(report));
    reports
}

/// Valgrind's reports, separated by an empty line. Each line starts with `==PID== `.
fn reports(log: &str) -> Vec<String> {
    let text = |line: &str| line.splitn(3, "==").nth(2).unwrap_or_default().to_owned();
    let lines: Vec<_> = log.lines().map(text).collect();
    let reports = lines.split(|line| line.trim().is_empty());
    reports.map(|report| report.join("\n")).collect()
}

/// Returns whether one of the report's stacks, also that of the allocation, has a librocov function
/// other than a hook. A hook only passes on the program's call to HSA.
fn is_of_librocov(report: &str) -> bool {
    let mut outer = false;
    report.lines().map(str::trim).any(|line| {
        let is_innermost = line.starts_with("at 0x");
        outer &= !is_innermost;
        if outer || !line.ends_with("/librocov.so)") {
            return false;
        }
        outer = true;
        let function = line.split(": ").nth(1).unwrap_or_default();
        is_innermost || !function.starts_with("hsa_")
    })
}

/// A leak in a report of the address sanitizer.
#[derive(Debug)]
pub(crate) struct Leak {
    pub(crate) bytes: u64,
    /// Allocations with one stack.
    pub(crate) allocations: u64,
    /// The stack of the allocations, the innermost frame first.
    pub(crate) stack: Vec<String>,
}

/// The leaks in a program's output: `Direct leak of 72 byte(s) in 1 object(s) allocated from:`, or
/// indirect, with the stack below.
pub(crate) fn leaks(said: &str) -> Vec<Leak> {
    let mut lines = said.lines();
    let mut leaks = Vec::new();
    while let Some(line) = lines.next() {
        let Some((_, sizes)) = line.split_once(" leak of ") else {
            continue;
        };
        let mut numbers = sizes.split(' ').filter_map(|word| word.parse().ok());
        let [bytes, allocations] = [numbers.next(), numbers.next()]
            .map(|number| number.unwrap_or_else(|| panic!("not a leak's line: {line}")));
        let frames = lines.by_ref().map(str::trim);
        leaks.push(Leak {
            bytes,
            allocations,
            stack: frames
                .take_while(|frame| frame.starts_with('#'))
                .map(str::to_owned)
                .collect(),
        });
    }
    leaks
}

/// The number of lost allocations.
pub(crate) fn lost(leaks: &[Leak]) -> u64 {
    leaks.iter().map(|leak| leak.allocations).sum()
}

/// The number of bad accesses and races in a program's output.
pub(crate) fn errors(said: &str) -> usize {
    let of_memory = said.matches("ERROR: AddressSanitizer").count();
    let undefined = said.matches(": runtime error: ").count();
    of_memory + undefined + races(said)
}

/// The number of races in a program's output.
pub(crate) fn races(said: &str) -> usize {
    said.matches("WARNING: ThreadSanitizer").count()
}
