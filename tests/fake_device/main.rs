//! The drain on a device in memory: it keeps its promises when loads, memory and files misbehave.
//!
//! The code objects are real. The tests write their counts, and llvm-profdata reads them back.

mod amplified;
mod blank;
mod copies;
mod faults;
mod files;
mod hostile;
mod inserted;
mod kills;
mod loads;
mod messages;
mod mutants;
mod on_request;
mod pools;
mod processes;
mod registry;
mod version_11;
mod versions;

use std::path::{Path, PathBuf};

use rocov::device::Executable;
use rocov::store::layout::PROFRAW;
use rocov::store::{Expansion, ProfileName};
use rocov_tests as support;
use rocov_tests::compile::code_object;
use rocov_tests::fake_device::FakeDevice;
use rocov_tests::profile::{Function, Functions, functions, merge, raw_profiles};

const FIRST: Executable = Executable(0x51);
const SECOND: Executable = Executable(0x52);

/// Kernels of testdata/kernels/vecadd.hip: two counters each.
const VECADD: &str = "_Z6vecaddPKfS0_Pfj";
const SAXPY: &str = "_Z5saxpyfPKfPfj";

/// The profile name of a data directory with this pattern.
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

/// A directory for profiles, and a profile name in it.
fn output() -> (tempfile::TempDir, ProfileName) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = profile_name(directory.path(), "app.profraw");
    (directory, name)
}

/// The sum of all counts in `directory`, by llvm-profdata.
fn merged(directory: &Path) -> Functions {
    merged_of(&raw_profiles(directory), directory)
}

fn merged_of(profiles: &[PathBuf], directory: &Path) -> Functions {
    let indexed = directory.join("merged.profdata");
    merge(profiles, &indexed);
    functions(&indexed)
}

/// The counts of a function in llvm-profdata's output: its calls, then its other counters.
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
