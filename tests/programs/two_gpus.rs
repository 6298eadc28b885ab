//! Two GPUs run one kernel: each has a profile with its own counts, and the merged counts are the
//! sum.

use std::path::Path;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, rocov_run, run};
use crate::support::compile::{code_object, host_oracle, module_runner};
use crate::support::gpu::Stack;
use crate::support::profile::{Function, Functions, cov, functions, merge, raw_profiles};
use crate::support::spec::expand;

/// The number of runs on each GPU for one run on the host.
const TIMES: [u64; 2] = [1, 3];

#[test]
fn each_gpu_has_its_own_counts_and_merged_they_add_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let spec = expand(
        &repository("testdata/kernels/collatz.spec"),
        directory.path(),
    );
    let once = host_counts(&spec, directory.path());
    let object = code_object(
        "collatz",
        "gfx90a",
        "-O1",
        Stack::usual().code_object_version(),
    );

    let data = directory.path().join("data");
    let mut command = rocov_run(Some("model:gfx90ax2"), &data);
    command.arg(module_runner(&Stack::usual().linking()));
    command.arg(&object).arg(&spec).arg(directory.path());
    command.args(TIMES.map(|times| times.to_string()));
    run(&mut command).success().silently();

    let profiles = raw_profiles(&data);
    assert_eq!(profiles.len(), TIMES.len(), "{profiles:?}");
    for (index, (profile, times)) in profiles.iter().zip(TIMES).enumerate() {
        let name = profile.file_name().unwrap_or_default().to_string_lossy();
        assert_eq!(
            name.split('.').nth(2),
            Some(index.to_string().as_str()),
            "the third part of {name} is the GPU's index"
        );
        assert_eq!(functions(profile), multiplied(&once, times), "{name}");
    }

    let merged = directory.path().join("merged.profdata");
    merge(&profiles, &merged);
    assert_eq!(functions(&merged), multiplied(&once, TIMES.iter().sum()));

    let mut report = limited(built("rocov"));
    report.arg("report").arg(&data).arg("--object").arg(&object);
    let reported = run(&mut report).success().stdout;
    assert!(reported.contains("collatz.hip"), "{reported}");
    // Every line has the counts of both GPUs.
    report.arg("--lcov");
    let lines = run(&mut report).success().stdout;
    let mut export = limited(cov());
    export.args(["export", "-format=lcov", "-instr-profile"]);
    let expected = run(export.arg(&merged).arg(&object)).success().stdout;
    let counts = |tracefile: &str| -> Vec<String> {
        let lines = tracefile.lines().filter(|line| line.starts_with("DA:"));
        lines.map(str::to_owned).collect()
    };
    assert!(!counts(&lines).is_empty(), "{lines}");
    assert_eq!(counts(&lines), counts(&expected));
}

fn host_counts(spec: &Path, directory: &Path) -> Functions {
    let raw = directory.join("host.profraw");
    let mut oracle = limited(host_oracle("collatz", "-O1"));
    oracle
        .arg(spec)
        .arg(directory)
        .env("LLVM_PROFILE_FILE", &raw);
    run(&mut oracle).success();
    functions(&raw)
}

fn multiplied(once: &Functions, times: u64) -> Functions {
    let function = |function: &Function| Function {
        hash: function.hash.clone(),
        calls: function.calls * times,
        blocks: function.blocks.iter().map(|count| count * times).collect(),
    };
    once.iter()
        .map(|(name, counts)| (name.clone(), function(counts)))
        .collect()
}
