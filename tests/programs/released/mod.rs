//! LLVM's released drain compared with rocov's: each test runs a program once with each, and expects the
//! counts of both. Each is a row of docs/src/internals/next to-llvm.md.

mod ends;
mod files;
mod functions;
mod libraries;
mod modules;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use super::support::artifacts::{files_with_extension, repository};
use super::support::command::{Ended, run};
use super::support::released::{GPU, Released, device_profiles};

/// The BAR that LLVM's drain needs.
pub(super) const LARGE: &str = "large";

/// The calls of each kernel that a run's profiles have, without kernels that have none.
type Calls = BTreeMap<String, u64>;

/// A program that is built with LLVM's drain, and without a drain for rocov.
struct Program {
    released: Released,
    with_llvms: PathBuf,
    without: PathBuf,
}

/// The end of a run, and its counts.
struct Ran {
    ended: Ended,
    calls: Calls,
    /// The paths that the profiles of device code had.
    profiles: Vec<PathBuf>,
}

impl Program {
    /// Links a program with HIP and device code in `objects`.
    fn link(released: Released, objects: &[PathBuf], name: &str) -> Self {
        let with_llvms = released.linked_with_drain(objects, &[], &format!("{name}-llvm"));
        let without = released.linked(objects, &[], name);
        Self {
            released,
            with_llvms,
            without,
        }
    }

    /// Runs it with LLVM's drain.
    fn llvms(&self, gpus: &str, arguments: &[OsString]) -> Ran {
        Ran::new(&self.released, |data| {
            let mut command = self.released.with_llvms(gpus, LARGE, data);
            run(command.arg(&self.with_llvms).args(arguments))
        })
    }

    /// Runs it under `rocov run OPTIONS`.
    fn rocovs(&self, gpus: &str, options: &[&str], arguments: &[OsString]) -> Ran {
        Ran::new(&self.released, |data| {
            let mut command = self.released.under_rocov(gpus, LARGE, options, data);
            run(command.arg(&self.without).args(arguments))
        })
    }

    /// Runs it once with each drain, on one GPU.
    fn both(&self, arguments: &[OsString]) -> Both {
        self.both_on(GPU, arguments)
    }

    fn both_on(&self, gpus: &str, arguments: &[OsString]) -> Both {
        Both {
            llvms: self.llvms(gpus, arguments),
            rocovs: self.rocovs(gpus, &[], arguments),
        }
    }
}

impl Ran {
    /// Runs a program that writes its profiles to this directory.
    fn new(released: &Released, program: impl FnOnce(&Path) -> Ended) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let ended = program(&data);
        let functions = released.counted(&data, &ended);
        let calls = functions
            .into_iter()
            .filter(|(_, function)| function.calls > 0);
        Self {
            calls: calls
                .map(|(name, function)| (name, function.calls))
                .collect(),
            profiles: device_profiles(&data),
            ended,
        }
    }

    /// The exit status as a shell has it.
    fn status(&self) -> i32 {
        match self.ended.status.signal() {
            Some(signal) => 128 + signal,
            None => self.ended.status.code().expect("ended by exit or a signal"),
        }
    }

    #[track_caller]
    fn has(&self, expected: &[(&str, u64)]) {
        let expected: Calls = expected
            .iter()
            .map(|&(name, calls)| (name.to_owned(), calls))
            .collect();
        assert_eq!(self.calls, expected, "{}", self.ended);
    }
}

/// Runs with both drains.
struct Both {
    llvms: Ran,
    rocovs: Ran,
}

impl Both {
    /// Expects these counts, and one exit status of both.
    #[track_caller]
    fn have(&self, llvms: &[(&str, u64)], rocovs: &[(&str, u64)]) {
        self.llvms.has(llvms);
        self.rocovs.has(rocovs);
        let statuses = (self.llvms.status(), self.rocovs.status());
        assert_eq!(
            statuses.0, statuses.1,
            "{}{}",
            self.llvms.ended, self.rocovs.ended
        );
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn tally_source() -> PathBuf {
    repository("testdata/programs/ways_in/tally.hip")
}

/// The last cell of a row is the name of its test.
#[test]
fn each_test_is_a_row_of_the_table() {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file of the repository");
    let table = read(repository("docs/src/internals/beside-llvm.md"));
    let mut rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_suffix("` |"))
        .filter_map(|row| row.rsplit('`').next())
        .collect();
    let sources: Vec<String> = files_with_extension("tests/programs/released", "rs")
        .into_iter()
        .map(read)
        .collect();
    let functions = sources
        .iter()
        .flat_map(|source| source.split("#[test]\nfn "));
    let mut tests: Vec<&str> = functions
        .filter_map(|part| part.split_once("() {"))
        .map(|parts| parts.0)
        .collect();
    tests.retain(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    tests.retain(|name| *name != "each_test_is_a_row_of_the_table");
    rows.sort_unstable();
    tests.sort_unstable();
    assert_eq!(rows, tests);
}
