//! Several GPUs, of which the program uses one: rocov does not touch the others.

use super::{Ran, program};
use crate::support::command::Ended;
use crate::support::gpu::Stack;
use crate::support::program::counts;

/// Runs a kernel on the GPU with this index, on a machine with `devices` GPUs.
fn only_on(device: usize, devices: usize) {
    for stack in Stack::all() {
        let gpus = format!("gfx90ax{devices}");
        let program = program(stack, &["fill"], &[]);
        let (ran, ended) = Ran::verbose(&program, &gpus, &[&device.to_string()]);
        let profile = ran.device();
        let name = profile.file_name().unwrap_or_default().to_string_lossy();
        assert_eq!(
            name.split('.').nth(2),
            Some(device.to_string().as_str()),
            "the third part of {name} is the GPU's index"
        );
        assert_eq!(counts(&profile, "_Z4fillPiii"), (32, vec![32]));
        says_what_it_did(&ended, devices);
    }
}

/// The lines of a pass over one code object; the last line has the numbers.
#[track_caller]
fn says_what_it_did(ended: &Ended, agents: usize) {
    let copied = "rocov: Copied device sections: Counters=16, Data=64, Names=";
    let walk = format!("rocov: HSA walk complete: agents={agents} pairs=");
    let drained = "found=1 drained=1 iter-failures=0";
    let mut lines = ended.stderr.lines();
    assert!(lines.any(|line| line.starts_with(copied)), "{ended}");
    let is_walk = |line: &str| line.starts_with(&walk) && line.ends_with(drained);
    assert!(lines.any(is_walk), "{ended}");
}

#[test]
fn multi_gpu() {
    only_on(0, 4);
}

#[test]
fn nondefault_device() {
    only_on(1, 2);
}
