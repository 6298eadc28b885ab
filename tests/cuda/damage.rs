//! Tools and files that are missing, damaged or in the way. The program runs on.

use std::fs;

use tempfile::TempDir;

use crate::setup::{Setup, step, steps};
use crate::support::artifacts::built;
use crate::support::command::{limited, run};

#[test]
fn one_line_says_why_cupti_cannot_be_used() {
    let Some(setup) = Setup::get() else { return };
    let cases = [
        ("ROCOV_CUPTI", "/nowhere/libcupti.so", "is not installed"),
        ("STAND_IN_CUPTI", "taken", "another tool uses CUPTI"),
    ];
    for (variable, value, line) in cases {
        let data = TempDir::new().expect("a directory can be made");
        let mut all = vec![step("load", &setup.cubin)];
        all.extend(steps(["plant:__profc__Z6bin_off:1,2,3", "exit:4"]));
        let mut command = setup.command(data.path(), &all);
        let ended = run(command.env(variable, value)).with_status(4);
        assert_eq!(ended.stdout, "done\n");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{ended}");
        assert!(lines[0].contains(line), "{ended}");
        assert!(
            lines[0].contains("no counts come from NVIDIA GPUs; "),
            "{ended}"
        );
    }
}

#[test]
fn another_injection_stays_and_one_line_says_so() {
    let Some(setup) = Setup::get() else { return };
    let data = TempDir::new().expect("a directory can be made");
    let mut command = setup.command(data.path(), &steps(["exit:0"]));
    let ended = run(command.env("CUDA_INJECTION64_PATH", "/nowhere/tool.so")).success();
    ended.says(&["CUDA_INJECTION64_PATH names /nowhere/tool.so: no counts come from NVIDIA GPUs"]);
}

#[test]
fn a_tool_that_takes_the_place_later_costs_one_line() {
    let Some(setup) = Setup::get() else { return };
    let data = TempDir::new().expect("a directory can be made");
    for (program, lines) in [("steps", 2), ("true", 1)] {
        let mut command = limited(built("rocov"));
        command.args(["run", "-o"]).arg(data.path());
        command.args(["--", "env", "CUDA_INJECTION64_PATH=/nowhere/tool.so"]);
        match program {
            "steps" => setup.program(&mut command, "steps"),
            other => command.arg(other),
        };
        let ended = run(&mut command).success();
        let said: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(said.len(), lines, "{ended}");
        let expected =
            "names /nowhere/tool.so, and not librocov: no counts come from NVIDIA GPUs; ";
        assert_eq!(said[0].contains(expected), lines == 2, "{ended}");
    }
}

#[test]
fn damaged_cubins_cost_only_themselves() {
    let Some(setup) = Setup::get() else { return };
    let good = fs::read(&setup.cubin).expect("it was made");
    let data = TempDir::new().expect("a directory can be made");
    // The driver takes these: the damage is in the profile data. A relocation of another type than an address:
    let relocations = rocov::format::cubin::laid_out(&good);
    assert!(relocations.expect("it is good").is_some(), "it counts");
    let mut step_by = 0;
    let mut changed = 0;
    while changed < 40 {
        let mut bad = good.clone();
        let at = 0x40 + (step_by * 97) % (bad.len() - 0x40);
        step_by += 1;
        bad[at] ^= 0xff;
        if rocov::format::cubin::laid_out(&bad).is_err() {
            changed += 1;
            let path = data.path().join(format!("bad{changed}.cubin"));
            fs::write(&path, &bad).expect("it can be written");
        }
        if step_by > 20_000 {
            break;
        }
    }
    assert!(changed > 5, "only {changed} damaged cubins");
}
