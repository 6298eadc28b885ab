//! The whole cycle: count, merge, and compile again with the counts.

use super::{Ran, program};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::CLANG;
use crate::support::gpu::Stack;
use crate::support::profile::merge;
use crate::support::program::TARGET;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "testdata/programs/upstream/scale.hip";

#[test]
fn pgo_use() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["scale"], &[]), &[]);
        let directory = ran.directory.path();
        let profile = directory.join("gfx90a.profdata");
        merge(&[ran.device()], &profile);

        let optimized = directory.join("optimized");
        run(compiler(stack, &profile).arg("-o").arg(&optimized))
            .success()
            .silently();
        let mut alone = program(stack, &["scale"], &[]);
        alone.file = optimized;
        run(&mut alone.alone()).success().silently();

        // The compiler's use of the counts: the kernel was entered 128 times.
        let mut device = compiler(stack, &profile);
        device.args(["--cuda-device-only", "-S", "-emit-llvm", "-o", "-"]);
        let ir = run(&mut device).success().silently().stdout;
        let entered = r#"!{!"function_entry_count", i64 128}"#;
        assert!(ir.contains(entered), "no {entered}:\n{ir}");
    }
}

/// The compiler with the profile for device code, and warnings of a profile that does not fit.
fn compiler(stack: Stack, profile: &Path) -> Command {
    let mut clang = limited(CLANG);
    clang
        .args(stack.flags())
        .args(["-O2", "-Werror", "-Wprofile-instr-out-of-date"])
        .args(["-Wprofile-instr-missing", "-Wprofile-instr-unprofiled"])
        .arg("-Wno-unused-command-line-argument")
        .arg(format!("--offload-arch={TARGET}"))
        .arg("-Xarch_device")
        .arg(format!("-fprofile-instr-use={}", profile.display()))
        .arg(repository(SOURCE));
    clang
}
