//! The runtime's services around kernels: memory that host and device share, memory between
//! processes, scratch, dynamic LDS, streams that wait for each other, waits of the host.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use crate::harness::{Ended, HIP_5_2, Run, c_program, hip_program_with};
use crate::stacks;

/// HIP 5.2 reports managed memory too. AMD's own driver lets its processes share memory.
#[test]
fn on_this_machines_hip() {
    let program = hip_program_with("services", "services", &["gfx90a"], &HIP_5_2);
    are_there("HIP 5.2", |what| with_xnack(Run::new(&program), what));
}

#[test]
fn on_other_stacks() {
    for stack in stacks::here() {
        let flags = stacks::output(&["flags", &stack]);
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let name = format!("services.{stack}");
        let program = hip_program_with("services", &name, &["gfx942", "gfx90a"], &flags);
        for gpu in ["gfx942", "gfx90a"] {
            are_there(&format!("{stack}, {gpu}"), |what| {
                let run = stacks::run(&stack, &program).env("ROCOV_MODELGPU", gpu);
                with_xnack(run, what)
            });
        }
    }
}

/// Linux' `kfd_process_xnack_mode` refuses it if any GPU is of GFX 10 or later.
#[test]
fn the_driver_retries_page_faults_only_on_instinct_gpus() {
    let program = c_program("xnack");
    for (gpus, answer) in [
        ("gfx90a", "yes, then 1\n"),
        ("gfx942x2,gfx950", "yes, then 1\n"),
        ("gfx1100", "Operation not permitted, then 0\n"),
        ("gfx1201", "Operation not permitted, then 0\n"),
        ("gfx942,gfx1100", "Operation not permitted, then 0\n"),
    ] {
        let ended = Run::new(&program).env("ROCOV_MODELGPU", gpus).output();
        assert_eq!(ended.stdout, answer, "{gpus}: {}", ended.text());
    }
}

fn with_xnack(run: Run, what: &str) -> Ended {
    let run = run.arg(what);
    match what {
        "pageable" => run.env("HSA_XNACK", "1"),
        _ => run,
    }
    .output()
}

fn are_there(whom: &str, ask: impl Fn(&str) -> Ended) {
    println!("{whom}");
    let mut services = vec![
        "managed", "refused", "pageable", "shared", "local", "streams", "clocks", "sleeps",
    ];
    // The headers of HIP 5.2 need bitcode that clang 22 no longer links.
    if whom != "HIP 5.2" {
        services.push("grid");
    }
    for service in services {
        println!("{service}");
        ask(service).assert_finished();
    }
}
