//! Coverage by test: the counts under a test's label equal the counts of that test's own run, and
//! their sum equals the suite's counts without labels.

mod ctest;
mod gtest;
mod pytest;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::store::Label;
use rocov::store::layout::PROFRAW;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::{Compilation, device_header};
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::{Functions, functions, merge, raw_profiles};
use crate::support::program::{TARGET, rocov_flags};

fn source(name: &str) -> PathBuf {
    repository("testdata/programs/per_test").join(name)
}

/// The sample's kernels and the functions that run them, as a shared library.
fn library() -> PathBuf {
    let sample = repository("testdata/sample");
    Compilation::on(Stack::Debian12)
        .arguments(["--config"])
        .source(sample.join("debian12.cfg"))
        .arguments(["-O1", "-Wall", "-Wextra", "-fPIC", "-shared", "-I"])
        .arguments([&sample])
        .arguments(rocov_flags(Stack::Debian12, &[]))
        .source(sample.join("statistics.hip"))
        .source(source("calls.hip"))
        .reads([sample.join("statistics.h"), source("calls.h")])
        .reads([device_header()])
        .output("libstatistics.so")
}

/// The GoogleTest suite.
fn suite(flags: &[&str]) -> PathBuf {
    program("suite", flags)
}

/// A program of GoogleTest, compiled without HIP.
fn program(name: &str, flags: &[&str]) -> PathBuf {
    let header = repository("runtime/include/rocov_gtest.h");
    let library = library();
    Compilation::by("g++")
        .arguments([
            "-std=c++11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ])
        .arguments(flags)
        .arguments(["-I".into(), repository("runtime/include")])
        .source(source(&format!("{name}.cpp")))
        .reads([header, source("calls.h")])
        .source(library)
        .arguments(["-lgtest_main", "-lgtest", "-lpthread"])
        .output(name)
}

/// The output directory of a run.
struct Run {
    directory: tempfile::TempDir,
    /// The standard output of the command.
    stdout: String,
}

impl Run {
    /// Runs the command from `append` under `rocov run` with these options.
    fn with_options(options: &[&str], append: impl FnOnce(&mut Command)) -> Self {
        let (mut this, ended) = Self::ended(options, append);
        this.stdout = ended.success().silently().stdout;
        this
    }

    /// Runs a command that need not succeed.
    fn ended(options: &[&str], append: impl FnOnce(&mut Command)) -> (Self, Ended) {
        let this = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            stdout: String::new(),
        };
        let mut command = limited(built("rocov"));
        command.args(["run", "--gpu", &format!("model:{TARGET}"), "-o"]);
        command.arg(this.data()).args(options).arg("--");
        append(&mut command);
        let ended = run(&mut command);
        (this, ended)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The counts in these profiles.
    fn counts(&self, profiles: &[PathBuf]) -> Functions {
        let merged = self.directory.path().join("counts.profdata");
        merge(profiles, &merged);
        functions(&merged)
    }

    /// All counts.
    fn all(&self) -> Functions {
        self.counts(&profiles_below(&self.data().join(PROFRAW)))
    }

    /// The counts under these labels. Some labels may have none.
    fn labelled(&self, labels: &[&str]) -> Functions {
        let profiles = labels.iter().flat_map(|label| {
            let label: Label = label.parse().expect("a label");
            raw_profiles(&self.data().join(PROFRAW).join(label.directory()))
        });
        self.counts(&profiles.collect::<Vec<_>>())
    }

    /// The labels that `rocov which` prints for the line with this text in a source of the sample.
    fn reaching(&self, name: &str, text: &str) -> BTreeSet<String> {
        let path = repository("testdata/sample").join(name);
        let lines = std::fs::read_to_string(&path).expect("a source of the sample");
        let line = lines.lines().position(|line| line.contains(text));
        let line = 1 + line.expect("a line with this text");
        let mut which = limited(built("rocov"));
        which.args(["which", "--json"]).arg(self.data());
        which.arg(format!("{}:{line}", path.display()));
        let found = json(run(&mut which).success().stdout);
        let tests = found["lines"][0]["tests"].as_array().expect("tests");
        let labels = tests
            .iter()
            .map(|test| test["label"].as_str())
            .map(|label| label.unwrap_or_default().to_owned());
        labels.collect()
    }
}

/// All raw profiles in a directory and below it.
fn profiles_below(directory: &Path) -> Vec<PathBuf> {
    let mut profiles = raw_profiles(directory);
    for entry in std::fs::read_dir(directory).expect("a directory can be listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            profiles.extend(profiles_below(&path));
        }
    }
    profiles
}
