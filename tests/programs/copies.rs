//! Code that counts in copies of the counters has the counts of its source on the host. testdata/copies has the copies
//! and their tables by hand.

use std::path::Path;

use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::{code_object_of, host_oracle_of};
use crate::support::gpu::{Stack, the_profile};
use crate::support::profile::{Functions, functions, merge};
use crate::support::spec::expand;
use crate::support::unpacked::not_run;

/// The counts of the spec: calls, and calls below the limit.
const COUNTS: (u64, [u64; 1]) = (640 + 640 + 192, [500 + 500 + 100]);

/// The counts of a raw profile.
fn counted(profile: &Path) -> Functions {
    let merged = profile.with_extension("profdata");
    merge(&[profile.to_owned()], &merged);
    functions(&merged)
}

fn on_host(level: &str) -> Functions {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profile = directory.path().join("host.profraw");
    let mut oracle = limited(host_oracle_of(
        &repository("testdata/copies/tally.hip"),
        level,
        &[],
    ));
    oracle
        .arg(expand(
            &repository("testdata/copies/tally.spec"),
            directory.path(),
        ))
        .arg(directory.path())
        .env("LLVM_PROFILE_FILE", &profile);
    run(&mut oracle).success();
    counted(&profile)
}

fn on_device(stack: Stack, target: &str, level: &str) -> Functions {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = repository("testdata/copies/tally.hip");
    let object = code_object_of(&source, target, level, stack.code_object_version());
    let spec = expand(&repository("testdata/copies/tally.spec"), directory.path());
    let ended = stack.run(target, &object, &spec, directory.path());
    ended.success().silently();
    counted(&the_profile(directory.path()))
}

#[test]
fn counts_in_copies_are_those_of_the_host() {
    for level in ["-O0", "-O1", "-O2"] {
        let host = on_host(level);
        let tally = &host["_Z5tallyPjj"];
        assert_eq!(
            (tally.calls, tally.blocks.as_slice()),
            (COUNTS.0, &COUNTS.1[..]),
            "{level}"
        );
        for target in ["gfx90a", "gfx942"] {
            let stack = Stack::for_target(target);
            if matches!(stack, Stack::Interpreter) {
                not_run("copies of counters on gfx942");
                continue;
            }
            assert_eq!(on_device(stack, target, level), host, "{level} on {target}");
        }
    }
}

#[test]
fn every_stack_has_the_counts_of_copies() {
    let host = on_host("-O1");
    for stack in Stack::all() {
        assert_eq!(on_device(stack, "gfx90a", "-O1"), host, "{stack:?}");
    }
}
