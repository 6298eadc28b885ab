//! The drain on a device in memory: what it promises when loads, memory and files misbehave.
//!
//! Code objects are real ones; what they counted is written by the test and read back by
//! llvm-profdata.

mod amplified;
mod blank;
#[allow(
    dead_code,
    reason = "shared with the tests of faults, which use all of it"
)]
mod fake_device;
mod faults;
mod files;
mod hostile;
mod kills;
mod loads;
mod made_up;
mod messages;
mod mutants;
mod on_request;
mod pools;
mod processes;
mod registry;
#[path = "../whole_program/support/mod.rs"]
#[allow(
    dead_code,
    reason = "shared with the whole-program tests, which use all of it"
)]
mod support;
mod versions;

use std::path::{Path, PathBuf};

use fake_device::FakeDevice;
use rocov::device::Executable;
use rocov::output::layout::PROFRAW;
use rocov::output::{Expansion, ProfileName};
use support::compile::code_object;
use support::profile::{Function, Functions, functions, merge, raw_profiles};

const FIRST: Executable = Executable(0x51);
const SECOND: Executable = Executable(0x52);

/// Kernels of testdata/kernels/vecadd.hip: two counters each.
const VECADD: &str = "_Z6vecaddPKfS0_Pfj";
const SAXPY: &str = "_Z5saxpyfPKfPfj";

/// The name of the profiles of a data directory by this pattern.
fn profile_name(directory: &Path, pattern: &str) -> ProfileName {
    let values = Expansion {
        pid: std::process::id(),
        ..Expansion::default()
    };
    let name = ProfileName::parse(pattern, &values, &directory.join(PROFRAW));
    name.expect("a good pattern").in_data(directory)
}

fn vecadd() -> Vec<u8> {
    std::fs::read(code_object("vecadd", "gfx90a", "-O1", 4)).expect("a compiled code object")
}

fn collatz() -> Vec<u8> {
    std::fs::read(code_object("collatz", "gfx90a", "-O1", 4)).expect("a compiled code object")
}

/// A directory for profiles, and their name in it.
fn output() -> (tempfile::TempDir, ProfileName) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = profile_name(directory.path(), "app.profraw");
    (directory, name)
}

/// All counts in `directory`, added up by llvm-profdata.
fn merged(directory: &Path) -> Functions {
    merged_of(&raw_profiles(directory), directory)
}

fn merged_of(profiles: &[PathBuf], directory: &Path) -> Functions {
    let indexed = directory.join("merged.profdata");
    merge(profiles, &indexed);
    functions(&indexed)
}

/// What llvm-profdata shows of a function: its calls, then its other counters.
fn counts(functions: &Functions, name: &str) -> Vec<u64> {
    let Function { calls, blocks, .. } = &functions[name];
    std::iter::once(*calls)
        .chain(blocks.iter().copied())
        .collect()
}

/// A device with one load of vecadd.
fn loaded() -> FakeDevice {
    let mut device = FakeDevice::new(1);
    device.load(FIRST, 0, &vecadd());
    device
}
