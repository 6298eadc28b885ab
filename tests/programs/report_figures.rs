//! The figures of `rocov report` are llvm-cov's on every arch, and the host's for this source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocov::format::codeobject::Identity;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{code_object, host_oracle};
use crate::support::gpu::{Stack, the_profile};
use crate::support::json::json;
use crate::support::profile::{cov, merge, merged_of_arch};
use crate::support::spec::expand;

const TARGETS: [&str; 2] = ["gfx90a", "gfx942"];
const LEVEL: &str = "-O1";

#[test]
fn branches() {
    are_right("branches");
}

#[test]
fn calls() {
    are_right("calls");
}

#[test]
fn templates() {
    are_right("templates");
}

#[test]
fn wide() {
    are_right("wide");
}

/// A kernel's source that ran on both archs and on the host.
struct Ran {
    directory: tempfile::TempDir,
    name: &'static str,
    /// Device ELFs, in the order of the targets.
    objects: Vec<PathBuf>,
}

fn are_right(name: &'static str) {
    let ran = Ran::new(name);
    ran.each_arch_is_as_llvm_cov_has_it();
    ran.each_arch_is_as_the_host();
}

impl Ran {
    fn new(name: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut ran = Self {
            directory,
            name,
            objects: Vec::new(),
        };
        let spec = repository("testdata/kernels").join(format!("{name}.spec"));
        let spec = expand(&spec, ran.directory.path());
        std::fs::create_dir(ran.data()).expect("a fresh directory");
        for target in TARGETS {
            let stack = Stack::for_target(target);
            let object = code_object(name, target, LEVEL, stack.code_object_version());
            let place = ran.fresh(target);
            stack
                .run(target, &object, &spec, &place)
                .success()
                .silently();
            // The interpreter names its profiles differently from librocov.
            let elf = std::fs::read(&object).expect("a code object can be read");
            let identity = Identity::from_image(&elf).expect("a code object has an identity");
            let profile = ran.data().join(format!("{target}.{identity}.0.1.profraw"));
            std::fs::rename(the_profile(&place), profile).expect("a file can be renamed");
            ran.objects.push(object);
        }
        let host = ran.fresh("host");
        let mut oracle = limited(host_oracle(name, LEVEL));
        oracle.arg(spec).arg(&host);
        oracle.env("LLVM_PROFILE_FILE", host.join("host.profraw"));
        run(&mut oracle).success();
        merge(&[host.join("host.profraw")], &host.join("host.profdata"));
        ran
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("profiles")
    }

    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::create_dir(&path).expect("a fresh directory");
        path
    }

    fn report(&self, arguments: &[&str]) -> String {
        let mut report = limited(built("rocov"));
        report.arg("report").arg(self.data()).args(arguments);
        report.arg("--object").args(&self.objects);
        run(&mut report).success().silently().stdout
    }

    fn each_arch_is_as_llvm_cov_has_it(&self) {
        let found = json(self.report(&["--json", "--as-llvm-cov"]));
        for (index, target) in TARGETS.iter().enumerate() {
            let profile = merged_of_arch(&self.data(), target);
            let expected = json(export(&self.objects[index], &profile, "text"));
            let (found, expected) = (&found["data"][index], &expected["data"][0]);
            for part in ["totals", "functions", "files"] {
                assert_eq!(found[part], expected[part], "{} {target} {part}", self.name);
            }
        }
        // The table has these numbers too.
        let table = self.report(&["--arch=gfx942", "--as-llvm-cov"]);
        let total = table.lines().find(|line| line.starts_with("TOTAL"));
        let columns: Vec<_> = total.unwrap_or_default().split_whitespace().collect();
        let totals = &found["data"][1]["totals"];
        for (index, what) in [
            (1, "regions"),
            (4, "functions"),
            (7, "lines"),
            (10, "branches"),
        ] {
            let count = &totals[what]["count"];
            let missed =
                count.as_u64().unwrap_or(0) - totals[what]["covered"].as_u64().unwrap_or(0);
            assert_eq!(columns[index], count.to_string(), "{what}:\n{table}");
            assert_eq!(columns[index + 1], missed.to_string(), "{what}:\n{table}");
        }
    }

    fn each_arch_is_as_the_host(&self) {
        let source = repository("testdata/kernels").join(format!("{}.hip", self.name));
        let oracle = host_oracle(self.name, LEVEL);
        let profile = self.directory.path().join("host/host.profdata");
        let host = lines(&export(&oracle, &profile, "lcov"), &source);
        assert!(host.values().any(|count| *count > 0), "{host:?}");
        for target in TARGETS {
            let arch = format!("--arch={target}");
            let device = self.report(&["--lcov", "--as-llvm-cov", &arch]);
            let device = lines(&device, &source);
            assert_eq!(device, host, "{} on {target}", self.name);
        }
        let both = lines(&self.report(&["--lcov", "--as-llvm-cov"]), &source);
        let twice: BTreeMap<_, _> = host
            .iter()
            .map(|(line, count)| (*line, 2 * count))
            .collect();
        assert_eq!(both, twice, "{} on both archs", self.name);
    }
}

/// The output of llvm-cov's export for an object.
fn export(object: &Path, profile: &Path, format: &str) -> String {
    let mut export = limited(cov());
    export.args(["export", &format!("-format={format}"), "-instr-profile"]);
    export.arg(profile).arg(object);
    run(&mut export).success().silently().stdout
}

/// The counts of a source's lines in a tracefile.
fn lines(tracefile: &str, source: &Path) -> BTreeMap<u32, u64> {
    let heading = format!("SF:{}", source.display());
    let records = tracefile
        .lines()
        .skip_while(|line| *line != heading)
        .take_while(|line| *line != "end_of_record");
    records
        .filter_map(|record| {
            let (line, count) = record.strip_prefix("DA:")?.split_once(',')?;
            Some((line.parse().ok()?, count.parse().ok()?))
        })
        .collect()
}
