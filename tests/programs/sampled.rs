//! Counts of one block in 8, which LLVM's own device code takes from clang 23 on: a report names them, and
//! `--scale` estimates the counts of all blocks.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::command::run;
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::program::Program;
use crate::support::unpacked::not_run;

const SOURCE: &str = "sampled/blocks.hip";
const TARGET: &str = "gfx942";
/// The threads of all blocks, and of the blocks that count.
const THREADS: u64 = 64 * 64;
const COUNTED: u64 = THREADS / 8;

/// The counts of the kernel's lines in LCOV, by their texts.
fn counts(compiler: &Compiler, data: &Path, options: &[&str]) -> (BTreeMap<u64, u64>, String) {
    let mut report = compiler.rocov("report");
    let ended = run(report.arg(data).arg("--lcov").args(options)).success();
    let lines = ended.stdout.lines().filter_map(|line| {
        let (number, count) = line.strip_prefix("DA:")?.split_once(',')?;
        Some((number.parse().ok()?, count.parse().ok()?))
    });
    (lines.collect(), ended.stderr)
}

#[test]
fn sampled_counts_are_named_and_scaled() {
    let (Some(stack), Some(compiler)) = (Stack::hip_7(), Compiler::find(23)) else {
        not_run("counts of a sample of blocks, on HIP 7.2.4");
        return;
    };
    let target = format!("--offload-arch={TARGET}");
    // rocov's header defines nothing without this macro.
    let without = "-U__LLVM_INSTR_PROFILE_GENERATE";
    let options = ["-Xarch_device", without, "-O1", &target];
    let sampling = |flag: &str| flag.replace("-offload-pgo-sampling=0", "-offload-pgo-sampling=3");
    let program = Program::with_changed_flags(compiler, stack, &[SOURCE], sampling, &options);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    run(&mut program.under_rocov(TARGET, &data))
        .success()
        .silently();

    let (sampled, warning) = counts(compiler, &data, &[]);
    assert_eq!(sampled.values().max(), Some(&COUNTED), "{sampled:?}");
    assert!(
        sampled.values().any(|count| *count == COUNTED / 2),
        "{sampled:?}"
    );
    assert!(
        warning.contains("the counts may cover only one workgroup in 8"),
        "{warning}"
    );
    let (scaled, warning) = counts(compiler, &data, &["--scale", "8"]);
    assert_eq!(warning, "");
    let expected: BTreeMap<_, _> = sampled
        .iter()
        .map(|(line, count)| (*line, 8 * count))
        .collect();
    assert_eq!(scaled, expected);
    assert_eq!(scaled.values().max(), Some(&THREADS));
}
