//! `rocov merge` on profiles that the tests make up from real clang's device ELFs; llvm-profdata is
//! the judge of sums.

mod failures;
mod inputs;
mod outputs;
mod pgo;
mod readers;
mod registries;
mod shards;
mod trees;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rocov_tests::cli::{device, profile, rocov, run, stdout};
use tempfile::TempDir;

/// Raw version of the compiler that most tests use.
const RAW_VERSION: u64 = 10;
/// Its llvm-profdata, which also shows the indexed profiles of older ones.
const PROFDATA: &str = "llvm-profdata-22";

/// A working directory with device ELFs and profiles of them.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A device ELF of a small kernel.
    fn elf(&self, arch: &str) -> PathBuf {
        let name = format!("{arch}.elf");
        device::compile(self.0.path(), &name, arch, &device::INSTRUMENTED)
    }

    /// Writes the profile that process `pid` would leave of `elf` in `directory`, with every counter
    /// at `count`.
    fn profile(&self, directory: &str, elf: &Path, pid: u32, count: u64) -> PathBuf {
        let arch = elf.file_stem().unwrap().to_str().unwrap();
        let path = self.profile_path(directory, arch, elf, pid);
        profile::write(elf, count, RAW_VERSION, &path);
        path
    }

    /// The path of that profile.
    fn profile_path(&self, directory: &str, arch: &str, elf: &Path, pid: u32) -> PathBuf {
        fs::create_dir_all(self.path(directory)).unwrap();
        let identity = profile::identity(elf);
        self.path(directory)
            .join(format!("{arch}.{identity}.0.{pid}.profraw"))
    }

    /// `rocov merge ARGUMENTS` in the working directory.
    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = rocov();
        command.current_dir(self.0.path()).arg("merge");
        command.args(arguments);
        command
    }

    fn merge(&self, arguments: &[impl AsRef<OsStr>]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it. It must succeed without messages on standard error. Returns its standard output.
    fn merged(&self, arguments: &[impl AsRef<OsStr>]) -> String {
        let output = run(&mut self.command(arguments));
        assert_eq!(rocov_tests::cli::stderr(&output), "");
        stdout(&output)
    }

    /// The counts by llvm-profdata in a file of the working directory.
    fn shown(&self, name: &str) -> String {
        shown(&self.path(name))
    }

    /// The number of calls of the kernel in an indexed profile of the working directory.
    fn calls(&self, name: &str) -> u64 {
        let shown = self.shown(name);
        let line = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("Function count: "));
        line.unwrap().parse().unwrap()
    }
}

/// All counts in a profile, by llvm-profdata.
fn shown(profile: &Path) -> String {
    let mut command = Command::new(PROFDATA);
    command.args(["show", "--all-functions", "--counts"]);
    stdout(&run(command.arg(profile)))
}

/// Names of the files in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
