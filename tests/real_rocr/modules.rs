//! Modules: the profile has each counter increment of a kernel once, whatever the program does with
//! the code object.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use crate::programs::{COUNT, Ran, WORK_ITEMS, launches, object, part, source};
use crate::support::compile::{clang, device_only};
use crate::support::gpu::Stack;
use crate::support::profile::functions;

/// Runs steps on one GPU and expects one profile with this number of launches.
fn counted(steps: &str, expected: u64) {
    for stack in Stack::all() {
        let ran = Ran::steps(stack, "gfx90a", &object("count.hip", stack), steps);
        assert_eq!(
            launches(&ran.profile()),
            expected,
            "{steps} on {stack:?}: {}",
            ran.ended
        );
        ran.ended.silently();
    }
}

#[test]
fn from_a_file() {
    counted("load launch sync unload", 1);
}

#[test]
fn from_memory() {
    counted("data launch launch sync unload", 2);
}

#[test]
fn loaded_twice_at_once() {
    counted("load data launch launch sync unload launch sync unload", 3);
}

#[test]
fn loaded_again() {
    counted("load launch sync unload load launch launch sync unload", 3);
}

#[test]
fn one_unloaded_and_one_left() {
    counted("load launch sync unload load launch", 2);
}

#[test]
fn loaded_and_never_launched() {
    // Loaded code objects have a profile of zeros, as with LLVM's own drain.
    counted("load", 0);
    counted("load unload", 0);
}

/// Neither an unload nor the program's end waits for kernels by itself. A launch that the
/// program waits for shows the kernel's counts.
#[test]
fn a_kernel_that_still_runs_is_waited_for() {
    const ROUNDS: u64 = 10_000;
    let counters = |stack, steps: &str| {
        let ran = Ran::steps(stack, "gfx90a", &object("count.hip", stack), steps);
        let count = functions(&ran.profile())[COUNT].clone();
        ran.ended.silently();
        count
    };
    for stack in Stack::all() {
        let expected = counters(stack, &format!("load launch::{ROUNDS} sync unload"));
        assert_eq!(expected.calls, WORK_ITEMS);
        assert_eq!(expected.blocks[0], WORK_ITEMS * ROUNDS);
        for steps in [
            "load LAUNCH unload",
            "load LAUNCH unload sync",
            "data LAUNCH unload",
            "load LAUNCH",
        ] {
            let steps = steps.replace("LAUNCH", &format!("launch::{ROUNDS}"));
            assert_eq!(counters(stack, &steps), expected, "{steps} on {stack:?}");
        }
    }
}

/// For example, a kernel that runs until the host stops it. With two modules, rocov waits for the
/// queue once.
#[test]
fn a_kernel_that_does_not_end_is_not_waited_for_for_ever() {
    let stack = Stack::Debian12;
    let ran = Ran::steps_with(
        stack,
        "gfx90a",
        &[("ROCOV_WAIT", "1")],
        &object("count.hip", stack),
        "load launch sync load launch::4000000000 unload unload",
    );
    let said = "rocov: a kernel is still running after 1 s (ROCOV_WAIT) while code is unloaded: if it \
                belongs to that code, its later counts are lost; increase ROCOV_WAIT\n\
                rocov: counts are lost: see the lines above\n";
    assert_eq!(ran.ended.stderr, said, "{}", ran.ended);
    let count = &functions(&ran.profile())[COUNT];
    assert_eq!(count.blocks[1], WORK_ITEMS / 4, "{count:?}");
}

#[test]
fn hips_own_code_objects_are_left_alone() {
    for stack in Stack::all() {
        let object = object("count.hip", stack);
        let verbose = [("ROCOV_VERBOSE", "1")];
        let ran = Ran::steps_with(stack, "gfx90a", &verbose, &object, "load launch sync");
        let loaded = |line: &&str| line.contains(" loaded: ");
        let blits = |line: &&str| line.contains(", 0 instrumented");
        let lines: Vec<&str> = ran.ended.stderr.lines().filter(loaded).collect();
        let others = lines.iter().copied().filter(blits).count();
        assert!(others > 0, "no other code object was seen: {}", ran.ended);
        assert_eq!(lines.len(), others + 1, "{}", ran.ended);
        assert_eq!(launches(&ran.profile()), 1);
    }
}

#[test]
fn eight_gpus_have_a_profile_each() {
    let mut steps = String::new();
    for gpu in 0..8 {
        steps += &format!("device:{gpu} load ");
        steps += &"launch ".repeat(gpu + 1);
    }
    let object = object("count.hip", Stack::Debian12);
    let ran = Ran::steps(Stack::Debian12, "gfx90ax8", &object, &(steps + "sync"));
    let profiles = ran.profiles();
    assert_eq!(profiles.len(), 8, "{profiles:?}");
    for (gpu, profile) in profiles.iter().enumerate() {
        assert_eq!(part(profile, 2), gpu.to_string());
        assert_eq!(launches(profile), gpu as u64 + 1, "{}", profile.display());
    }
}

#[test]
fn gpus_of_two_targets_have_profiles_of_their_own() {
    let stack = Stack::for_target("gfx942");
    if matches!(stack, Stack::Interpreter) {
        println!("no stack here knows both gfx90a and gfx942: see tools/stacks");
        return;
    }
    let object = device_only(clang(), &["gfx90a", "gfx942"], stack.code_object_version())
        .arguments(["-O1"])
        .counting()
        .source(source("count.hip"))
        .output("count.bundle");
    let steps = "device:0 load launch device:1 load launch launch sync";
    let ran = Ran::steps(stack, "gfx90a,gfx942", &object, steps);
    let profiles = ran.profiles();
    let found: Vec<_> = profiles
        .iter()
        .map(|profile| (part(profile, 0), part(profile, 2), launches(profile)))
        .collect();
    let expected = [("gfx90a", "0", 1), ("gfx942", "1", 2)];
    assert_eq!(
        found,
        expected.map(|(target, gpu, launches)| (target.into(), gpu.into(), launches))
    );
    assert_ne!(part(&profiles[0], 1), part(&profiles[1], 1), "identities");
}
