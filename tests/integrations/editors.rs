//! The extension for VS Code: its own tests, on reports of this build.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{Compilation, device_header, sample_on};
use crate::support::gpu::Stack;
use crate::support::program::rocov_flags;
use crate::support::unpacked::not_run;

/// The tests of the programs in the workspace: a label, the program and its arguments.
const TESTS: [(&str, &str, &[&str]); 3] = [
    ("sample", "sample", &[]),
    ("full_blocks", "scale", &["64"]),
    ("unit/part [of] a block", "scale", &["100"]),
];

/// Runs `rocov report` of a data directory, and writes the reports to `place`.
fn report(data: &Path, place: &Path, name: &str, options: &[&str]) {
    let mut report = limited(built("rocov"));
    report.arg("report").arg(data).args(options);
    report.arg("--json").arg(place.join(format!("{name}.json")));
    report.arg("--lcov").arg(place.join(format!("{name}.info")));
    report.arg("--table").arg(place.join(format!("{name}.txt")));
    run(&mut report).success();
}

#[test]
fn the_extension_shows_reports_in_vs_code() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    let stack = Stack::usual();
    let flags = rocov_flags(stack, &[]);
    let sample = sample_on(stack, &flags);
    let scale = Compilation::on(stack)
        .arguments(flags)
        .arguments(stack.flags())
        .arguments(["--offload-arch=gfx90a", "-O1"])
        .source(repository("examples/cmake/scale.hip"))
        .reads([device_header()])
        .output("scale");
    let data = place.join("sample-data");
    run(stack.launcher("gfx90a", &data).arg(&sample)).success();
    report(&data, place, "sample", &[]);

    // A program for two archs, if there is a HIP that knows them.
    let both = Stack::for_target("gfx942");
    if !matches!(both, Stack::Interpreter) {
        let archs = ["gfx90a", "gfx942"];
        let program = Compilation::on(both)
            .arguments(rocov_flags(both, &["--host"]))
            .arguments(both.flags())
            .arguments(archs.map(|arch| format!("--offload-arch={arch}")))
            .arguments(["-O1"])
            .source(repository("testdata/programs/archs/quantise.hip"))
            .reads([device_header()])
            .output("quantise");
        let data = place.join("archs-data");
        for arch in archs {
            run(both.launcher(arch, &data).arg(&program)).success();
        }
        let host = program.to_string_lossy();
        report(&data, place, "archs", &["--host-binary", &host]);
    }

    let workspace = place.join("workspace");
    fs::create_dir(&workspace).expect("a new directory");
    let data = workspace.join("rocov-data");
    for (label, program, arguments) in TESTS {
        let program = if program == "sample" { &sample } else { &scale };
        let mut launcher = stack.launcher("gfx90a", &data);
        launcher.env("ROCOV_LABEL", label);
        run(launcher.arg(program).args(arguments)).success();
    }
    report(&data, place, "tests", &["--per-test"]);

    let mut tests = Command::new(repository("tools/dev/vscode"));
    tests.arg("test").arg(place).env("ROCOV", built("rocov"));
    let ended = run(&mut tests).success();
    let mut lines = ended.stdout.lines();
    match lines.find_map(|line| line.strip_prefix("not run: ")) {
        Some(line) => not_run(line),
        None => assert!(ended.stdout.contains("\n# fail 0\n"), "{ended}"),
    }
}
