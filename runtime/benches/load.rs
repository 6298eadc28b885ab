//! The cost of librocov in a process without a GPU: `cargo bench -p rocov-runtime`.
//!
//! The benchmark starts a program that does nothing many times, with librocov.so preloaded and, in turn,
//! with an empty library. It measures the whole life of the process. The difference of the medians is the
//! cost of loading librocov, beyond loading any library. It also compares system calls by kind.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of starts of each kind. The median then settles within a few microseconds.
const STARTS: usize = 1000;

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = compile(
        directory.path(),
        "program",
        "int main(void) { return 0; }",
        &[],
    );
    let empty = compile(directory.path(), "empty.so", "", &["-shared", "-fPIC"]);
    let librocov = directory.path().join("librocov.so");
    let built = built();
    succeed(Command::new("strip").arg("-o").arg(&librocov).arg(&built));

    println!("librocov.so, stripped: {} KiB", bytes(&librocov) / 1024);
    let kinds = [
        ("no library", None),
        ("empty library", Some(&empty)),
        ("librocov", Some(&librocov)),
    ];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); kinds.len()];
    for _ in 0..STARTS {
        for ((_, library), times) in kinds.iter().zip(&mut times) {
            times.push(life(&program, library.map(PathBuf::as_path)));
        }
    }
    let medians: Vec<Duration> = times.iter_mut().map(|times| median(times)).collect();
    for ((kind, _), median) in kinds.iter().zip(&medians) {
        println!("{kind:>14}: {:>7.1} us", micros(*median));
    }
    let extra = micros(medians[2]) - micros(medians[1]);
    let ratio = micros(medians[2]) / micros(medians[1]);
    println!("librocov beyond an empty library: {extra:.1} us, {ratio:.3} times");

    let (with_empty, with_librocov) = (calls(&program, &empty), calls(&program, &librocov));
    println!("system calls beyond an empty library's, by kind:");
    for (call, count) in &with_librocov {
        let more = count - with_empty.get(call).unwrap_or(&0);
        if more != 0 {
            println!("{call:>14}: {more:+}");
        }
    }
}

fn built() -> PathBuf {
    let bench = std::env::current_exe().expect("a program knows its own path");
    let directory = bench
        .ancestors()
        .nth(2)
        .expect("cargo puts benches into <profile>/deps");
    let library = directory.join("librocov.so");
    assert!(
        library.exists(),
        "{} does not exist: run cargo build --release",
        library.display()
    );
    library
}

fn compile(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let file = directory.join(format!("{name}.c"));
    fs::write(&file, source).expect("a source file");
    let output = directory.join(name);
    succeed(
        Command::new("gcc")
            .args(["-O2"])
            .args(flags)
            .arg(&file)
            .arg("-o")
            .arg(&output),
    );
    output
}

fn succeed(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn bytes(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").len()
}

fn started(program: &Path, library: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    command
}

fn life(program: &Path, library: Option<&Path>) -> Duration {
    let mut command = started(program, library);
    let start = Instant::now();
    succeed(&mut command);
    start.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns the number of system calls of the program by name, as strace lists them.
fn calls(program: &Path, library: &Path) -> BTreeMap<String, i64> {
    let mut command = Command::new("strace");
    command
        .arg("-E")
        .arg(format!("LD_PRELOAD={}", library.display()))
        .arg(program);
    let output = command
        .stdout(Stdio::null())
        .output()
        .expect("strace can be started");
    let mut calls = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        if let Some((name, _)) = line.split_once('(') {
            *calls.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    calls
}
