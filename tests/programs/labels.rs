//! Profiles with labels: each test's profiles have their own directory, and their figures are those
//! of the test's own run.

use std::path::PathBuf;
use std::process::Command;

use rocov::store::layout::PROFRAW;
use serde_json::Value;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, rocov_run, run};
use crate::support::compile::{code_object, module_runner};
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::{cov, merge, raw_profiles};
use crate::support::spec::expand;

/// Two tests, their profile directories, and the kernels of `branches.hip` that they launch.
const TESTS: [(&str, &str, &[&str]); 2] = [
    ("logic", "labels/logic", &["short_circuit"]),
    (
        "flow/search & switch",
        "labels/flow/search%20%26%20switch",
        &["fall_through", "search"],
    ),
];
const KERNELS: &str = "branches";

/// A directory in which the tests run.
struct Tests {
    directory: tempfile::TempDir,
    object: PathBuf,
    runner: PathBuf,
}

impl Tests {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let template = repository("testdata/kernels").join(format!("{KERNELS}.spec"));
        expand(&template, directory.path());
        let stack = Stack::usual();
        Self {
            object: code_object(KERNELS, "gfx90a", "-O1", stack.code_object_version()),
            runner: module_runner(&stack.linking()),
            directory,
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Appends arguments that launch these kernels.
    fn launching(&self, mut command: Command, kernels: &[&str]) -> Command {
        let whole = self.directory.path().join("spec");
        let whole = std::fs::read_to_string(whole).expect("the expanded spec");
        let is_wanted = |line: &&str| {
            !line.starts_with("launch") || kernels.iter().any(|kernel| line.contains(kernel))
        };
        let lines: Vec<_> = whole.lines().filter(is_wanted).collect();
        let spec = self.directory.path().join("spec-of-test");
        std::fs::write(&spec, lines.join("\n") + "\n").expect("a spec can be written");
        command.arg(&self.runner).arg(&self.object).arg(spec);
        command.arg(self.directory.path()).arg("1");
        command
    }

    /// llvm-cov's totals of these profiles.
    fn totals(&self, profiles: &[PathBuf]) -> Value {
        let merged = self.directory.path().join("expected.profdata");
        merge(profiles, &merged);
        let mut export = limited(cov());
        export.args(["export", "-summary-only", "-instr-profile"]);
        export.arg(merged).arg(&self.object);
        let export = run(&mut export).success().silently().stdout;
        json(export)["data"][0]["totals"].clone()
    }
}

#[test]
fn each_test_has_the_figures_of_its_run_alone() {
    let tests = Tests::new();
    let mut all = Vec::new();
    for (label, below, kernels) in TESTS {
        let mut command = limited(built("rocov"));
        command.args(["run", "--gpu", "model:gfx90a", "--label", label, "-o"]);
        command.arg(tests.data()).arg("--");
        run(&mut tests.launching(command, kernels))
            .success()
            .silently();
        let profiles = raw_profiles(&tests.data().join(PROFRAW).join(below));
        assert_eq!(profiles.len(), 1, "{label}: {profiles:?}");
        all.extend(profiles);
    }
    assert!(raw_profiles(&tests.data()).is_empty());

    let mut report = limited(built("rocov"));
    report.arg("report").arg(tests.data());
    report.args(["--json", "--per-test"]);
    let found = json(run(&mut report).success().silently().stdout);
    assert_eq!(found["data"][0]["totals"], tests.totals(&all));
    for ((label, ..), profile) in TESTS.iter().zip(&all) {
        let of_tests = found["rocov"]["tests"].as_array().expect("tests");
        let test = of_tests.iter().find(|test| test["name"] == *label);
        let column = &test.expect(label)["columns"][0];
        let expected = tests.totals(std::slice::from_ref(profile));
        assert_eq!(column["summary"], expected, "{label}");
        // The two tests launch different kernels; `only` counts at least those.
        let only = column["only"]["functions"].as_u64();
        assert!(only >= Some(1), "{label}: {column}");
    }

    // A merge has the counts of all labels.
    let merged = tests.directory.path().join("merged");
    let mut merge = limited(built("rocov"));
    merge.args(["merge", "-q"]).arg(tests.data());
    run(merge.arg("--pooled").arg(&merged)).success().silently();
    assert_eq!(tests.totals(&raw_profiles(&merged)), tests.totals(&all));
}

#[test]
fn a_label_that_cannot_be_used_loses_nothing() {
    let tests = Tests::new();
    let data = tests.data();
    let mut command = tests.launching(rocov_run(Some("model"), &data), TESTS[0].2);
    let said = run(command.env("ROCOV_LABEL", "../up")).success().stderr;
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("ROCOV_LABEL") && said.contains("\"../up\""),
        "{said}"
    );
    assert_eq!(raw_profiles(&data).len(), 1);
    assert!(!data.join("profraw/labels").exists());

    let mut command = limited(built("rocov"));
    command.args(["run", "--label", "a//b", "--", "true"]);
    let refused = run(&mut command).with_status(2);
    assert!(refused.stderr.contains("\"a//b\""), "{}", refused.stderr);
}
