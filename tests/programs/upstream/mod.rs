//! The programs in LLVM's own tests of its drain for HIP, written again, with the expectations of
//! those tests (compiler-rt/test/profile: AMDGPU, GPU). Each test here has the name of one there,
//! and runs under `rocov run` with its defaults. On HIP 7.2.4, clang 23 compiles the programs, and
//! links LLVM's drain into them; elsewhere clang 22 does.

mod collecting;
mod counting;
mod devices;
mod images;
mod processes;
mod using;

use std::path::{Path, PathBuf};

use super::support::artifacts::built;
use super::support::command::{Ended, limited, run};
use super::support::compilers::Compiler;
use super::support::gpu::Stack;
use super::support::profile::{Functions, functions_by, merge_by};
use super::support::program::{Program, TARGET, device_profiles, is_of_zeros};
use super::support::released::Released;

/// Upstream's profile names: its tests merge a whole directory.
const PATTERN: &str = "%p.profraw";

/// The flags of both ways to compile device code.
const RDC: [&str; 2] = ["-fno-gpu-rdc", "-fgpu-rdc"];

/// A compiler with its tools, and the HIP of its programs.
#[derive(Clone, Copy)]
struct Toolchain {
    stack: Stack,
    /// Clang 23 and LLVM's drain, or `None` for clang 22.
    newest: Option<Released>,
}

impl Toolchain {
    /// Clang 23 with HIP 7.2.4, if both are unpacked, and clang 22 with every other HIP.
    fn all() -> impl Iterator<Item = Self> {
        let newest = Released::find();
        Stack::all().into_iter().map(move |stack| Self {
            stack,
            newest: newest.filter(|_| stack.is_hip_7()),
        })
    }

    fn compiler(self) -> &'static Compiler {
        self.newest
            .map_or(self.stack.compiler(), |newest| newest.clang)
    }

    fn profdata(self) -> &'static str {
        self.compiler().tool("llvm-profdata")
    }

    /// A program of testdata/programs/upstream, with instrumented host code.
    fn program(self, names: &[&str], more: &[&str]) -> Program {
        self.compiled(names, &[], more)
    }

    /// Such a program with uniform counters, if its compiler has them.
    fn program_with_uniformity(self, names: &[&str]) -> Program {
        let options: &[&str] = match self.newest {
            Some(_) => &["--uniformity"],
            None => &[],
        };
        self.compiled(names, options, &[])
    }

    /// Such a program without LLVM's drain, which clang 23 links together with HIP. Host code by
    /// clang 23 refers to that drain; librocov has these functions too.
    fn program_without_drain(self, names: &[&str], more: &[&str]) -> Program {
        self.compiled(names, &[], &[more, &["-no-hip-rt"]].concat())
    }

    fn compiled(self, names: &[&str], options: &[&str], more: &[&str]) -> Program {
        let sources: Vec<String> = names
            .iter()
            .map(|name| format!("upstream/{name}.hip"))
            .collect();
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let more = [more, &["-ldl"]].concat();
        let options = [options, &["--host"]].concat();
        Program::by(self.compiler(), self.stack, &sources, &options, &more)
    }

    /// Merges profiles, or directories of them.
    #[track_caller]
    fn merge(self, profiles: &[PathBuf], output: &Path) {
        merge_by(self.profdata(), profiles, output);
    }

    fn functions(self, profile: &Path) -> Functions {
        functions_by(self.profdata(), profile)
    }

    /// The lines about one function in llvm-profdata's output.
    #[track_caller]
    fn shown(self, profile: &Path, name: &str) -> String {
        let mut show = limited(self.profdata());
        show.args(["show", "--counts", "--function", name]);
        run(show.arg(profile)).success().silently().stdout
    }

    /// Calls and other counters of one function in a profile.
    #[track_caller]
    fn counts(self, profile: &Path, name: &str) -> (u64, Vec<u64>) {
        let functions = self.functions(profile);
        let function = functions
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {profile:?}: {functions:?}"));
        (function.calls, function.blocks.clone())
    }

    /// The output of `rocov report` with these arguments.
    #[track_caller]
    fn report(self, arguments: &[&Path]) -> String {
        let mut report = match self.newest {
            Some(newest) => newest.clang.rocov("report"),
            None => {
                let mut rocov = limited(built("rocov"));
                rocov.arg("report");
                rocov
            }
        };
        report.args(arguments);
        run(&mut report).success().silently().stdout
    }
}

/// A run that has succeeded without a message, and its files.
struct Ran {
    toolchain: Toolchain,
    directory: tempfile::TempDir,
    data: PathBuf,
}

impl Ran {
    /// Runs the program on one GPU.
    #[track_caller]
    fn one(toolchain: Toolchain, program: &Program, arguments: &[&str]) -> Self {
        Self::warned(toolchain, program, arguments, &[])
    }

    /// Runs the program on one GPU. LLVM's drain prints a line with each of these texts, and nothing
    /// else is printed.
    #[track_caller]
    fn warned(
        toolchain: Toolchain,
        program: &Program,
        arguments: &[&str],
        warnings: &[&str],
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = program.with_pattern(TARGET, &data.join(PATTERN));
        let ended = run(command.args(arguments)).success();
        assert_eq!(ended.stderr.lines().count(), warnings.len(), "{ended}");
        ended.says(warnings);
        Self {
            toolchain,
            directory,
            data,
        }
    }

    /// Runs the program on these GPUs with the drain's log on.
    #[track_caller]
    fn verbose(
        toolchain: Toolchain,
        program: &Program,
        gpus: &str,
        arguments: &[&str],
    ) -> (Self, Ended) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = program.with_pattern(gpus, &data.join(PATTERN));
        command.env("LLVM_PROFILE_VERBOSE", "1").args(arguments);
        let ended = run(&mut command).success();
        let ran = Self {
            toolchain,
            directory,
            data,
        };
        (ran, ended)
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
        self.toolchain
            .merge(std::slice::from_ref(&self.data), &merged);
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
