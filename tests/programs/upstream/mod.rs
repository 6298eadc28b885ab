//! The programs in LLVM's own tests of its drain for HIP, written anew, with the expectations of
//! those tests (compiler-rt/test/profile: AMDGPU, GPU). Each test here has the name of one there.

mod collecting;
mod counting;
mod devices;
mod images;
mod processes;
mod using;

use super::support::command::{Ended, run};
use super::support::gpu::Stack;
use super::support::profile::merge;
use super::support::program::{Program, TARGET, device_profiles, is_of_zeros};
use std::path::{Path, PathBuf};

/// Upstream's profile names: its tests merge a whole directory.
const PATTERN: &str = "%p.profraw";

/// The flags of both ways to compile device code.
const RDC: [&str; 2] = ["-fno-gpu-rdc", "-fgpu-rdc"];

/// A program of testdata/programs/upstream, with instrumented host code.
fn program(stack: Stack, names: &[&str], more: &[&str]) -> Program {
    let sources: Vec<String> = names
        .iter()
        .map(|name| format!("upstream/{name}.hip"))
        .collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    Program::build(stack, &sources, &["--host"], &[more, &["-ldl"]].concat())
}

/// A run that has succeeded without a message, and its files.
struct Ran {
    directory: tempfile::TempDir,
    data: PathBuf,
}

impl Ran {
    /// Runs the program on one GPU.
    #[track_caller]
    fn one(program: &Program, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = program.with_pattern(TARGET, &data.join(PATTERN));
        run(command.args(arguments)).success().silently();
        Self { directory, data }
    }

    /// Runs the program on these GPUs with the drain's log on.
    #[track_caller]
    fn verbose(program: &Program, gpus: &str, arguments: &[&str]) -> (Self, Ended) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = program.with_pattern(gpus, &data.join(PATTERN));
        command.env("LLVM_PROFILE_VERBOSE", "1").args(arguments);
        let ended = run(&mut command).success();
        (Self { directory, data }, ended)
    }

    /// The only profile of device code.
    #[track_caller]
    fn device(&self) -> PathBuf {
        the_one(device_profiles(&self.data))
    }

    /// The only profile of host code, whose name is the process id.
    #[track_caller]
    fn host(&self) -> PathBuf {
        the_one(host_profiles(&self.data))
    }

    /// Profiles of device code and of host code, merged by their directory, as upstream merges
    /// them.
    #[track_caller]
    fn merged(&self) -> PathBuf {
        assert_eq!(
            (self.host().parent(), self.device().parent()),
            (Some(&*self.data), Some(&*self.data))
        );
        let merged = self.directory.path().join("merged.profdata");
        merge(std::slice::from_ref(&self.data), &merged);
        merged
    }
}

fn host_profiles(data: &Path) -> Vec<PathBuf> {
    let device = device_profiles(data);
    let mut profiles = super::support::profile::raw_profiles(data);
    profiles.retain(|profile| !device.contains(profile) && !is_of_zeros(profile));
    profiles
}

#[track_caller]
fn the_one(profiles: Vec<PathBuf>) -> PathBuf {
    assert_eq!(profiles.len(), 1, "one profile was expected: {profiles:?}");
    profiles.into_iter().next().expect("there is one")
}
