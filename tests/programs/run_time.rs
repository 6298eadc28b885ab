//! Programs that compile kernels at run time, with hipRTC and the compiler of their HIP.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::profile::functions_by;
use crate::support::program::{Program, TARGET, device_profiles};

fn program(stack: Stack) -> Program {
    let sources = ["run_time/compiles.hip"];
    let flags = [&["-std=c++17"], stack.run_time_linking()].concat();
    Program::with_flags(stack, &sources, &[], &flags, &[])
}

/// The stacks whose hipRTC is tested: one passes sources to its compiler as they are, the other one
/// preprocesses them first.
fn stacks() -> Vec<Stack> {
    let mut stacks = vec![Stack::Debian12];
    stacks.extend(Stack::hip_7());
    stacks
}

/// The standard output of `rocov flags` for the compiler of hipRTC, `None` if that is not here.
fn printed(stack: Stack, option: &str) -> Option<String> {
    let compiler = Compiler::find(stack.run_time_compiler())?;
    let mut flags = limited(built("rocov"));
    flags.args(["flags", option, "--clang", compiler.clang]);
    Some(run(&mut flags).success().silently().stdout)
}

/// The program under rocov, which hands each line of `options` to hipRTC as one element.
fn compiling(stack: Stack, data: &Path, header: Option<&Path>, options: &str) -> Command {
    let mut command = stack.launcher(TARGET, data);
    command.arg(&program(stack).file);
    if let Some(header) = header {
        command.arg("--header").arg(header);
    }
    command.args(options.lines());
    command
}

/// Checks that the kernel has the counts that it must have, by llvm-profdata.
fn assert_exact(stack: Stack, data: &Path) {
    let compiler = Compiler::find(stack.run_time_compiler()).expect("it has printed the options");
    let profiles = device_profiles(data);
    let [profile] = profiles.as_slice() else {
        panic!("{}: {profiles:?}", stack.title());
    };
    let functions = functions_by(compiler.tool("llvm-profdata"), profile);
    let scale = &functions["scale"];
    let title = stack.title();
    assert_eq!(
        (scale.calls, &scale.blocks),
        (64, &vec![40]),
        "{title}: {scale:?}"
    );
}

#[test]
fn the_compiler_takes_the_printed_options_and_the_counts_are_exact() {
    for stack in stacks() {
        let Some(options) = printed(stack, "--hiprtc") else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        run(&mut compiling(stack, &data, None, &options)).success();
        assert_exact(stack, &data);
    }
}

#[test]
fn the_printed_header_stands_in_for_the_file() {
    for stack in stacks() {
        let (Some(options), Some(text)) = (
            printed(stack, "--hiprtc"),
            printed(stack, "--hiprtc=header"),
        ) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let header = directory.path().join("text");
        fs::write(&header, text).expect("a file can be written");
        let (places, options): (Vec<_>, Vec<_>) =
            options.lines().partition(|option| option.starts_with("-I"));
        assert_eq!(places.len(), 1, "{places:?}");
        let options = options.join("\n");
        let mut without = compiling(stack, &data, None, &options);
        assert!(!run(&mut without).status.success(), "{}", stack.title());
        run(&mut compiling(stack, &data, Some(&header), &options)).success();
        assert_exact(stack, &data);
    }
}

#[test]
fn without_the_flags_rocov_names_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let program = program(Stack::usual());
    let ended = run(&mut program.under_rocov(TARGET, &data)).success();
    let expected = format!(
        "rocov: nothing was drained: no process loaded GPU code that counts: compile it, or have hipRTC \
         compile it, with what `rocov flags` prints, and run `rocov doctor {}`\n",
        program.file.display()
    );
    assert_eq!(ended.stderr, expected, "{ended}");
    let mut doctor = limited(built("rocov"));
    let doctor = run(doctor.arg("doctor").arg(&program.file));
    let remedy = "that code is not instrumented, unless the program hands the options of `rocov flags --hiprtc";
    assert!(doctor.stdout.contains(remedy), "{doctor}");
}
