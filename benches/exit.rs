//! The cost of code that was never launched for a program's exit: `cargo bench -p rocov --bench exit`, or
//! `tools/dev/bench exit`. benches/README.md explains the table.
//!
//! A program has opened 200 libraries with instrumented kernels on the modelled GPU. The benchmark measures from
//! the end of `main` to the end of the process, with and without `ROCOV_ZERO=0` in turn.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocov_tests::artifacts::{built, repository};
use rocov_tests::command::limited;
use rocov_tests::compile::{Compilation, device_header};
use rocov_tests::gpu::Stack;
use rocov_tests::program::{Program, TARGET, rocov_flags};
use rustix::time::{ClockId, clock_gettime};

const LIBRARIES: usize = 200;
/// The number of runs of each kind.
const RUNS: usize = 30;
/// The most that zeros may add to an exit, in milliseconds.
const LIMIT: f64 = 1.0;

fn main() {
    let stack = Stack::usual();
    let program = Program::build(stack, &["never_launched/exits.hip"], &[], &["-ldl"]).file;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let libraries = copies(&library(stack), directory.path());
    println!(
        "exits of a process with {LIBRARIES} libraries; ms, minima and medians of {RUNS} runs"
    );
    println!("launches   zeros: min  median  --no-zero: min  median  difference: min  median");
    for (step, name) in [("add", "a kernel"), ("none", "nothing")] {
        let mut times = ["1", "0"].map(|_| Vec::new());
        for _ in 0..RUNS {
            for (zero, times) in ["1", "0"].into_iter().zip(&mut times) {
                times.push(exit(&program, step, &libraries, zero));
            }
        }
        let [with, without] = times.map(|mut times| {
            times.sort();
            [times[0], times[RUNS / 2]].map(|time| time.as_secs_f64() * 1e3)
        });
        let more = [0, 1].map(|at| with[at] - without[at]);
        println!(
            "{name:<10} {:>10.2} {:>7.2} {:>15.2} {:>7.2} {:>16.2} {:>7.2}",
            with[0], with[1], without[0], without[1], more[0], more[1]
        );
        let held = if more[1] <= LIMIT { "held" } else { "exceeded" };
        println!("      limit {LIMIT} ms: {held}");
    }
}

/// The library of the tests of code that was never launched.
fn library(stack: Stack) -> PathBuf {
    let flags = rocov_flags(stack, &[]);
    let flags = flags.iter().map(|flag| flag.to_str().expect("UTF-8"));
    let flags: Vec<_> = flags.collect();
    Compilation::on(stack)
        .arguments(stack.flags())
        .arguments(["-O1", "-fPIC", "-shared"])
        .arguments([format!("--offload-arch={TARGET}")])
        .arguments(flags.as_slice())
        .source(repository("testdata/programs/never_launched/library.hip"))
        .reads([
            device_header(),
            repository("testdata/programs/never_launched/kernels.h"),
        ])
        .output("never_launched.so")
}

/// Copies of a library. The dynamic linker opens each.
fn copies(library: &Path, directory: &Path) -> Vec<PathBuf> {
    let copies = (0..LIBRARIES).map(|number| {
        let copy = directory.join(format!("lib{number}.so"));
        fs::copy(library, &copy).expect("room on the disk");
        copy
    });
    copies.collect()
}

/// The time from the end of main to the end of the process.
fn exit(program: &Path, step: &str, libraries: &[PathBuf], zero: &str) -> Duration {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let preloaded = ["librocov_modelgpu.so", "librocov.so"].map(built);
    let preloaded = preloaded
        .map(|library| library.display().to_string())
        .join(":");
    let mut command = limited("env");
    command
        .arg(format!("LD_PRELOAD={preloaded}"))
        .arg(format!("ROCOV_MODELGPU={TARGET}"))
        .arg(format!("ROCOV_ZERO={zero}"))
        .arg(format!("ROCOV_DATA={}", data.display()))
        .arg(format!(
            "LLVM_PROFILE_FILE={}/profraw/%p.profraw",
            data.display()
        ))
        .arg(program)
        .arg(step)
        .args(libraries);
    let output = command.output().expect("a program");
    let end = clock_gettime(ClockId::Monotonic);
    let end = Duration::new(end.tv_sec as u64, end.tv_nsec as u32);
    assert!(output.status.success(), "{command:?}: {}", output.status);
    // The run has done what it is measured for.
    let has_registry = data.join("registry").is_dir();
    assert_eq!(has_registry, step == "add" || zero == "1", "{command:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let main: u64 = text.trim().parse().expect("a number of nanoseconds");
    end - Duration::from_nanos(main)
}
