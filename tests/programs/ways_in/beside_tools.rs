//! Another tool in ROCr's table, before and after librocov, and librocov loaded in every way at
//! once: each tool sees all calls, and nothing counts twice.

use std::ffi::OsString;
use std::path::PathBuf;

use super::programs::{KERNEL, counts_twice, link, object, on_model, stacks, tally_object};
use super::tool_table::tools;
use crate::parts;
use crate::support::artifacts::built;
use crate::support::command::{Ended, run};
use crate::support::gpu::Stack;
use crate::support::program::link_flags;

/// A tool that comes before tools with a higher number; librocov's number is 100.
fn counting_tool(priority: u32) -> PathBuf {
    let priority = format!("-DTOOL_PRIORITY={priority}");
    let tool = object("counting_tool.cpp", &[&priority]);
    link("counting_tool.so", &parts!["-shared", tool])
}

fn program(stack: Stack, with: &[OsString]) -> PathBuf {
    let parts = parts![object("main.cpp", &[]), tally_object(KERNEL)];
    link("tally", &[&parts[..], &stack.linking(), with].concat())
}

/// The calls that the tool reports.
#[track_caller]
fn seen(ended: &Ended) -> String {
    let line = ended.stdout.lines().find(|line| line.starts_with("tool: "));
    line.unwrap_or_else(|| panic!("no word of the tool: {ended}"))
        .to_owned()
}

#[test]
fn both_see_all_in_either_order() {
    let librocov = built("librocov.so");
    for stack in stacks() {
        for priority in [50, 150] {
            let tool = counting_tool(priority);
            let mut alone = on_model(tempfile::tempdir().expect("a directory").path(), &[]);
            alone.arg(tools(&[&tool])).args(stack.starter());
            let alone = run(alone.arg(program(stack, &[]))).success();
            assert!(!seen(&alone).contains(": 0 freezes"), "{stack:?}: {alone}");

            let named = match priority < 100 {
                true => tools(&[&tool, &librocov]),
                false => tools(&[&librocov, &tool]),
            };
            let preloaded = std::slice::from_ref(&librocov);
            for (preloaded, named) in [(&[][..], named), (preloaded, tools(&[&tool]))] {
                let data = tempfile::tempdir().expect("a temporary directory");
                let mut command = on_model(data.path(), preloaded);
                command.arg(named).args(stack.starter());
                command.arg(program(stack, &[]));
                let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
                assert_eq!(seen(&ended), seen(&alone), "{stack:?}: {ended}");
            }
        }
    }
}

#[test]
fn preloaded_named_and_linked_at_once_drains_once() {
    let librocov = built("librocov.so");
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), std::slice::from_ref(&librocov));
    command.arg(tools(&[&counting_tool(50), &librocov]));
    command.arg(program(Stack::usual(), &link_flags()));
    let ended = counts_twice(&mut command, data.path(), &[KERNEL]);
    let loads = |words| ended.stderr.matches(words).count();
    assert_eq!(
        loads(" instrumented,") - loads(" 0 instrumented,"),
        1,
        "{ended}"
    );
}
