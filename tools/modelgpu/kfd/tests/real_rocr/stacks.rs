//! The model's tests on other releases' ROCr and HIP, if `tools/stacks` has fetched them
//! (`tools/test --stacks all` fetches all).
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Run, c_program, code_object, hip_program_with, repository};

const GPUS: &str = "gfx942,gfx90a";

fn tool() -> PathBuf {
    repository().join("tools/stacks")
}

pub(crate) fn output(arguments: &[&str]) -> String {
    let output = Command::new(tool()).args(arguments).output();
    let output = output.expect("tools/stacks can be run");
    assert!(output.status.success(), "tools/stacks {arguments:?}");
    String::from_utf8(output.stdout).expect("tools/stacks prints text")
}

/// The names of the runtimes that are unpacked here.
pub(crate) fn here() -> Vec<String> {
    let mut names = Vec::new();
    let expected = std::env::var("ROCOV_STACKS_EXPECTED").unwrap_or_default();
    for line in output(&["list"]).lines() {
        let (name, state) = line.split_once(": ").expect("NAME: STATE");
        // tools/stacks also lists compilers.
        if !name.starts_with("rocr-") {
            continue;
        }
        match state.contains("; here, ") {
            true => names.push(name.to_string()),
            false => {
                assert!(
                    !expected.split_whitespace().any(|word| word == name),
                    "{name} was fetched (ROCOV_STACKS_EXPECTED) and is not there"
                );
                // Written around the capture of passing tests' output, so that the line is always
                // visible.
                let _ = writeln!(stderr(), "not run: the model on {name}: {state}");
            }
        }
    }
    names
}

pub(crate) fn run(stack: &str, program: &Path) -> Run {
    let tool = tool();
    let tool = tool.to_str().expect("the repository's path is text");
    Run::under(&[tool, "run", stack, "--"], program).env("ROCOV_MODELGPU", GPUS)
}

