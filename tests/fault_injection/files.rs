//! Every call of the output to the C library on files, with every error of a file system: at the
//! first, a middle and the last call.
//!
//! A separate process drains under a preloaded library that makes the calls fail. It keeps an
//! account of the expected files: all counts, except for those reported lost.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::collections::BTreeSet;
use std::ffi::c_long;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rocov::format::registry::model::Document;
use rocov::store::layout::{OBJECTS, PROFRAW, REGISTRIES, REGISTRY};
use rocov::store::{PARTIAL, hold, partial_prefix};
use tempfile::TempDir;

use crate::account::{Account, LOADED, profiles};
use crate::file_faults::{EINTR, FUNCTIONS, Fault, Faults, SWEEPING, UNTOLD, errors_of};
use crate::fixture::name_in;
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::Compilation;
use crate::support::profile::profdata;
use crate::{figure, pass_on_figures};

/// The settings of a drain to a directory.
struct Way {
    pattern: &'static str,
    found: Found,
    /// The code links new files, because a rename would replace existing ones.
    only_links: bool,
}

/// The earlier contents of the directory.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    Nothing,
    /// A pool that another process has begun.
    Pool,
    /// Files of a killed process, and files that another process still writes.
    Leftovers,
}

const WAYS: [Way; 5] = {
    const fn way(pattern: &'static str, found: Found, only_links: bool) -> Way {
        Way {
            pattern,
            found,
            only_links,
        }
    }
    [
        way("new/app.profraw", Found::Nothing, false),
        way("new/%m.profraw", Found::Nothing, false),
        way("%m.profraw", Found::Pool, false),
        way("%m.profraw", Found::Nothing, true),
        way("app.profraw", Found::Leftovers, false),
    ]
};

/// The ends of their names: files without a writer, and files with one.
const ABANDONED: &str = "-abandoned";
const HELD: &str = "-held";

/// The folders of a data directory.
fn written_to(directory: &Path) -> [PathBuf; 3] {
    [OBJECTS, REGISTRIES, PROFRAW].map(|folder| directory.join(folder))
}

/// A directory to drain to.
struct Place {
    directory: TempDir,
    /// Files of another process, locked by it.
    held: Vec<File>,
}

impl Place {
    fn new(faults: &Faults, way: &Way) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut held = Vec::new();
        match way.found {
            Found::Nothing => {}
            Found::Pool => {
                let name = name_in(directory.path(), way.pattern);
                let mut account = Account::new(faults, &name, "before");
                account.drain();
                account.session.keep(&name);
            }
            Found::Leftovers => {
                for directory in written_to(directory.path()) {
                    fs::create_dir_all(&directory).expect("a directory");
                    let make = |end| {
                        let path = directory.join(format!("{}{end}", partial_prefix()));
                        File::create(path).expect("a file")
                    };
                    make(ABANDONED);
                    let file = make(HELD);
                    assert!(hold(&file));
                    held.push(file);
                }
            }
        }
        Self { directory, held }
    }

    /// Expects that no file without a writer remains, unless the fault prevented its removal, and
    /// that no other process's file is gone.
    fn check(&self, function: &str, what: &str) {
        for directory in written_to(self.directory.path()) {
            let entries = fs::read_dir(directory).into_iter().flatten();
            let names: Vec<String> = entries
                .map(|entry| entry.expect("an entry").file_name())
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            let left = |end| names.iter().filter(|name| name.ends_with(end)).count();
            let (abandoned, held) = (left(ABANDONED), left(HELD));
            assert_eq!(
                held,
                usize::from(!self.held.is_empty()),
                "{what}: {names:?}"
            );
            let may_stay = SWEEPING.contains(&function);
            assert!(abandoned == 0 || may_stay, "{what}: {names:?}");
            let temporary = names
                .iter()
                .filter(|name| name.starts_with(PARTIAL))
                .count();
            let own = temporary - abandoned - held;
            assert!(own == 0 || function == "unlink", "{what}: {names:?}");
        }
    }
}

/// The results of a run under a fault.
struct Ran {
    /// The number of calls of the function.
    calls: c_long,
    lines: Vec<String>,
}

