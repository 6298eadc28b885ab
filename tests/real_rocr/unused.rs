//! Code objects that were never loaded have a profile of zeros, unless `ROCOV_ZERO=0`. This
//! includes code never registered with HIP: a report shows its functions as not run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::programs::{COUNT, Ran, launches, modules, object, part};
use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::compile::{code_object, host_oracle};
use crate::support::data::Data;
use crate::support::gpu::Stack;
use crate::support::profile::{cov, functions, raw_profiles};

/// Sources of testdata/kernels that the program does not use.
const UNUSED: [&str; 3] = ["branches", "calls", "templates"];
const NO_ZERO: (&str, &str) = ("ROCOV_ZERO", "0");

/// A library with code objects in clang's layout: each in a bundle, on a separate page. `target` is
/// the bundle's target string.
fn library(directory: &Path, code_objects: &[(PathBuf, &str)]) -> PathBuf {
    let mut section = Vec::new();
    for (code_object, target) in code_objects {
        let bundle = directory.join("bundle");
        let mut bundler = limited("clang-offload-bundler-22");
        bundler
            .args(["-type=o", "-bundle-align=4096", "-input=/dev/null"])
            .arg(format!("-input={}", code_object.display()))
            .arg(format!(
                "-targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--{target}"
            ))
            .arg(format!("-output={}", bundle.display()));
        run(&mut bundler).success();
        section.extend(std::fs::read(&bundle).expect("a bundle"));
        section.resize(section.len().next_multiple_of(4096), 0);
    }
    let contents = directory.join("section");
    std::fs::write(&contents, section).expect("a file can be written");
    let source = directory.join("unused.s");
    let assembly = format!(
        ".section .hip_fatbin, \"a\"\n.balign 4096\n.incbin \"{}\"\n",
        contents.display()
    );
    std::fs::write(&source, assembly).expect("a file can be written");
    let library = directory.join("libunused.so");
    run(limited("gcc")
        .arg("-shared")
        .arg(&source)
        .arg("-o")
        .arg(&library))
    .success();
    library
}

/// The library with all unused code objects and with the one that the program uses.
fn all_unused(directory: &Path, stack: Stack) -> PathBuf {
    let version = stack.code_object_version();
    let unused = UNUSED.map(|name| (code_object(name, "gfx90a", "-O1", version), "gfx90a"));
    let others = [
        (object("count.hip", stack), "gfx90a"),
        // No GPU here can load these.
        (code_object("collatz", "gfx942", "-O1", version), "gfx942"),
        (
            code_object("collatz", "gfx90a:xnack+", "-O1", version),
            "gfx90a:xnack+",
        ),
    ];
    library(directory, &[&others[..], &unused].concat())
}

/// Runs a program that uses only `count`, with the library in the process.
fn with_library(stack: Stack, library: &Path, environment: &[(&str, &str)]) -> Ran {
    let library = library.to_str().expect("a path in UTF-8");
    let environment = [environment, &[("LD_PRELOAD", library)]].concat();
    let object = object("count.hip", stack);
    Ran::steps_with(
        stack,
        "gfx90a",
        &environment,
        &object,
        "load launch sync unload",
    )
}

