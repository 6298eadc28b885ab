//! A user's whole workflow: compile the sample with the flags of `rocov flags`, run it under `rocov
//! run`, read `rocov report`.

use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::{cov, functions, merge, raw_profiles};
use crate::support::sample::{SOURCES, Sample, counts_beside_lines};
use crate::support::unpacked::not_run;

/// The other compilers are in the matrix.
#[test]
fn is_right() {
    Sample::run(Stack::usual(), "gfx90a", Compiler::usual(), &[]).is_right();
}

/// The newest clang on the newest HIP gives clang 22's results without a warning.
#[test]
fn clang_23_on_hip_7_gives_the_report_of_clang_22() {
    let (Some(stack), Some(newest)) = (Stack::hip_7(), Compiler::find(23)) else {
        return not_run("the sample by clang 23 on HIP 7.2.4");
    };
    let ran = Sample::run(stack, "gfx942", newest, &[]);
    ran.table_counts_the_lines_that_never_run();
    ran.source_is_shown_with_0_exactly_where_it_never_runs();
    let clang_22 = Compiler::find(22).expect("clang 22 is installed");
    let before = Sample::run(stack, "gfx942", clang_22, &[]);
    let figures = |ran: &Sample| {
        // The names of files come before the table.
        let report = ran.report(&[]);
        let from = report.find("Filename").expect("a table");
        report[from..].to_owned()
    };
    assert_eq!(figures(&ran), figures(&before));
    let lines = |ran: &Sample| {
        let shown = ran.report(&["--show"]);
        SOURCES.map(|source| counts_beside_lines(&shown, source))
    };
    assert_eq!(lines(&ran), lines(&before));
    assert_eq!(ran.counts_of_functions(), before.counts_of_functions());
}

/// ROCr 7.2.4 prints the number of missing signals at its shutdown: some of its own.
#[test]
fn on_hip_7_no_signal_is_left_behind() {
    let Some(stack) = Stack::hip_7() else {
        return not_run("the sample on HIP 7.2.4");
    };
    let ran = Sample::run(stack, "gfx942", Compiler::usual(), &[]);
    let mut alone = limited("env");
    alone.arg(format!(
        "LD_PRELOAD={}",
        built("librocov_modelgpu.so").display()
    ));
    alone.arg("ROCOV_MODELGPU=gfx942");
    let alone = run(alone.arg(&ran.program)).success().silently();
    assert_eq!(ran.leaked_signals, alone.leaked_signals);
}

#[test]
fn is_right_beside_instrumented_host_code() {
    let ran = Sample::run(Stack::usual(), "gfx90a", Compiler::usual(), &["--host"]);
    ran.is_right();
    let mut host = raw_profiles(&ran.data);
    host.retain(|path| functions(path).contains_key("main"));
    assert_eq!(host.len(), 1, "profiles of host code: {host:?}");

    // Host code has llvm-cov's figures and does not change the GPU's.
    let merged = ran.data.join("expected.profdata");
    merge(&host, &merged);
    let mut export = limited(cov());
    export.args(["export", "-instr-profile"]);
    export.arg(merged).arg(&ran.program);
    let expected = json(run(&mut export).success().silently().stdout);
    let program = ran.program.to_str().expect("a path in UTF-8");
    let both = json(ran.report(&["--json", "--host-binary", program]));
    assert_eq!(both["rocov"]["columns"][1]["name"], "host");
    assert_eq!(both["data"][1]["totals"], expected["data"][0]["totals"]);
    assert!(expected["data"][0]["totals"]["lines"]["covered"].as_u64() > Some(0));
    let device = json(ran.report(&["--json"]));
    assert_eq!(both["data"][0], device["data"][0]);
}