/// Runs a process in `place` under a fault, and then another one without it.
fn run_under(faults: &Faults, fault: &Fault, way: &Way, place: &Place) -> Ran {
    let what = format!("{fault:?}, {}", way.pattern);
    let directory = place.directory.path();
    let name = name_in(directory, way.pattern);
    faults.arm(directory, fault);
    let mut account = Account::new(faults, &name, &what);
    account.count(1);
    account.drain();
    account.count(10);
    account.drain();
    account.count(100);
    account.unload(LOADED[1]);
    account.load(LOADED[1]);
    account.count(1000);
    account.drain();
    let not_kept = account.session.keep(&name);
    account
        .lines
        .extend(not_kept.iter().map(ToString::to_string));
    let calls = faults.disarm(fault.function);
    assert!(calls > fault.number, "it has not struck: {what}");

    // The fault is over.
    let said = account.lines.len();
    account.count(10_000);
    account.drain();
    assert_eq!(account.lines.len(), said, "{what}: {:?}", account.lines);
    assert!(account.session.keep(&name).is_empty(), "{what}");
    let is_registry = |path: &PathBuf| path.to_string_lossy().ends_with(REGISTRY);
    let entries = fs::read_dir(name.for_registry().parent().expect("a directory")).expect("it");
    let paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let registries: Vec<_> = paths.iter().filter(|path| is_registry(path)).collect();
    assert!(!registries.is_empty(), "{what}: {paths:?}");
    for registry in registries {
        let text = fs::read(registry).expect("a registry");
        Document::parse(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    place.check(fault.function, &what);
    Ran {
        calls,
        lines: account.lines,
    }
}

/// Expects at most one line, with the failed operation and its cause.
fn are_clear(lines: &[String], fault: &Fault, way: &Way) {
    let what = format!("{fault:?} {}: {lines:#?}", way.pattern);
    assert!(lines.len() <= 1, "{what}");
    assert!(fault.error != EINTR || lines.is_empty(), "{what}");
    for line in lines {
        let is_clear = line.contains("cannot ") && line.contains("(os error ");
        assert!(is_clear && !line.contains('\n'), "{what}");
    }
}

/// The numbers of the first, the last and two others of `calls`.
fn places(calls: c_long) -> BTreeSet<c_long> {
    match calls {
        0 => BTreeSet::new(),
        calls => [0, calls / 3, calls / 2, calls - 1].into(),
    }
}

/// The variable that gives the process under the preloaded library the number of its settings.
const WAY: &str = "ROCOV_TEST_WAY";

/// The starts of the lines with the called functions, and with those whose failures have a cost.
const CALLED: &str = "called: ";
const TOLD: &str = "told: ";

#[test]
#[ignore = "runs within the test below, under a preloaded library"]
fn under_a_preloaded_library() {
    let number = std::env::var(WAY).expect("the number of a way");
    let way = &WAYS[number.parse::<usize>().expect("a number")];
    let faults = Faults::find();
    faults.only_links(way.only_links);
    let mut survived = 0;
    for function in FUNCTIONS {
        let quiet = Fault {
            function,
            number: -1,
            error: 0,
            is_late: false,
        };
        let ran = run_under(&faults, &quiet, way, &Place::new(&faults, way));
        assert!(ran.lines.is_empty(), "{:?}", ran.lines);
        let mut told = 0;
        for number in places(ran.calls) {
            for (error, is_late) in errors_of(function) {
                let fault = Fault {
                    number,
                    error,
                    is_late,
                    ..quiet
                };
                let place = Place::new(&faults, way);
                let lines = run_under(&faults, &fault, way, &place).lines;
                are_clear(&lines, &fault, way);
                told += lines.len();
                are_read(place.directory.path(), survived);
                survived += 1;
            }
        }
        if ran.calls > 0 {
            println!("\n{CALLED}{function}");
        }
        if told > 0 {
            println!("\n{TOLD}{function}");
        }
    }
    figure("file_faults", survived);
}

/// llvm-profdata reads the files of some runs; the account checks every run.
fn are_read(directory: &Path, number: usize) {
    let profiles = ["profraw", "profraw/new"]
        .map(|folder| profiles(&directory.join(folder)))
        .concat();
    if number.is_multiple_of(25) && !profiles.is_empty() {
        let mut command = limited(profdata());
        command.args(["merge", "--failure-mode=any", "-o", "/dev/null"]);
        command.args(profiles.iter().map(|(path, _)| path));
        run(command.env_remove("LD_PRELOAD")).success().silently();
    }
}

#[test]
fn every_call_on_files_may_fail() {
    let source = repository("tests/fault_injection/file_faults.c");
    let library = preloaded(&source);
    let this = std::env::current_exe().expect("a test knows its own path");
    let (mut called, mut told) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..WAYS.len() {
        let mut command = limited(&this);
        command
            .args(["--exact", "files::under_a_preloaded_library"])
            .args(["--ignored", "--nocapture", "--test-threads=1"])
            .env("LD_PRELOAD", &library)
            .env(WAY, number.to_string());
        let ended = run(&mut command).success();
        let after = |start| {
            ended
                .stdout
                .lines()
                .filter_map(move |line| line.strip_prefix(start))
        };
        called.extend(after(CALLED).map(str::to_owned));
        told.extend(after(TOLD).map(str::to_owned));
        pass_on_figures(&ended);
    }
    assert_eq!(called, FUNCTIONS.map(str::to_owned).into());
    let untold: BTreeSet<_> = called.difference(&told).cloned().collect();
    assert_eq!(untold, UNTOLD.map(str::to_owned).into(), "nobody noticed");
}

/// Builds a library from a C source in the scratch directory.
pub(crate) fn preloaded(source: &Path) -> PathBuf {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    Compilation::by("clang-22")
        .arguments(["-Wall", "-Wextra", "-O1", "-shared", "-fPIC"])
        .source(source)
        .output(&format!("lib{stem}.so"))
}
