//! The model reports each GPU fault, the program ends as on a real GPU, and nothing hangs.

use crate::harness::{Ended, FINISHED, HIP_5_2, Run, hip_program, hip_program_with};

const ABORTED: i32 = 128 + 6;
const SEGMENTATION_FAULT: i32 = 128 + 11;

fn fault(what: &str) -> Ended {
    let flags = [&HIP_5_2[..], &["-gline-tables-only"]].concat();
    let program = hip_program_with("faults", "faults.lines", &["gfx90a"], &flags);
    Run::new(&program).arg(what).output()
}

/// Asserts that the model's own message holds all parts.
fn assert_said(ended: &Ended, parts: &[&str]) {
    let ours = |line: &&str| line.starts_with("rocov modelgpu: GPU 0 (gfx90a): ");
    let message = ended.stderr.lines().find(ours);
    let message = message.unwrap_or_else(|| panic!("no message: {}", ended.text()));
    for part in parts {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn an_access_out_of_bounds_is_a_memory_fault() {
    let ended = fault("out-of-bounds");
    assert_eq!(ended.status, ABORTED, "{}", ended.text());
    assert_said(
        &ended,
        &[
            "kernel _Z9write_farPim",
            "workgroup (0, 0, 0)",
            "wave 0",
            "pc 0x",
            // The line is in the debug information of the fat binary.
            "/faults.hip:",
            "out-of-bounds write of 4 bytes",
            " by lane 0",
        ],
    );
    // ROCr's message, with this address too.
    let address = |text: &str, before: &str| {
        let (_, rest) = text.split_once(before)?;
        let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        Some(digits)
    };
    let ours = address(&ended.stderr, "at global address 0x");
    let theirs = address(&ended.stderr, "Memory access fault by GPU node-1")
        .and(address(&ended.stderr, "on address 0x"));
    assert!(ours.is_some() && ours == theirs, "{}", ended.text());
}

#[test]
fn memory_of_the_host_is_named() {
    let ended = fault("of-the-host");
    assert_eq!(ended.status, ABORTED, "{}", ended.text());
    let hint = " by lane 0: memory of the host, which this GPU reaches with HSA_XNACK=1";
    assert_said(&ended, &["out-of-bounds write of 4 bytes", hint]);
}

#[test]
fn an_unmodelled_instruction_is_an_illegal_one() {
    let ended = fault("unmodelled");
    assert_eq!(ended.status, ABORTED, "{}", ended.text());
    assert_said(
        &ended,
        &["kernel _Z4haltPi", "s_sethalt", "is not modelled"],
    );
    assert!(
        ended
            .stderr
            .contains("HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"),
        "{}",
        ended.text()
    );
}

#[test]
fn lds_beyond_what_a_kernel_has_reads_zero() {
    let ended = fault("beyond-lds");
    assert_eq!(ended.status, 0, "{}", ended.text());
    assert_said(
        &ended,
        &[
            "kernel _Z11read_beyondPii",
            "read of 4 bytes at LDS address 0x200, beyond the workgroup's 0x200 bytes",
        ],
    );
    // One warning, however often the kernel runs.
    let lines = ended.stderr.lines().filter(|line| line.contains("LDS"));
    assert_eq!(lines.count(), 1, "{}", ended.text());
}

#[test]
fn a_trap_is_an_exception() {
    let ended = fault("trap");
    assert_eq!(ended.status, ABORTED, "{}", ended.text());
    assert_said(&ended, &["kernel _Z12abort_itselfPi", "s_trap 2"]);
    assert!(
        ended.stderr.contains("HSA_STATUS_ERROR_EXCEPTION"),
        "{}",
        ended.text()
    );
}

#[test]
fn a_program_may_leave_while_a_kernel_runs() {
    let ended = fault("exit-while-running");
    assert_eq!((ended.status, ended.stdout.as_str()), (7, "leaving\n"));
}

#[test]
fn the_host_reads_device_memory_only_with_a_large_bar() {
    let ended = fault("host-read");
    assert_eq!(ended.stdout, format!("host reads 0\n{FINISHED}\n"));
    let run = Run::new(&hip_program("faults")).arg("host-read");
    let ended = run.env("ROCOV_MODELGPU_BAR", "small").output();
    assert_eq!(ended.status, SEGMENTATION_FAULT, "{}", ended.text());
}
