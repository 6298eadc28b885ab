//! `rocov run --instrument` puts counters into the machine code of programs that were built without them. The trace of the
//! modelled GPU, which counts each instruction that it executes, is the judge: profiles and reports are equal.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use serde_json::Value;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::{device_only, has_all_levels};
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::{Functions, functions};
use crate::support::program::{Program, TARGET, device_profiles};

/// The ways in which a run without coverage flags counts.
const WAYS: [&str; 2] = ["--trace", "--instrument"];

/// Programs that launch kernels of all kinds, and their sources.
const PROGRAMS: [&[&str]; 8] = [
    &["traced/kernels.hip"],
    &["uniformity/shares.hip"],
    &["archs/quantise.hip"],
    &["upstream/histogram.hip"],
    &["upstream/classify.hip"],
    &["pgo/calibrate.hip"],
    &["sampled/blocks.hip"],
    &["exclusions/exclusions.hip"],
];

/// A program without rocov's flags.
fn plain(stack: Stack, sources: &[&str]) -> Program {
    Program::with_flags(
        stack,
        sources,
        &[],
        &["-gline-tables-only", "-O2", "-ldl"],
        &[],
    )
}

/// `rocov run` in one of the ways, up to the program, with a cache in `directory`.
fn rocov_run(way: &str, gpus: &str, directory: &Path) -> (PathBuf, Command) {
    let data = directory.join(way.trim_start_matches('-'));
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", &format!("model:{gpus}"), way, "-o"]);
    command.arg(&data).arg("--");
    command.env("ROCOV_CACHE", directory.join("cache"));
    (data, command)
}

/// A report as JSON, without what differs between two runs: paths of the data directory.
fn report(data: &Path) -> Value {
    let mut command = limited(built("rocov"));
    command.args(["report", "--json"]).arg(data);
    let text = run(&mut command).success().silently().stdout;
    let here = data.to_str().expect("a path in UTF-8");
    json(text.replace(here, "DATA"))
}

/// The records of all device profiles of a run, by code object.
fn records(data: &Path) -> BTreeMap<String, Functions> {
    let profiles = device_profiles(data).into_iter().map(|profile| {
        let name = profile.file_name().expect("a name").to_string_lossy();
        let object: Vec<_> = name.split('.').take(2).collect();
        (object.join("."), functions(&profile))
    });
    profiles.collect()
}

/// Checks that two runs of a program ended alike and counted alike. Returns how they ended.
#[track_caller]
fn counts_as_traced(what: &str, directory: &Path, start: impl Fn(&str) -> Ended) -> Ended {
    let [traced, instrumented] = WAYS.map(start);
    assert_eq!(
        (traced.status.code(), &traced.stdout),
        (instrumented.status.code(), &instrumented.stdout),
        "{what}: {instrumented}"
    );
    let [expected, found] = WAYS.map(|way| directory.join(way.trim_start_matches('-')));
    let (expected_records, found_records) = (records(&expected), records(&found));
    assert!(!expected_records.is_empty(), "{what}: {traced}");
    for (object, functions) in &expected_records {
        let counted = found_records.get(object);
        let counted = counted.unwrap_or_else(|| panic!("{what}: no {object}: {instrumented}"));
        for (name, function) in functions {
            assert_eq!(counted.get(name), Some(function), "{what}: {object} {name}");
        }
    }
    assert_eq!(found_records, expected_records, "{what}");
    assert_eq!(report(&found), report(&expected), "{what}");
    instrumented
}

/// Each program runs on one stack in turn, and on each one if `ROCOV_TEST_LEVELS` is `all`.
#[test]
fn reports_are_those_of_a_trace() {
    let stacks = Stack::for_programs();
    for (number, sources) in PROGRAMS.into_iter().enumerate() {
        let turn = number % stacks.len();
        let chosen = if has_all_levels() {
            &stacks
        } else {
            &stacks[turn..=turn]
        };
        for &stack in chosen {
            let program = plain(stack, sources);
            let directory = tempfile::tempdir().expect("a temporary directory");
            let what = format!("{}: {}", stack.title(), sources[0]);
            let ended = counts_as_traced(&what, directory.path(), |way| {
                let (_, mut command) = rocov_run(way, TARGET, directory.path());
                run(command.arg(&program.file))
            });
            assert_eq!(ended.stderr, "", "{what}");
        }
    }
}

