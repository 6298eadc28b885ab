//! Programs that compile kernels at run time, with hipRTC and the compiler of their HIP.

use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::profile::functions_by;
use crate::support::program::{Program, TARGET, device_profiles, flags_for};

fn program() -> Program {
    let stack = Stack::usual();
    let sources = ["run_time/compiles.hip"];
    let flags = [&["-std=c++17"], stack.run_time_linking()].concat();
    Program::with_flags(stack, &sources, &[], &flags, &[])
}

#[test]
fn the_compiler_takes_the_flags_and_the_counts_are_exact() {
    let Some(compiler) = Compiler::find(Stack::usual().run_time_compiler()) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = program().under_rocov(TARGET, &data);
    run(command.args(flags_for(compiler.clang, &["--counters=llvm"]))).success();
    let profiles = device_profiles(&data);
    let [profile] = profiles.as_slice() else {
        panic!("{profiles:?}");
    };
    let functions = functions_by(compiler.tool("llvm-profdata"), profile);
    let scale = &functions["scale"];
    assert_eq!((scale.calls, &scale.blocks), (64, &vec![40]), "{scale:?}");
}

#[test]
fn without_the_flags_rocov_names_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let program = program();
    let ended = run(&mut program.under_rocov(TARGET, &data)).success();
    let expected = format!(
        "rocov: nothing was drained: no process loaded GPU code that counts: compile it, or have hipRTC \
         compile it, with what `rocov flags` prints, and run `rocov doctor {}`\n",
        program.file.display()
    );
    assert_eq!(ended.stderr, expected, "{ended}");
    let mut doctor = limited(built("rocov"));
    let doctor = run(doctor.arg("doctor").arg(&program.file));
    let remedy =
        "that code is not instrumented, unless the program hands the flags of `rocov flags --clang";
    assert!(doctor.stdout.contains(remedy), "{doctor}");
}
