//! LLVM's own drain for HIP in the process: either that drain takes all counts or rocov does.

use super::opened::loader;
use super::programs::{
    HIP, KERNEL, assert_counts, link, object, on_model, source, tally_code_object, tally_object,
};
use crate::parts;
use crate::support::artifacts::{built, static_library};
use crate::support::command::run;
use crate::support::profile::raw_profiles;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sum of the counters after two runs: 128 calls and 100 tallies each.
const COUNTED: &str = "456";

const SAYS: &str = "LLVM's own drain for HIP (clang_rt.profile_rocm) is in ";

/// The dynamic linker of x86-64 Linux.
const DYNAMIC_LINKER: &str = "/lib64/ld-linux-x86-64.so.2";

const ROCR: &str = "-lhsa-runtime64";

/// A program with LLVM's drain linked statically, its constructor after HIP's, and `more`.
fn with_llvms_drain(more: &[OsString]) -> PathBuf {
    let parts = parts![
        object("main.cpp", &[]),
        tally_object(KERNEL),
        object("llvm_drain.cpp", &["-fvisibility=hidden"]),
        HIP[0],
        ROCR
    ];
    link("tally-beside-llvm", &[&parts, more].concat())
}

/// LLVM's drain hides its functions, unless its objects were compiled otherwise.
const VISIBILITIES: [&str; 2] = ["-fvisibility=hidden", "-fvisibility=default"];

/// LLVM's drain in a shared library.
fn llvms_drain(visibility: &str) -> PathBuf {
    let drain = object("llvm_drain.cpp", &[visibility]);
    link("libllvm_drain.so", &parts!["-shared", drain, ROCR])
}

/// Runs a program with each value of `ROCOV_DRAIN` and without it. Either LLVM's drain or rocov
/// writes all counts, and the other writes nothing.
fn either_has_all(preloaded: &[PathBuf], program: impl Fn(&mut Command, &Path)) {
    for drainer in [None, Some("llvm"), Some("rocov")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let sum = directory.path().join("sum");
        let mut command = on_model(&data, preloaded);
        if let Some(drainer) = drainer {
            command.arg(format!("ROCOV_DRAIN={drainer}"));
        }
        program(&mut command, &sum);
        let ended = run(&mut command).success();
        if drainer == Some("rocov") {
            assert_counts(&data, &[KERNEL], &ended);
            assert!(!sum.exists(), "LLVM's drain wrote: {ended}");
            assert!(
                ended.stderr.contains("taking over from LLVM's own drain"),
                "{ended}"
            );
        } else {
            let llvms = std::fs::read_to_string(&sum).unwrap_or_default();
            assert_eq!(llvms, COUNTED, "LLVM's: {ended}");
            assert!(raw_profiles(&data).is_empty(), "{ended}");
            // A user who set the variable gets no warning.
            let warnings = usize::from(drainer.is_none());
            assert_eq!(ended.stderr.matches(SAYS).count(), warnings, "{ended}");
        }
    }
}

fn sum_file(sum: &Path) -> OsString {
    let mut assignment = OsString::from("LLVM_DRAIN_FILE=");
    assignment.push(sum);
    assignment
}

#[test]
fn linked_into_the_program() {
    let program = with_llvms_drain(&[]);
    either_has_all(&[built("librocov.so")], |command, sum| {
        command.arg(sum_file(sum)).arg(&program);
    });
}

/// In this case `/proc/self/exe` is not the program.
#[test]
fn linked_into_a_program_that_is_started_by_the_dynamic_linker() {
    let program = with_llvms_drain(&[]);
    either_has_all(&[built("librocov.so")], |command, sum| {
        command.arg(sum_file(sum)).arg(DYNAMIC_LINKER).arg(&program);
    });
}

#[test]
fn linked_into_the_program_with_librocov() {
    let program = with_llvms_drain(&parts!["-Wl,--undefined=rocov_roles_v1", static_library()]);
    either_has_all(&[], |command, sum| {
        command.arg(sum_file(sum)).arg(&program);
    });
}

#[test]
fn in_a_shared_library() {
    // HIP keeps a module to the end, so a library's exit handler still finds it.
    let script = source("opens_hip.py");
    for visibility in VISIBILITIES {
        let libraries = [built("librocov.so"), llvms_drain(visibility)];
        either_has_all(&libraries, |command, sum| {
            command.arg(sum_file(sum)).arg("python3").arg(&script);
            command.arg("global").arg(tally_code_object()).arg(KERNEL);
        });
    }
}

/// A library that is opened after the kernels ran has its exit handler called before ours.
#[test]
fn in_a_library_that_is_opened_later() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let sum = directory.path().join("sum");
    let kernels = link(
        "libtally.so",
        &parts!["-shared", tally_object(KERNEL), HIP[0]],
    );
    let mut command = on_model(&data, &[built("librocov.so")]);
    command
        .arg(sum_file(&sum))
        .arg(loader())
        .args(["keep", "local"]);
    let ended = run(command.arg(kernels).arg(llvms_drain(VISIBILITIES[0]))).success();
    let llvms = std::fs::read_to_string(&sum).unwrap_or_default();
    assert_eq!(llvms, COUNTED, "{ended}");
    assert!(raw_profiles(&data).is_empty(), "{ended}");
    assert_eq!(ended.stderr.matches(SAYS).count(), 1, "{ended}");
}
