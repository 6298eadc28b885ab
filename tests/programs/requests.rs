//! Requests of a program through rocov.h: each count is in the files of its own label or window,
//! and nowhere else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rocov::format::blocks::Kind;
use rocov::store::layout::PROFRAW;

use crate::support::artifacts::repository;
use crate::support::command::{Ended, run};
use crate::support::gpu::{Stack, data};
use crate::support::profile::{functions, merge, raw_profiles};
use crate::support::program::{Program, TARGET};

/// Calls in one launch of the kernel.
const CALLS: u64 = 64;

/// The way in which launches are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By clang's counters in the program.
    Counters,
    /// By the modelled GPU, for a program without counters.
    Trace,
    /// By counters that rocov puts into the code when it is loaded.
    Instrument,
}

/// A program that has ended, and its profiles.
struct Ran {
    directory: tempfile::TempDir,
    ended: Ended,
    way: Way,
}

fn requests(stack: Stack, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    requests_in(Way::Counters, stack, arguments, environment)
}

fn requests_in(way: Way, stack: Stack, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let include = format!("-I{}", repository("runtime/include").display());
    let (sources, more) = (["requests/requests.hip"], ["-ldl", &include]);
    let program = match way {
        Way::Counters => Program::build(stack, &sources, &[], &more),
        Way::Trace | Way::Instrument => Program::with_flags(stack, &sources, &[], &more, &[]),
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = program.under_rocov(TARGET, &data(directory.path()));
    command.args(arguments).envs(environment.iter().copied());
    match way {
        Way::Counters => {}
        Way::Trace => _ = command.env("ROCOV_MODELGPU_TRACE", "1"),
        Way::Instrument => {
            command.env("ROCOV_INSTRUMENT", "1");
            command.env("ROCOV_CACHE", directory.path().join("cache"));
        }
    }
    let ended = run(&mut command).success();
    Ran {
        directory,
        ended,
        way,
    }
}

impl Ran {
    /// The profiles of each label, by its directory; `""` for those without a label.
    fn profiles(&self) -> BTreeMap<String, Vec<PathBuf>> {
        let root = data(self.directory.path()).join(PROFRAW);
        let mut found = BTreeMap::new();
        let mut left = vec![root.clone()];
        while let Some(directory) = left.pop() {
            let below = directory.strip_prefix(&root).expect("below the root");
            let below = below.strip_prefix("labels").unwrap_or(below);
            let profiles = raw_profiles(&directory);
            if !profiles.is_empty() {
                found.insert(below.to_str().expect("UTF-8").to_owned(), profiles);
            }
            let entries = std::fs::read_dir(&directory).expect("a directory");
            let paths = entries.map(|entry| entry.expect("an entry").path());
            left.extend(paths.filter(|path| path.is_dir()));
        }
        found
    }

    /// The launches that llvm-profdata finds in these profiles.
    fn launches(&self, profiles: &[PathBuf]) -> u64 {
        let merged = self.directory.path().join("merged.profdata");
        merge(profiles, &merged);
        let functions = functions(&merged);
        let calls = match self.way {
            Way::Counters => functions["counted"].calls,
            // The lanes at the first instruction are the second counter.
            Way::Trace | Way::Instrument => {
                functions[&Kind::Trace.record_name("counted")].blocks[0]
            }
        };
        assert_eq!(calls % CALLS, 0, "a launch was split: {}", self.ended);
        calls / CALLS
    }

    /// Expects this number of launches in the profiles of each label, and no other label.
    #[track_caller]
    fn has(&self, expected: &[(&str, u64)]) {
        let profiles = self.profiles();
        let found = profiles
            .iter()
            .map(|(label, profiles)| (label.as_str(), self.launches(profiles)));
        let expected: BTreeMap<&str, u64> = expected.iter().copied().collect();
        assert_eq!(
            found.collect::<BTreeMap<_, _>>(),
            expected,
            "{}",
            self.ended
        );
    }
}

#[test]
fn labels_have_what_was_launched_in_them() {
    for stack in Stack::for_programs() {
        let ran = requests(stack, &["labels"], &[]);
        ran.has(&[
            ("", 2 + 7),
            ("before%20the%20first%20launch", 1),
            ("suite", 3 + 6),
            ("suite/a/b", 4 + 5),
        ]);
        assert_eq!(
            ran.ended.stderr.lines().count(),
            1,
            "of the label that is none: {}",
            ran.ended
        );
    }
}

/// A trace of a program without counters goes where counters would go.
#[test]
fn executed_instructions_are_where_counters_would_be() {
    are_where_counters_would_be(Way::Trace);
}

/// So do the counts of counters that rocov puts into its code.
#[test]
fn inserted_counters_are_where_others_would_be() {
    are_where_counters_would_be(Way::Instrument);
}

fn are_where_counters_would_be(way: Way) {
    let traced = |arguments: &[&str], environment: &[(&str, &str)]| {
        requests_in(way, Stack::usual(), arguments, environment)
    };
    traced(&["labels"], &[]).has(&[
        ("", 2 + 7),
        ("before%20the%20first%20launch", 1),
        ("suite", 3 + 6),
        ("suite/a/b", 4 + 5),
    ]);
    traced(&["windows"], &[]).has(&[("", 2 + 16), ("dump-1", 8)]);
    traced(&["labels"], &[("ROCOV_PAUSED", "1")]).has(&[("", 0)]);
    traced(&["forks"], &[]).has(&[("", 1)]);
    traced(&["orphans", "10"], &[]).has(&[("", 1)]);
    let ran = traced(&["load", "50"], &[]);
    let all: Vec<PathBuf> = ran.profiles().into_values().flatten().collect();
    let launched: u64 = ran
        .ended
        .stdout
        .strip_suffix(" launches\n")
        .and_then(|text| text.parse().ok())
        .expect("a number");
    assert_eq!(ran.launches(&all), launched, "{}", ran.ended);
}

#[test]
fn labels_are_within_that_of_the_process() {
    let ran = requests(Stack::usual(), &["threads"], &[("ROCOV_LABEL", "all")]);
    ran.has(&[
        ("all", 64),
        ("all/one", 1),
        ("all%2Fone&all%2Fthe%2Fother", 2 + 4 + 8),
        ("all/the/other", 16 + 32),
        ("all/left%20open", 128),
    ]);
}

#[test]
fn windows_have_what_was_launched_in_them() {
    for stack in Stack::for_programs() {
        requests(stack, &["windows"], &[]).has(&[("", 2 + 16), ("dump-1", 8)]);
    }
}

#[test]
fn nothing_counts_in_a_paused_program_until_a_window_opens() {
    let paused = [("ROCOV_PAUSED", "1")];
    let ran = requests(Stack::usual(), &["labels"], &paused);
    ran.has(&[("", 0)]);
    requests(Stack::usual(), &["windows"], &paused).has(&[("", 2 + 16), ("dump-1", 8)]);
}

/// Four threads launch while a fifth dumps without a pause. llvm-profdata must read all profiles,
/// because it merges all or none.
#[test]
fn a_program_under_load_is_dumped_a_thousand_times() {
    let ran = requests(Stack::usual(), &["load", "1000"], &[]);
    let profiles = ran.profiles();
    let all: Vec<PathBuf> = profiles.values().flatten().cloned().collect();
    let launched: u64 = ran
        .ended
        .stdout
        .strip_suffix(" launches\n")
        .and_then(|text| text.parse().ok())
        .expect("a number");
    assert_eq!(ran.launches(&all), launched, "{}", ran.ended);
    // The counts of the last launches come home at the end.
    assert!(profiles.len() >= 1000, "{} of 1000 dumps", profiles.len());
}

/// While one thread starts HIP, HSA reports that it runs, but rocov must not call it yet.
#[test]
fn requests_while_another_thread_starts_hip() {
    for stack in Stack::for_programs() {
        let ran = requests(stack, &["starting"], &[]);
        let all: Vec<PathBuf> = ran.profiles().into_values().flatten().collect();
        assert_eq!(ran.launches(&all), 1, "{stack:?}: {}", ran.ended);
    }
}

/// rocov must not call it at a fork either, in a program without requests.
#[test]
fn forks_while_another_thread_starts_hip() {
    for stack in Stack::for_programs() {
        requests(stack, &["forks"], &[]).has(&[("", 1)]);
    }
}

/// A child inherits the locks of its parent's threads, and no thread that would release them.
#[test]
fn requests_of_forked_children_answer_nothing_at_once() {
    for stack in Stack::for_programs() {
        requests(stack, &["orphans", "100"], &[]).has(&[("", 1)]);
    }
}
