//! ROCr's tool table: librocov hooks it only if the program's calls do not pass librocov's
//! functions, and never if it does not know the table's version.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::opened::{library, loader};
use super::programs::{KERNEL, counts_twice, link, object, on_model, plain, stacks, tally_object};
use crate::parts;
use crate::support::artifacts::built;
use crate::support::gpu::Stack;

const HOOKED: &str = "hooked into HSA's tool table";
const LEFT: &str = "HSA's tool table needs no hooks: its functions are interposed";
const UNKNOWN: &str = "which rocov does not support: rocov does not hook it";

/// Lists tools for ROCr.
pub(super) fn tools(tools: &[&Path]) -> OsString {
    let mut assignment = OsString::from("HSA_TOOLS_LIB=");
    for (place, tool) in tools.iter().enumerate() {
        assignment.push(if place > 0 { " " } else { "" });
        assignment.push(tool);
    }
    assignment
}

/// A program that is linked with ROCr ahead of librocov.
fn behind_rocr(stack: Stack) -> PathBuf {
    let library = built("librocov.so");
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(library.parent().expect("a file is in a directory"));
    let first = parts![
        "-Wl,--no-as-needed",
        object("main.cpp", &[]),
        tally_object(KERNEL),
        "-lhsa-runtime64"
    ];
    let parts = [&first, stack.linking().as_slice(), &parts![library, path]].concat();
    link("tally-behind-rocr", &parts)
}

fn unknown_table() -> PathBuf {
    link(
        "unknown_table.so",
        &parts!["-shared", object("unknown_table.cpp", &[])],
    )
}

/// ROCr 5.2 finds the tool by its variable; later releases also find it by its symbol.
#[test]
fn serves_where_rocr_is_ahead_of_librocov() {
    for stack in stacks() {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[]);
        command.args(stack.starter()).arg(behind_rocr(stack));
        let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
        assert_eq!(
            ended.stderr.matches(HOOKED).count(),
            1,
            "{stack:?}: {ended}"
        );
        assert!(!ended.stderr.contains(LEFT), "{stack:?}: {ended}");
    }
}

#[test]
fn serves_where_the_user_names_librocov() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), &[]);
    command.arg(tools(&[&built("librocov.so")])).arg(plain());
    let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
    assert_eq!(ended.stderr.matches(HOOKED).count(), 1, "{ended}");
}

/// Only a tool that sees the unload can drain code unloaded before the exit. HIP comes in with the
/// libraries, in its own scope. librocov sees its own functions there, but must hook the table
/// anyway.
#[test]
fn shows_what_is_unloaded() {
    let kernels = ["tally_one", "tally_two"];
    for scope in ["local", "global"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[]);
        command.arg(tools(&[&built("librocov.so")])).arg(loader());
        command.args(["close", scope]).args(kernels.map(library));
        let ended = counts_twice(&mut command, data.path(), &kernels);
        assert_eq!(ended.stderr.matches(HOOKED).count(), 1, "{ended}");
    }
}

#[test]
fn is_left_alone_where_librocov_interposes() {
    let library = built("librocov.so");
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), std::slice::from_ref(&library));
    command.arg(tools(&[&library])).arg(plain());
    let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
    assert_eq!(ended.stderr.matches(LEFT).count(), 1, "{ended}");
    assert!(!ended.stderr.contains(HOOKED), "{ended}");
}

#[test]
fn an_unknown_version_is_left_alone_and_interposition_serves() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), &[built("librocov.so")]);
    command.arg("UNKNOWN_TABLE=copy");
    command.arg(tools(&[&unknown_table()])).arg(plain());
    let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
    assert_eq!(
        ended.stdout.matches("accepted, left alone\n").count(),
        2,
        "{ended}"
    );
    assert_eq!(ended.stderr.matches(UNKNOWN).count(), 1, "{ended}");
    assert!(
        ended.stderr.contains("root tool table has version 99"),
        "{ended}"
    );
}

#[test]
fn an_unknown_version_leaves_the_drain_at_exit() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), &[]);
    command
        .arg(tools(&[&unknown_table()]))
        .arg(behind_rocr(Stack::usual()));
    let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
    assert_eq!(ended.stderr.matches(UNKNOWN).count(), 1, "{ended}");
    assert!(!ended.stderr.contains(HOOKED), "{ended}");
}
