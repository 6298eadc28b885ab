//! Libraries with kernels, or HIP itself, that the program loads after its start.

use std::path::PathBuf;

use super::programs::{
    HIP, KERNEL, counts_twice, link, object, on_model, source, tally_code_object, tally_object,
};
use crate::parts;
use crate::support::artifacts::built;

/// A program that runs the kernels of the given shared libraries.
pub(super) fn loader() -> PathBuf {
    link("loader", &parts![object("loader.cpp", &[])])
}

/// A shared library with a kernel.
pub(super) fn library(kernel: &str) -> PathBuf {
    link(
        &format!("lib{kernel}.so"),
        &parts!["-shared", tally_object(kernel), HIP[0]],
    )
}

#[test]
fn libraries_are_drained_when_they_are_closed_and_at_exit() {
    let kernels = ["tally_one", "tally_two"];
    let libraries = kernels.map(library);
    for scope in ["local", "global"] {
        for end in ["close", "keep"] {
            let data = tempfile::tempdir().expect("a temporary directory");
            let mut command = on_model(data.path(), &[built("librocov.so")]);
            command.arg(loader()).args([end, scope]).args(&libraries);
            let ended = counts_twice(&mut command, data.path(), &kernels);
            // The close of the first unloads its code object before the second loads.
            let after_first = ended.stderr.split("wrote ").nth(1).unwrap_or_default();
            assert_eq!(
                after_first.contains(" 1 instrumented,"),
                end == "close",
                "{ended}"
            );
            // At exit rocov drains all code, then HIP unloads it. No kernel has run in between.
            let is_read_once = ended
                .stderr
                .contains("nothing has run since it was drained");
            assert_eq!(is_read_once, end == "keep", "{ended}");
        }
    }
}

#[test]
fn hip_itself_may_be_opened_by_python() {
    for scope in ["local", "global"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[built("librocov.so")]);
        command.arg("python3").arg(source("opens_hip.py"));
        command.arg(scope).arg(tally_code_object()).arg(KERNEL);
        counts_twice(&mut command, data.path(), &[KERNEL]);
    }
}
