//! librocov.a in the program, in its libraries, and together with other Rust code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::opened::loader;
use super::programs::{
    HIP, KERNEL, counts_twice, link, object, on_model, source, stacks, tally_object,
};
use crate::parts;
use crate::support::artifacts::{built, repository, static_library};
use crate::support::command::{limited, run};
use crate::support::compile::Compilation;
use crate::support::gpu::Stack;
use crate::support::program::link_flags;

fn with_flags(parts: &[OsString]) -> Vec<OsString> {
    [parts, &link_flags()].concat()
}

/// A shared library with a kernel and a copy of the drain.
fn library(kernel: &str) -> PathBuf {
    link(
        &format!("lib{kernel}-drained.so"),
        &with_flags(&parts!["-shared", tally_object(kernel), HIP[0]]),
    )
}

/// The number of lines about loads: one for each load if there is one drainer.
fn loads(stderr: &str) -> usize {
    stderr.matches(" instrumented,").count() - stderr.matches(" 0 instrumented,").count()
}

#[test]
fn drains_a_program_by_itself() {
    let [main, tally] = [object("main.cpp", &[]), tally_object(KERNEL)];
    let by_bfd = stacks().map(|stack| ("-fuse-ld=bfd", stack));
    for (linker, stack) in by_bfd.chain([("-fuse-ld=lld", Stack::usual())]) {
        let first = parts![linker, "-Wl,--gc-sections", &main, &tally];
        let order = with_flags(&[&first, stack.linking().as_slice()].concat());
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[]);
        command.args(stack.starter());
        let program = link("tally-drained", &order);
        let ended = counts_twice(command.arg(program), data.path(), &[KERNEL]);
        assert_eq!(loads(&ended.stderr), 1, "{stack:?}: {ended}");
    }
}

#[test]
fn drains_what_a_program_opens_later() {
    let program = link(
        "loader-drained",
        &with_flags(&parts![object("loader.cpp", &[])]),
    );
    let opened = link(
        "libopened.so",
        &parts!["-shared", tally_object(KERNEL), HIP[0]],
    );
    for end in ["close", "keep"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[]);
        command.arg(&program).args([end, "local"]).arg(&opened);
        counts_twice(&mut command, data.path(), &[KERNEL]);
    }
}

#[test]
fn one_of_several_copies_drains() {
    let kernels = ["tally_one", "tally_two"];
    let libraries = kernels.map(library);
    let with_a_copy = link(
        "loader-drained",
        &with_flags(&parts![object("loader.cpp", &[])]),
    );
    let preloaded = [built("librocov.so")];
    for (program, preloaded) in [
        (loader(), preloaded.as_slice()),
        (loader(), &[]),
        (with_a_copy.clone(), &[]),
        (with_a_copy, &preloaded),
    ] {
        for scope in ["local", "global"] {
            let data = tempfile::tempdir().expect("a temporary directory");
            let mut command = on_model(data.path(), preloaded);
            command.arg(&program).args(["keep", scope]).args(&libraries);
            counts_twice(&mut command, data.path(), &kernels);
        }
    }
}

#[test]
fn a_copy_may_be_closed() {
    let kernels = ["tally_one", "tally_two"];
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), &[]);
    command
        .arg(loader())
        .args(["close", "local"])
        .args(kernels.map(library));
    counts_twice(&mut command, data.path(), &kernels);
}

#[test]
fn does_not_clash_with_other_rust() {
    let other = Compilation::by("rustc")
        .arguments(["--crate-type", "staticlib", "--edition", "2024", "-O"])
        .source(source("other_rust.rs"))
        .output("libother_rust.a");
    let main = object("main_with_rust.cpp", &[]);
    let tally = tally_object(KERNEL);
    let first = with_flags(&parts![&main, &tally, &other, HIP[0]]);
    let mut last = with_flags(&parts![&main, &tally, HIP[0]]);
    last.push(other.into_os_string());
    for order in [first, last] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[]);
        let program = link("tally-with-rust", &order);
        let ended = counts_twice(command.arg(program), data.path(), &[KERNEL]);
        assert!(ended.stdout.contains("sum: 10\n"), "{ended}");
    }
}

#[test]
fn both_libraries_define_the_listed_symbols_and_no_others() {
    let listed = std::fs::read_to_string(repository("runtime/symbols.txt"))
        .expect("a file of the repository can be read");
    let listed: Vec<&str> = listed.lines().collect();
    assert!(listed.is_sorted(), "runtime/symbols.txt is not sorted");
    assert_eq!(defined(&built("librocov.so"), "--dynamic"), listed);
    assert_eq!(defined(&static_library(), "--extern-only"), listed);
}

fn defined(library: &Path, which: &str) -> Vec<String> {
    let mut nm = limited("llvm-nm-22");
    nm.args(["--defined-only", "--format=just-symbols", which]);
    let shown = run(nm.arg(library)).success().silently().stdout;
    let mut symbols: Vec<String> = shown
        .lines()
        .filter(|line| !line.is_empty() && !line.ends_with(':'))
        .map(str::to_owned)
        .collect();
    symbols.sort();
    symbols
}
