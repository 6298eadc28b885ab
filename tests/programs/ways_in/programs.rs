//! The programs of testdata/programs/ways_in, their runs without `rocov run`, and their counts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::{Compilation, INSTRUMENTATION, device_header};
use crate::support::gpu::Stack;
use crate::support::profile::{functions, merge, raw_profiles};

/// Debian 12's HIP and ROCr, and other unpacked releases.
pub(super) fn stacks() -> impl Iterator<Item = Stack> {
    Stack::all().into_iter()
}

/// The flags that link a program with Debian 12's HIP.
pub(super) const HIP: [&str; 1] = ["-lamdhip64"];

/// The kernel of tally.hip.
pub(super) const KERNEL: &str = "tally_kernel";

pub(super) fn source(name: &str) -> PathBuf {
    repository("testdata/programs/ways_in").join(name)
}

fn tally(kernel: &str, arguments: &[&str], output: &str) -> PathBuf {
    Compilation::on(Stack::Debian12)
        .arguments(["--config"])
        .source(repository("testdata/sample/debian12.cfg"))
        .arguments(["-O1", "-fPIC"])
        .arguments(arguments)
        .arguments([format!("-DTALLY_KERNEL={kernel}")])
        .arguments(
            INSTRUMENTATION
                .iter()
                .flat_map(|flag| ["-Xarch_device", flag]),
        )
        .arguments(["-include"])
        .source(device_header())
        .reads([source("tally.h")])
        .source(source("tally.hip"))
        .output(output)
}

/// tally.hip with this name for its kernel: host and device code, ready to link.
pub(super) fn tally_object(kernel: &str) -> PathBuf {
    tally(kernel, &["-c"], &format!("{kernel}.o"))
}

/// The code object of tally.hip.
pub(super) fn tally_code_object() -> PathBuf {
    tally(
        KERNEL,
        &["-c", "--cuda-device-only", "--no-gpu-bundle-output"],
        "tally.code_object",
    )
}

/// A C++ source as an object.
pub(super) fn object(name: &str, arguments: &[&str]) -> PathBuf {
    Compilation::usual()
        .arguments([
            "-c",
            "-O1",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-D__HIP_PLATFORM_AMD__",
        ])
        .arguments(arguments)
        .reads(["tally.h", "rocr_table.h"].map(source))
        .source(source(name))
        .output(&format!("{name}.o"))
}

/// Links these in order: objects by their paths, flags unchanged.
pub(super) fn link(name: &str, parts: &[OsString]) -> PathBuf {
    let (files, _): (Vec<_>, Vec<_>) = parts
        .iter()
        .map(PathBuf::from)
        .partition(|part| part.is_file());
    Compilation::usual()
        .arguments(parts)
        .reads(files)
        .output(name)
}

/// The parts of a link, paths and flags.
#[macro_export]
macro_rules! parts {
    ($($part:expr),* $(,)?) => { [$(std::ffi::OsString::from($part)),*] };
}

/// A program that runs the kernel twice.
pub(super) fn plain() -> PathBuf {
    link(
        "tally",
        &parts![object("main.cpp", &[]), tally_object(KERNEL), HIP[0]],
    )
}

/// The program that the caller appends, on a modelled GPU, with the libraries in `preloaded` and
/// without `rocov run`. All processes add to one profile for each code object.
pub(super) fn on_model(data: &Path, preloaded: &[PathBuf]) -> Command {
    let assignment = |name: &str, value: OsString| {
        let mut assignment = OsString::from(name);
        assignment.push("=");
        assignment.push(value);
        assignment
    };
    let mut libraries = built("librocov_modelgpu.so").into_os_string();
    for library in preloaded {
        libraries.push(":");
        libraries.push(library);
    }
    let mut command = limited("env");
    command.arg(assignment("LD_PRELOAD", libraries));
    command.arg(assignment(
        "LLVM_PROFILE_FILE",
        data.join("profraw/%m.profraw").into(),
    ));
    command.arg(assignment("ROCOV_DATA", data.into()));
    command.args(["ROCOV_MODELGPU=gfx90a", "ROCOV_VERBOSE=1"]);
    command
}

/// Runs a program that calls each kernel's run twice, and expects exactly that in the profiles.
#[track_caller]
pub(super) fn counts_twice(command: &mut Command, data: &Path, kernels: &[&str]) -> Ended {
    let ended = run(command).success();
    assert_counts(data, kernels, &ended);
    ended
}

#[track_caller]
pub(super) fn assert_counts(data: &Path, kernels: &[&str], ended: &Ended) {
    /// The geometry of tally.h.
    const CALLS: u64 = 2 * 128;
    const TALLIED: u64 = 2 * 100;
    let profiles = raw_profiles(data);
    assert_eq!(profiles.len(), kernels.len(), "{profiles:?}: {ended}");
    let merged = data.join("all.profdata");
    merge(&profiles, &merged);
    let functions = functions(&merged);
    assert_eq!(functions.len(), kernels.len(), "{functions:?}: {ended}");
    for kernel in kernels {
        let function = functions
            .get(*kernel)
            .unwrap_or_else(|| panic!("{kernel} is not in {functions:?}: {ended}"));
        assert_eq!(
            (function.calls, function.blocks.as_slice()),
            (CALLS, [TALLIED].as_slice()),
            "{kernel}: {ended}"
        );
    }
}