/// With `--counters=reached`, counts are 0 or 1.
#[test]
fn reached_code_is_that_of_a_trace() {
    let program = plain(Stack::usual(), &["traced/kernels.hip"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (traced, mut command) = rocov_run("--trace", TARGET, directory.path());
    let expected = run(command.arg(&program.file)).success();
    let data = directory.path().join("reached");
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", &format!("model:{TARGET}")]);
    command.args(["--instrument", "--counters=reached", "-o"]);
    command.arg(&data).arg("--").arg(&program.file);
    command.env("ROCOV_CACHE", directory.path().join("cache"));
    let ended = run(&mut command).success();
    assert_eq!(ended.stdout, expected.stdout);
    let mut all = records(&traced);
    for function in all.values_mut().flat_map(BTreeMap::values_mut) {
        function.calls = function.calls.min(1);
        let blocks = function.blocks.iter_mut();
        blocks.for_each(|count| *count = (*count).min(1));
    }
    assert_eq!(records(&data), all, "{ended}");
}

/// The kernels of the sample have been instrumented before, in the cache.
#[test]
fn later_runs_take_the_code_from_the_cache() {
    let program = plain(Stack::usual(), &["traced/kernels.hip"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut all = Vec::new();
    for (turn, cached) in [("first", false), ("second", true)] {
        let (data, mut command) = rocov_run("--instrument", TARGET, directory.path());
        let ended = run(command.arg(&program.file).env("ROCOV_VERBOSE", "1")).success();
        let line = ended
            .stderr
            .lines()
            .find(|line| line.contains(": instrumented"));
        let line = line.unwrap_or_else(|| panic!("{turn}: {ended}"));
        assert_eq!(line.ends_with(", from the cache"), cached, "{turn}: {line}");
        assert!(line.contains("file:///"), "{line}");
        all.push(records(&data));
        fs::remove_dir_all(data).expect("a data directory");
    }
    assert_eq!(all[0], all[1]);
    let entries = fs::read_dir(directory.path().join("cache/instrumented")).expect("a cache");
    let entry = entries.last().expect("an entry").expect("an entry").path();
    let mut damaged = fs::read(&entry).expect("an entry");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&entry, damaged).expect("a damaged entry");
    let (data, mut command) = rocov_run("--instrument", TARGET, directory.path());
    run(command.arg(&program.file)).success();
    assert_eq!(records(&data), all[0], "a damaged entry is made again");
}

/// A code object of one kernel, without flags. Its name tells it from others.
fn module(stack: Stack, which: &str) -> PathBuf {
    let clang = stack.compiler().clang;
    device_only(clang, &[TARGET], stack.code_object_version())
        .arguments(["-O1", &format!("-DNUMBER={which}")])
        .source(repository("testdata/programs/traced/module.hip"))
        .output("traced-module")
}

#[test]
fn modules_come_and_go() {
    for stack in Stack::for_programs() {
        let program = plain(stack, &["traced/modules.hip"]);
        let (one, two) = (module(stack, "1"), module(stack, "2"));
        let directory = tempfile::tempdir().expect("a temporary directory");
        counts_as_traced(stack.title(), directory.path(), |way| {
            let (_, mut command) = rocov_run(way, TARGET, directory.path());
            command.arg(&program.file);
            for (object, groups) in [(&one, "3"), (&two, "5"), (&one, "7")] {
                command.arg("load").arg(object);
                command.args(["launch", groups, "unload"]);
            }
            command.arg("load").arg(&two);
            command.args(["launch", "11", "reset", "launch", "13"]);
            run(&mut command).success()
        });
    }
}

/// Code that clang has instrumented stays as it is, and so does what it counts.
#[test]
fn code_with_counters_of_clang_stays_as_it_is() {
    let program = Program::build(Stack::usual(), &["traced/kernels.hip"], &[], &[]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("plain");
    run(&mut program.under_rocov(TARGET, &data)).success();
    let (instrumented, mut command) = rocov_run("--instrument", TARGET, directory.path());
    run(command.arg(&program.file)).success().silently();
    assert_eq!(records(&instrumented), records(&data));
    assert!(!directory.path().join("cache/instrumented").exists());
}

/// HIP and ROCr refuse some damage, crash on other, and take the rest: all as without rocov.
#[test]
fn damaged_code_runs_as_without_rocov() {
    /// More runs without rocov that look for one that ends as the run with it.
    const TRIES: usize = 20;
    let stack = Stack::usual();
    let program = plain(stack, &["traced/modules.hip"]);
    let whole = fs::read(module(stack, "1")).expect("a code object");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("damaged.co");
    let load = |command: &mut Command| {
        let ended = run(command.arg("load").arg(&file));
        // HIP crashes by one signal or another, as the memory after the file has it.
        let status = ended.status.code().filter(|status| *status < 128);
        (status, ended)
    };
    let compare = |what: &str, damaged: &[u8]| {
        fs::write(&file, damaged).expect("a code object");
        let (_, mut command) = rocov_run("--instrument", TARGET, directory.path());
        let (status, ended) = load(command.arg(&program.file));
        // Some damage makes HIP read past the end of the file, and then one run crashes and another one does not.
        let mut alone = load(&mut program.alone());
        for _ in 0..TRIES {
            if alone.0 != status {
                alone = load(&mut program.alone());
            }
        }
        let (expected, alone) = alone;
        assert_eq!(status, expected, "{what}: {alone} {ended}");
        assert_eq!(ended.stdout, alone.stdout, "{what}: {ended}");
        ended
    };
    // The header, and everything after the program headers and before the section headers: with others, ROCr reads past the
    // end of the file.
    let sections = u64::from_le_bytes(whole[40..48].try_into().expect("8 bytes")) as usize;
    let many = (0..24).map(|part| 0x238 + part * (sections - 0x238) / 24);
    for at in [4, 18, 40, 60, 62].into_iter().chain(many) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        compare(&format!("byte {at}"), &damaged);
    }
    // Code that no GPU runs. Nothing launches it.
    let elf = object::File::parse(whole.as_slice()).expect("an ELF");
    let text = elf.section_by_name(".text").expect("code");
    let (start, size) = text.file_range().expect("code");
    let mut damaged = whole.clone();
    damaged[start as usize..(start + size) as usize].fill(0xff);
    let ended = compare("no instructions", &damaged);
    let lines = ended
        .stderr
        .lines()
        .filter(|line| line.contains(" runs uncounted: "));
    assert_eq!(lines.count(), 1, "{ended}");
}

/// Kernels before a fault, and those that the fault stops, count as traced.
#[test]
fn a_fault_leaves_the_counts_of_earlier_kernels() {
    let program = plain(Stack::usual(), &["stopped/stopped.hip"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut counted = Vec::new();
    for way in WAYS {
        let (data, mut command) = rocov_run(way, TARGET, directory.path());
        let ended = run(command.arg(&program.file));
        let records = records(&data);
        let functions = records
            .values()
            .next()
            .unwrap_or_else(|| panic!("{way}: {ended}"));
        counted.push((
            ended.status.code(),
            functions["rocov-trace;counted"].clone(),
        ));
    }
    assert_eq!(counted[0], counted[1]);
}

/// Both queues add to the same counters.
#[test]
fn two_queues_count_as_traced() {
    let program = plain(Stack::usual(), &["queues/queues.hip"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    counts_as_traced("two queues", directory.path(), |way| {
        let (_, mut command) = rocov_run(way, TARGET, directory.path());
        run(command.arg(&program.file)).success()
    });
}

/// A wave brings its counts to memory after 65,536 rounds of a loop. Those of kernels that ended are complete.
#[test]
fn a_kernel_that_is_stopped_has_the_rounds_that_are_in_memory() {
    const BROUGHT: u64 = 65_536;
    /// The rounds that testdata/programs/queues waits for.
    const WAITED: u64 = 200_000;
    let program = plain(Stack::usual(), &["queues/queues.hip"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (traced, mut command) = rocov_run("--trace", TARGET, directory.path());
    run(command.arg(&program.file)).success();
    let (data, mut command) = rocov_run("--instrument", TARGET, directory.path());
    command.arg(&program.file).arg("endless");
    let ended = run(command
        .env("ROCOV_SNAPSHOT_EVERY", "10m")
        .env("ROCOV_WAIT", "1"));
    let [expected, found] = [&traced, &data].map(|data| {
        let records = records(data).into_values().next();
        records.unwrap_or_else(|| panic!("{ended}"))
    });
    let turns = "rocov-trace;turns";
    assert_eq!(found[turns], expected[turns], "{ended}");
    let endless = &found["rocov-trace;endless"];
    let most = endless.blocks.iter().copied().max().unwrap_or_default();
    // The last of these rounds may not have come to memory.
    assert!(most >= WAITED - 2 * BROUGHT, "{endless:?} {ended}");
}

/// Nobody knows whether a function without counters ran. Reports name it.
#[test]
fn functions_without_counters_are_named() {
    let program = plain(Stack::usual(), &["traced/partly.hip"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (data, mut command) = rocov_run("--instrument", TARGET, directory.path());
    let ended = run(command.arg(&program.file)).success();
    let lines: Vec<_> = ended.stderr.lines().collect();
    let [line] = lines.as_slice() else {
        panic!("{ended}");
    };
    let part = "is instrumented in part: its function jumps has no counters, because the branch";
    assert!(line.contains(part), "{line}");
    let report = || {
        let mut command = limited(built("rocov"));
        run(command.args(["report", "--json"]).arg(&data)).success()
    };
    report().says(&["are partial: rocov could not insert counters into jumps, so the report"]);
    // A trace of the same program has its counts, and fits.
    let mut command = limited(built("rocov"));
    command.args(["run", "--trace", "--gpu", &format!("model:{TARGET}"), "-o"]);
    run(command.arg(&data).arg("--").arg(&program.file)).success();
    let both = report();
    assert!(!both.stderr.contains("left out"), "{both}");
}