/// The rows of an llvm-cov table, by the base names of files: numbers of regions, functions, lines
/// and branches, each with the missed ones.
fn rows(table: &str) -> Vec<(String, Vec<String>)> {
    let mut rows: Vec<_> = table
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let file = words.next().filter(|file| file.ends_with(".hip"))?;
            let name = file.rsplit('/').next().unwrap_or_default().to_owned();
            Some((name, words.collect()))
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn functions_of_unused_code_are_reported_as_not_run() {
    for stack in Stack::all() {
        let directory = TempDir::new().expect("a temporary directory");
        let library = all_unused(directory.path(), stack);
        let without = with_library(stack, &library, &[NO_ZERO]);
        assert_eq!(launches(&without.profile()), 1);

        let ran = with_library(stack, &library, &[]);
        let Data {
            profiles,
            registries,
            elfs,
        } = Data::read(&ran.data());
        assert_eq!(profiles.len(), 1 + UNUSED.len(), "{profiles:?}");
        assert_eq!(elfs.len(), profiles.len(), "{elfs:?}");
        let used = |profile: &&PathBuf| functions(profile).contains_key(COUNT);
        let used = profiles.iter().find(used).expect("count");
        assert_eq!(launches(used), 1);
        // Only this one was loaded, and the registry records that the others were not.
        let recorded = registries
            .iter()
            .flat_map(|registry| &registry.code_objects);
        assert_eq!(
            recorded
                .filter(|code_object| code_object.instrumented)
                .count(),
            profiles.len()
        );
        let used = part(used, 1);
        let processes = || registries.iter().flat_map(|registry| &registry.processes);
        let loads = processes().flat_map(|process| &process.loads);
        let loaded: BTreeSet<_> = loads.filter_map(|load| load.code_object.as_ref()).collect();
        assert!(loaded.contains(&used));
        let never: BTreeSet<_> = processes()
            .flat_map(|process| &process.never_loaded)
            .flat_map(|code_object| &code_object.code_objects)
            .collect();
        assert_eq!(never.len(), UNUSED.len());
        assert!(never.is_disjoint(&loaded));

        // From the kept device ELFs only, by the rules of the expected figures.
        let mut report = limited(built("rocov"));
        let report = run(report.args(["report", "--as-llvm-cov"]).arg(ran.data()))
            .success()
            .silently();
        let mut reported = rows(&report.stdout);
        reported.retain(|(file, _)| file != "count.hip");
        // The sources for the host, without a run.
        let mut expected: Vec<_> = UNUSED
            .iter()
            .flat_map(|name| {
                let mut cov = limited(cov());
                cov.args(["report", "-empty-profile"])
                    .arg(host_oracle(name, "-O1"));
                rows(&run(&mut cov).success().stdout)
            })
            .collect();
        expected.sort();
        assert_eq!(reported, expected, "{stack:?}");
        ran.ended.silently();
    }
}

/// One limit applies to the kept ELFs of all code objects, and used code comes first.
#[test]
fn device_elfs_of_unused_code_are_kept_as_those_of_used_code_are() {
    let stack = Stack::Debian12;
    let directory = TempDir::new().expect("a temporary directory");
    let library = all_unused(directory.path(), stack);
    let used = object("count.hip", stack).metadata().expect("its size");
    let kept = |setting: (&str, &str)| {
        let ran = with_library(stack, &library, &[setting]);
        assert_eq!(ran.profiles().len(), 1 + UNUSED.len(), "{}", ran.ended);
        (Data::read(&ran.data()).elfs.len(), ran.ended.stderr)
    };
    assert_eq!(kept(("ROCOV_OBJECTS", "none")), (0, String::new()));
    let (elfs, said) = kept(("ROCOV_OBJECTS_MAX", &used.len().to_string()));
    assert_eq!(elfs, 1, "{said}");
    let [line] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    assert!(line.contains("bytes, the kept ELFs would exceed"), "{said}");
}

/// Another process's counts stay, whether the processes share a pool or overwrite files.
#[test]
fn zeros_replace_nothing() {
    let stack = Stack::Debian12;
    for pattern in ["all.profraw", "%m.profraw"] {
        let directory = TempDir::new().expect("a temporary directory");
        let data = directory.path().join("data");
        let library = all_unused(directory.path(), stack);
        let loads = |object: &Path, steps: &str, zero: &str| {
            let mut command = limited(built("rocov"));
            command
                .args(["run", "--gpu", "model:gfx90a", "--"])
                .args([modules(stack).as_path(), object])
                .args(steps.split_whitespace())
                .env("LLVM_PROFILE_FILE", data.join(pattern))
                .env("LD_PRELOAD", &library)
                .env("ROCOV_ZERO", zero);
            run(&mut command).success().silently();
        };
        loads(&object("count.hip", stack), "load launch sync", "0");
        let counted = raw_profiles(&data);
        let [counted] = counted.as_slice() else {
            panic!("{counted:?}")
        };
        let other = code_object("vecadd", "gfx90a", "-O1", stack.code_object_version());
        loads(&other, "load", "1");
        assert_eq!(launches(counted), 1, "{pattern}");
        let all = raw_profiles(&data);
        assert_eq!(all.len(), 3 + UNUSED.len(), "{all:?}");
    }
}
