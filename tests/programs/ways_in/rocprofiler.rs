//! librocov as a tool of rocprofiler-sdk, for which the test has a substitute library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::opened::{library, loader};
use super::programs::{KERNEL, counts_twice, link, object, on_model, plain};
use super::tool_table::tools;
use crate::parts;
use crate::support::artifacts::built;

/// The two layouts of a record.
const LAYOUTS: [&[&str]; 2] = [&[], &["-DANCESTOR"]];

fn sdk(layout: &[&str]) -> PathBuf {
    link("sdk.so", &parts!["-shared", object("sdk.cpp", layout)])
}

/// The command of a program with the SDK in it, which loads our tool.
fn with_tool(data: &Path, preloaded: &[PathBuf], layout: &[&str]) -> Command {
    let mut libraries = OsString::from("ROCP_TOOL_LIBRARIES=");
    libraries.push(built("librocov_rocprofiler.so"));
    let mut command = on_model(data, preloaded);
    command.arg(libraries).arg(tools(&[&sdk(layout)]));
    command
}

/// The tool opens librocov, which has no hooks: only a tool with notifications can drain code that
/// is unloaded before the end.
#[test]
fn is_told_of_what_is_loaded_and_unloaded() {
    let kernels = ["tally_one", "tally_two"];
    for layout in LAYOUTS {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = with_tool(data.path(), &[], layout);
        command.arg(loader()).args(["close", "local"]);
        command.args(kernels.map(library));
        let ended = counts_twice(&mut command, data.path(), &kernels);
        assert!(ended.stdout.contains("sdk: rocov: 32 0\n"), "{ended}");
    }
}

#[test]
fn leaves_it_to_librocovs_own_hooks_where_they_are() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = with_tool(data.path(), &[built("librocov.so")], LAYOUTS[0]);
    let ended = counts_twice(command.arg(plain()), data.path(), &[KERNEL]);
    assert!(ended.stdout.contains("sdk: load\n"), "{ended}");
    let loads = |words| ended.stderr.matches(words).count();
    assert_eq!(
        loads(" instrumented,") - loads(" 0 instrumented,"),
        1,
        "{ended}"
    );
}
