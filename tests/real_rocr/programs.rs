//! The programs of testdata/programs/found, and runs of them.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::artifacts::{files_with_extension, repository};
use crate::support::command::{Ended, run};
use crate::support::compile::{Compilation, clang, code_object_of};
use crate::support::gpu::Stack;
use crate::support::profile::{Function, functions, raw_profiles};

/// The kernel of count.hip.
pub(crate) const COUNT: &str = "_Z5countPjj";
/// Work-items of a launch.
pub(crate) const WORK_ITEMS: u64 = 128;

/// A file of testdata/programs/found.
pub(crate) fn source(name: &str) -> PathBuf {
    repository("testdata/programs/found").join(name)
}

/// A kernel source there as a code object that `stack` loads on gfx90a.
pub(crate) fn object(name: &str, stack: Stack) -> PathBuf {
    let version = stack.code_object_version();
    code_object_of(&source(name), "gfx90a", "-O1", version)
}

/// The C program with this name, which uses only HSA, ready to link with it.
pub(crate) fn on_hsa(name: &str) -> Compilation {
    const HELPERS: &str = "tools/modelgpu/kfd/tests/programs";
    Compilation::by("clang-22")
        .arguments(["-O1", "-Wall", "-Wextra", "-I"])
        .arguments([repository(HELPERS)])
        .source(source(name).with_extension("c"))
        .reads(files_with_extension(HELPERS, "h"))
        .reads([source("count.h")])
}

/// The program that runs steps with modules.
pub(crate) fn modules(stack: Stack) -> PathBuf {
    Compilation::by(clang())
        .arguments(["-std=c++17", "-O1", "-Wall", "-Wextra"])
        .arguments(["-D__HIP_PLATFORM_AMD__"])
        .source(source("modules.cpp"))
        .arguments(stack.linking())
        .output("modules")
}

/// The results of a run.
pub(crate) struct Ran {
    pub(crate) ended: Ended,
    pub(crate) directory: TempDir,
}

impl Ran {
    /// Runs a program on modelled GPUs to its end, which must be a success.
    pub(crate) fn new<T: AsRef<std::ffi::OsStr>>(
        stack: Stack,
        gpus: &str,
        environment: &[(&str, &str)],
        command: impl IntoIterator<Item = T>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut launcher = stack.launcher(gpus, &directory.path().join("data"));
        launcher.args(command).envs(environment.iter().copied());
        let ended = run(&mut launcher).success();
        Self { ended, directory }
    }

    /// Runs steps on a code object.
    pub(crate) fn steps(stack: Stack, gpus: &str, object: &Path, steps: &str) -> Self {
        Self::steps_with(stack, gpus, &[], object, steps)
    }

    /// Runs steps on a code object, with variables set.
    pub(crate) fn steps_with(
        stack: Stack,
        gpus: &str,
        environment: &[(&str, &str)],
        object: &Path,
        steps: &str,
    ) -> Self {
        let command = [modules(stack), object.to_owned()].map(PathBuf::into_os_string);
        let steps = steps.split_whitespace().map(Into::into);
        Self::new(stack, gpus, environment, command.into_iter().chain(steps))
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn profiles(&self) -> Vec<PathBuf> {
        raw_profiles(&self.data())
    }

    /// The only profile.
    #[track_caller]
    pub(crate) fn profile(&self) -> PathBuf {
        let profiles = self.profiles();
        assert_eq!(profiles.len(), 1, "{profiles:?} after {}", self.ended);
        profiles[0].clone()
    }
}

/// The number of launches of `count`, by its counters. All counters must agree.
#[track_caller]
pub(crate) fn launches(profile: &Path) -> u64 {
    launches_in(&functions(profile)[COUNT])
}

#[track_caller]
pub(crate) fn launches_in(count: &Function) -> u64 {
    let launches = count.calls / WORK_ITEMS;
    assert_eq!(count.calls % WORK_ITEMS, 0, "{count:?}");
    let taken = count.blocks.last();
    assert_eq!(taken, Some(&(launches * WORK_ITEMS / 4)), "{count:?}");
    launches
}

/// A part of a profile's name: 0 the architecture, 1 the identity, 2 the GPU's index.
pub(crate) fn part(profile: &Path, index: usize) -> String {
    let name = profile.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').nth(index).unwrap_or_default().to_owned()
}