#[test]
fn mistakes_are_explained() {
    let empty = crate::harness::scratch().join("no-stacks");
    for (arguments, said) in [
        (
            &["fetch", "rocr-9"][..],
            "unknown stack 'rocr-9'; there are: rocr-6.1.2 rocr-6.4.3 rocr-7.2.4 ",
        ),
        (
            &["run", "rocr-6.4.3", "--", "true"],
            "rocr-6.4.3 is not here; run: tools/stacks fetch",
        ),
        (
            &["flags", "rocr-6.1.2"],
            "rocr-6.1.2 is not here; run: tools/stacks fetch",
        ),
        (&["run"], "run: which of rocr-6.1.2 rocr-6.4.3 rocr-7.2.4 "),
        (
            &["run", "clang-23", "--", "clang++-23"],
            "clang-23 is not here; run: tools/stacks fetch",
        ),
        (
            &["bin", "rocr-7.2.4"],
            "rocr-7.2.4 is not here; run: tools/stacks fetch",
        ),
    ] {
        let mut command = Command::new(tool());
        command.args(arguments).env("ROCOV_STACKS_DIR", &empty);
        let output = command.output().expect("tools/stacks can be run");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn hsa_programs_on_both_targets() {
    for stack in here() {
        println!("{stack}");
        let ended = run(&stack, &c_program("agents")).output();
        ended.assert_finished();
        for agent in ["gpu 0: gfx942", "gpu 1: gfx90a"] {
            assert!(ended.stdout.contains(agent), "{}", ended.text());
        }
        for sdma in ["0", "1"] {
            let copies = run(&stack, &c_program("hsa_copies"));
            copies
                .env("HSA_ENABLE_SDMA", sdma)
                .output()
                .assert_finished();
        }
        for program in ["hsa_queues", "hsa_units"] {
            let ended = run(&stack, &c_program(program))
                .arg(code_object("gfx942"))
                .arg(code_object("gfx90a"))
                .output();
            ended.assert_finished();
            if program == "hsa_units" {
                for line in ["gpu 0: 8 XCCs, 304 units", "gpu 1: 1 XCCs, 104 units"] {
                    assert!(ended.stdout.contains(line), "{}", ended.text());
                }
            }
        }
    }
}

#[test]
fn hip_programs_on_both_targets() {
    for stack in here() {
        println!("{stack}");
        let flags = output(&["flags", &stack]);
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let program = |name: &str| {
            let output = format!("{name}.{stack}");
            hip_program_with(name, &output, &["gfx942", "gfx90a"], &flags)
        };
        for name in ["copies", "features"] {
            run(&stack, &program(name)).output().assert_finished();
        }
        for (what, part) in [
            ("out-of-bounds", "out-of-bounds write of 4 bytes"),
            ("unmodelled", "s_sethalt"),
            ("trap", "s_trap 2"),
        ] {
            let ended = run(&stack, &program("faults")).arg(what).output();
            if stack.starts_with("rocr-7") {
                // HIP 7 reports an error, earlier releases end the program.
                assert_eq!(ended.status, 0, "{}", ended.text());
                let errors = ["an illegal memory access", "unspecified launch failure"];
                let error = errors[usize::from(what != "out-of-bounds")];
                let said = format!("synchronised: {error}");
                assert!(ended.stdout.contains(&said), "{}", ended.text());
            } else {
                assert_eq!(ended.status, 128 + 6, "{}", ended.text());
            }
            assert!(ended.stderr.contains(part), "{}", ended.text());
        }
    }
}

/// The further targets with the GPUs that run their code, and the generic ones. No GPU runs code for two targets of one
/// list, so a program for all of them runs on each GPU what was compiled for its own.
const FURTHER: [&[(&str, &[&str])]; 2] = [
    &[
        ("gfx950", &["gfx950"]),
        ("gfx1100", &["gfx1100"]),
        ("gfx1201", &["gfx1201"]),
        ("gfx906", &["gfx906"]),
        ("gfx908", &["gfx908"]),
        ("gfx1030", &["gfx1030"]),
    ],
    &[
        ("gfx9-4-generic", &["gfx942", "gfx950"]),
        ("gfx11-generic", &["gfx1100"]),
        ("gfx12-generic", &["gfx1201"]),
        ("gfx10-3-generic", &["gfx1030"]),
    ],
];

/// Code for further targets, and for generic ones, on the GPUs that run it. HIP 7 is the first with all of
/// them. Compilers take most of the time, so those for older targets are among them only if all are asked for.
#[test]
fn hip_programs_on_further_targets() {
    let has_all = std::env::var("ROCOV_TEST_LEVELS").is_ok_and(|levels| levels == "all");
    let is_older = |gpu: &&str| ["gfx906", "gfx908", "gfx1030"].contains(gpu);
    for stack in here().iter().filter(|stack| stack.starts_with("rocr-7")) {
        let flags = output(&["flags", stack]);
        let flags: Vec<&str> = flags.split_whitespace().collect();
        for (list, kind) in FURTHER.into_iter().zip(["further", "generic"]) {
            let list = list.iter();
            let list = list.filter(|(_, gpus)| has_all || !gpus.iter().all(is_older));
            let (targets, gpus): (Vec<&str>, Vec<&[&str]>) = list.copied().unzip();
            for name in ["copies", "features"] {
                let program = format!("{name}.{kind}.{stack}");
                let program = hip_program_with(name, &program, &targets, &flags);
                for gpu in gpus.concat() {
                    let ended = run(stack, &program).env("ROCOV_MODELGPU", gpu).output();
                    ended.assert_finished();
                    let is_there = name != "features" || ended.stdout.contains(gpu);
                    assert!(is_there, "{}", ended.text());
                }
            }
        }
    }
}

/// CDNA has no levels, so only these run a part of the program.
#[test]
fn hip_textures_on_rdna() {
    for stack in here().iter().filter(|stack| stack.starts_with("rocr-7")) {
        let flags = output(&["flags", stack]);
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let gpus = ["gfx1100", "gfx1201"];
        let program = hip_program_with("textures", &format!("textures.{stack}"), &gpus, &flags);
        for gpu in gpus {
            let run = run(stack, &program).env("ROCOV_MODELGPU", gpu);
            run.output().assert_finished();
        }
    }
}
