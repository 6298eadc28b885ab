//! The ends of programs, with the kernel of testdata/programs/endings.

use super::{GPU, Program, Ran, Released, repository, words};
use crate::support::command::run;

/// Calls of one launch.
const CALLS: u64 = 256;

fn endings() -> Option<Program> {
    let released = Released::find()?;
    let source = repository("testdata/programs/endings/endings.hip");
    let object = released.compiled(&source, &[], &["-pthread"], "endings.o");
    Some(Program::link(released, &[object], "endings"))
}

#[track_caller]
fn ends(ending: &str, llvms: &[(&str, u64)], rocovs: &[(&str, u64)]) {
    let Some(program) = endings() else {
        return;
    };
    program.both(&words(&[ending])).have(llvms, rocovs);
}

/// Expects one launch in both drains' files.
#[track_caller]
fn both(ending: &str) {
    ends(ending, &[("counted", CALLS)], &[("counted", CALLS)]);
}

/// Expects one launch in rocov's files only.
#[track_caller]
fn only_rocov(ending: &str) {
    ends(ending, &[], &[("counted", CALLS)]);
}

#[test]
fn main_returns() {
    both("return");
}

#[test]
fn exit_is_called() {
    both("exit");
}

#[test]
fn quick_exit() {
    only_rocov("quick_exit");
}

#[test]
fn underscore_exit() {
    only_rocov("_exit");
}

#[test]
fn exec() {
    only_rocov("exec");
}

#[test]
fn exit_while_a_stream_captures() {
    only_rocov("capture");
}

#[test]
fn exit_on_another_thread() {
    ends(
        "pthread_exit",
        &[("counted", 2 * CALLS)],
        &[("counted", 2 * CALLS)],
    );
}

#[test]
fn a_launch_in_a_static_destructor() {
    let counted = [("counted", CALLS), ("late", CALLS)];
    ends("destructor", &counted, &counted);
}

#[test]
fn a_fork_before_use() {
    ends(
        "fork before",
        &[("counted", CALLS)],
        &[("counted", 2 * CALLS)],
    );
}

#[test]
fn a_fork_after_use() {
    ends(
        "fork after",
        &[("counted", 2 * CALLS)],
        &[("counted", 2 * CALLS)],
    );
}

#[test]
fn abort() {
    ends("abort", &[], &[]);
}

#[test]
fn sigterm() {
    ends("SIGTERM", &[], &[]);
    let Some(program) = endings() else {
        return;
    };
    let ran = program.rocovs(GPU, &["--snapshot-every", "10m"], &words(&["SIGTERM"]));
    ran.has(&[("counted", CALLS)]);
}

/// LLVM's drain has HIP read device memory with the CPU, and the CPU cannot reach it.
#[test]
fn a_gpu_without_a_large_bar() {
    let Some(program) = endings() else {
        return;
    };
    let released = &program.released;
    let arguments = words(&["return"]);
    let llvms = Ran::new(released, |data| {
        let mut command = released.with_llvms(GPU, "small", data);
        run(command.arg(&program.with_llvms).args(&arguments))
    });
    llvms.has(&[]);
    assert_eq!(llvms.status(), 139, "SIGSEGV: {}", llvms.ended);
    let rocovs = Ran::new(released, |data| {
        let mut command = released.under_rocov(GPU, "small", &[], data);
        run(command.arg(&program.without).args(&arguments))
    });
    rocovs.has(&[("counted", CALLS)]);
    assert_eq!(rocovs.status(), 42, "{}", rocovs.ended);
}
