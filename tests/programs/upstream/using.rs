//! The whole cycle: count, merge, and compile again with the counts.

use std::path::Path;
use std::process::Command;

use super::{Ran, Toolchain};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::program::TARGET;

const SOURCE: &str = "testdata/programs/upstream/scale.hip";

#[test]
fn pgo_use() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(toolchain, &toolchain.program(&["scale"], &[]), &[]);
        let directory = ran.directory.path();
        let profile = ran.merged();

        let optimized = directory.join("optimized");
        run(compiler(toolchain, &profile).arg("-o").arg(&optimized))
            .success()
            .silently();
        let mut alone = toolchain.program(&["scale"], &[]);
        alone.file = optimized;
        run(&mut alone.alone()).success().silently();

        // The compiler's use of the counts: the kernel was entered 128 times.
        let mut device = compiler(toolchain, &profile);
        device.args(["--cuda-device-only", "-S", "-emit-llvm", "-o", "-"]);
        let ir = run(&mut device).success().silently().stdout;
        let entered = r#"!{!"function_entry_count", i64 128}"#;
        assert!(ir.contains(entered), "no {entered}:\n{ir}");
    }
}

/// The compiler with the profile for host and device code, and warnings of a profile that does not fit.
fn compiler(toolchain: Toolchain, profile: &Path) -> Command {
    let mut clang = limited(toolchain.compiler().clang);
    clang
        .args(toolchain.stack.flags_for(toolchain.compiler()))
        .args(["-O2", "-Werror", "-Wprofile-instr-out-of-date"])
        .args(["-Wprofile-instr-missing", "-Wprofile-instr-unprofiled"])
        .arg("-Wno-unused-command-line-argument")
        .arg(format!("--offload-arch={TARGET}"))
        .arg(format!("-fprofile-instr-use={}", profile.display()))
        .arg(repository(SOURCE));
    clang
}
