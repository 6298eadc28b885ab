//! Kernels' requests to HIP's service on the host, which their interrupts wake: device printf,
//! assert and malloc.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use crate::harness::{Ended, FINISHED, HIP_5_2, Run, hip_program_with};
use crate::stacks;

const ABORTED: i32 = 128 + 6;

/// OpenCL functions that clang thinks a kernel with calls may need. HIP 5.2 crashes when it looks
/// for them.
const NO_OPENCL: [&str; 8] = [
    "-Xclang",
    "-default-function-attr",
    "-Xclang",
    "amdgpu-no-default-queue",
    "-Xclang",
    "-default-function-attr",
    "-Xclang",
    "amdgpu-no-completion-action",
];

#[test]
fn on_this_machines_hip() {
    let flags = [&HIP_5_2[..], &NO_OPENCL].concat();
    let program = hip_program_with("hostcall", "hostcall", &["gfx90a"], &flags);
    is_served("HIP 5.2", |what| Run::new(&program).arg(what).output());
}

#[test]
fn on_other_stacks() {
    for stack in stacks::here() {
        let flags = stacks::output(&["flags", &stack]);
        let flags: Vec<&str> = flags.split_whitespace().chain(NO_OPENCL).collect();
        let name = format!("hostcall.{stack}");
        let program = hip_program_with("hostcall", &name, &["gfx942", "gfx90a"], &flags);
        for gpu in ["gfx942", "gfx90a"] {
            is_served(&format!("{stack}, {gpu}"), |what| {
                let run = stacks::run(&stack, &program).env("ROCOV_MODELGPU", gpu);
                run.arg(what).output()
            });
        }
    }
}

fn is_served(whom: &str, ask: impl Fn(&str) -> Ended) {
    println!("{whom}");
    printf_prints(&ask("printf"));
    ask("malloc").assert_finished();
    let ended = ask("assert");
    match whom.starts_with("rocr-7.2.4") {
        // HIP 7 reports the kernel's end as an error. Earlier releases abort the program.
        true => assert!(
            ended.status == 1 && ended.stdout.contains("hipDeviceSynchronize(): "),
            "{}",
            ended.text()
        ),
        false => assert_eq!(ended.status, ABORTED, "{}", ended.text()),
    }
    assert!(
        ended.stdout.starts_with("two are fine\n"),
        "{}",
        ended.text()
    );
    for part in [
        "insist(int *, int): Device-side assertion `count < 3' failed.",
        "kernel _Z6insistPii",
        "s_trap 2",
    ] {
        assert!(ended.text().contains(part), "{part}: {}", ended.text());
    }
}

/// Asserts that each work-item printed its line, in any order, and that there is no other line.
fn printf_prints(ended: &Ended) {
    ended.assert_finished();
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    let mut wanted: Vec<String> = (0..200)
        .map(|i| format!("work-item {i} of 200: half is {:.3}", f64::from(i) / 2.0))
        .collect();
    wanted.push("work-item 0 of 1: half is 0.000".to_owned());
    wanted.push(FINISHED.to_owned());
    lines.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(lines, wanted, "{}", ended.text());
}
