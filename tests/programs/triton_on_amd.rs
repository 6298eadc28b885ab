//! Triton's kernels for AMD GPUs, which its own backend compiles without a GPU: the lines that run on the model are those of
//! Triton's interpreter, by a trace and by inserted counters.

use std::path::Path;
use std::process::Command;

use crate::support::artifacts::{built, python, repository};
use crate::support::command::{limited, run};
use crate::support::compile::module_runner;
use crate::support::gpu::Stack;
use crate::support::unpacked::asked;

const TARGET: &str = "gfx942";
/// Counts cannot tell these from other launches: a side of `inlined` is folded completely, `merged` has one store for two,
/// and `selected` has no branch.
const NOT_SHOWN: [usize; 3] = [3, 9, 10];
/// The launches of `testdata/python/kernels.py`.
const LAUNCHES: usize = 17;

fn tool() -> Command {
    let mut command = limited(python());
    command.arg("-B").arg(repository("tools/dev/python-lines"));
    command
}

#[test]
fn kernels_of_triton_run_the_lines_that_its_interpreter_runs() {
    let without = "kernels of Triton are not run on AMD GPUs";
    let Some(triton) = asked("libraries", "triton-3.6", without) else {
        return;
    };
    let Some(stack) = Stack::hip_7() else {
        return;
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| place.path().join(name);
    let mut compile = tool();
    compile.env("PYTHONPATH", Path::new(triton.trim_end()));
    compile.env("TRITON_CACHE_DIR", path("cache"));
    run(compile.args(["amd", TARGET]).arg(place.path())).success();
    for number in (0..LAUNCHES).filter(|number| !NOT_SHOWN.contains(number)) {
        for way in ["--trace", "--instrument"] {
            let data = path(&format!("{number}{way}"));
            let mut command = limited(built("rocov"));
            command.args(["run", way, "--gpu", &format!("model:{TARGET}"), "-o"]);
            command.arg(&data).arg("--").args(stack.starter());
            command.arg(module_runner(&stack.linking()));
            command.env("ROCOV_CACHE", path("rocov"));
            command.arg(path(&format!("{number}.hsaco")));
            let command = command
                .arg(path(&format!("{number}.spec")))
                .arg(place.path());
            run(command).success();
            let lcov = path("lcov");
            let mut report = limited(built("rocov"));
            report.arg("report").arg(&data);
            run(report.arg("--lcov").arg(&lcov)).success();
            let mut compared = tool();
            compared.args(["lines", &number.to_string()]).arg(&lcov);
            let said = run(&mut compared).success().stdout;
            assert_eq!(said, "right\n", "launch {number} by {way}");
        }
    }
}
