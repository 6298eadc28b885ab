//! Kernels in a Python source, from counters in PTX to the reports of coverage.py.

use std::fs;

use crate::instrument::{Uncounted, data};
use crate::setup::step;
use crate::support::artifacts::{built, python, repository};
use crate::support::command::{limited, run};
use crate::support::json::json;
use crate::support::unpacked::not_run;

/// A kernel whose line 9 no thread runs. Line 10 has no machine code.
const KERNELS: &str = "\
class triton:
    jit = staticmethod(lambda function: function)


@triton.jit
def kernel(p, n):
    i = n
    if i > 7:
        p[0] = i
    zero = 0
    p[1] = i + zero


@triton.jit
def never(p):
    p[0] = 1
";

/// The PTX that a compiler makes of it.
fn ptx(source: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n\n.visible .entry kernel(.param .u64 p)\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .b32 %r<2>;\n\t.loc 1 7 1\n\tmov.u32 %r1, %tid.x;\n\t.loc 1 8 1\n\
         \tsetp.gt.u32 %p1, %r1, 7;\n\t@%p1 bra $L;\n\t.loc 1 9 1\n\tadd.u32 %r1, %r1, 1;\n$L:\n\t.loc 1 11 1\n\tret;\n}}\n\
         .file 1 \"{source}\"\n"
    )
}

#[test]
fn coverage_py_reports_what_counters_in_ptx_tell() {
    let python = || {
        let mut python = limited(python());
        python.env("PYTHONPATH", repository("tools/python"));
        python.args(["-B"]);
        python
    };
    if !run(python().args(["-c", "import coverage"]))
        .status
        .success()
    {
        not_run("python3-coverage is not installed: coverage.py reports no counts of PTX");
        return;
    }
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let place = data();
    let source = place.path().join("kernels.py");
    fs::write(&source, KERNELS).expect("it can be written");
    let text = ptx(&source.display().to_string());
    let file = uncounted.file("kernels.text", format!("{text}\0"));
    let counts = Uncounted::plant(&text, "32,0,32");
    let counted = place.path().join("counted");
    let steps = [step("load", &file), counts];
    run(&mut uncounted.command(&counted, &steps)).success();

    let settings = format!(
        "[run]\nplugins = rocov\n[rocov]\ndata = {}\n",
        counted.display()
    );
    fs::write(place.path().join(".coveragerc"), settings).expect("it can be written");
    let commands: [&[&str]; 2] = [
        &["run", "--branch", "kernels.py"],
        &["json", "-q", "-o", "out.json"],
    ];
    for arguments in commands {
        let mut coverage = python();
        coverage.current_dir(place.path()).args(["-m", "coverage"]);
        let folder = built("rocov").parent().expect("a folder").to_owned();
        coverage.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        run(coverage.args(arguments)).success();
    }
    let out = fs::read_to_string(place.path().join("out.json")).expect("it was written");
    let found = &json(out)["files"]["kernels.py"];
    assert_eq!(found["missing_lines"].to_string(), "[9,16]");
    assert_eq!(found["missing_branches"].to_string(), "[[8,9]]");
}
