//! Several GPUs, of which the program uses one: rocov does not touch the others.

use super::{Ran, Toolchain};
use crate::support::command::Ended;

/// Runs a kernel on the GPU with this index, on a machine with `devices` GPUs.
fn only_on(device: usize, devices: usize) {
    for toolchain in Toolchain::all() {
        let gpus = format!("gfx90ax{devices}");
        let program = toolchain.program(&["fill"], &[]);
        let (ran, ended) = Ran::verbose(toolchain, &program, &gpus, &[&device.to_string()]);
        let profile = ran.device();
        let name = profile.file_name().unwrap_or_default().to_string_lossy();
        assert_eq!(
            name.split('.').nth(2),
            Some(device.to_string().as_str()),
            "the third part of {name} is the GPU's index"
        );
        assert_eq!(toolchain.counts(&profile, "_Z4fillPiii"), (32, vec![32]));
        says_what_it_did(toolchain, &ended, devices);
    }
}

/// The lines of a pass over one code object; the last line has the numbers.
#[track_caller]
fn says_what_it_did(toolchain: Toolchain, ended: &Ended, agents: usize) {
    // A record of clang 23 has a pointer more, to the counters of uniform code.
    let data = if toolchain.newest.is_some() { 72 } else { 64 };
    let copied = format!("rocov: Copied device sections: Counters=16, Data={data}, Names=");
    let walk = format!("rocov: HSA walk complete: agents={agents} pairs=");
    let drained = "found=1 drained=1 iter-failures=0";
    let mut lines = ended.stderr.lines();
    assert!(lines.any(|line| line.starts_with(&copied)), "{ended}");
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
