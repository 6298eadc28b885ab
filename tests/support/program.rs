//! HIP programs of testdata/programs, compiled and run like a user's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::artifacts::{built, files_with_extension, repository, static_library};
use super::command::{limited, rocov_run, run_once};
use super::compile::{Compilation, device_header};
use super::compilers::Compiler;
use super::gpu::Stack;
use super::profile::{Function, functions, raw_profiles};

/// The architecture that every stack knows.
pub const TARGET: &str = "gfx90a";

/// A program for one stack.
#[derive(Debug)]
pub struct Program {
    /// The executable.
    pub file: PathBuf,
}

impl Program {
    /// Compiles sources of testdata/programs with the flags of `rocov flags OPTIONS` and `more`.
    pub fn build(stack: Stack, sources: &[&str], options: &[&str], more: &[&str]) -> Self {
        Self::by(stack.compiler(), stack, sources, options, more)
    }

    /// Compiles them with another compiler.
    pub fn by(
        compiler: &'static Compiler,
        stack: Stack,
        sources: &[&str],
        options: &[&str],
        more: &[&str],
    ) -> Self {
        let flags = flags_for(compiler.clang, options);
        Self::compiled(compiler, stack, sources, &flags, more, &[])
    }

    /// Compiles them with rocov's flags as `change` changes them, `more` and the stack's own flags.
    pub fn with_changed_flags(
        compiler: &'static Compiler,
        stack: Stack,
        sources: &[&str],
        change: impl Fn(&str) -> String,
        more: &[&str],
    ) -> Self {
        let flags: Vec<_> = flags_for(compiler.clang, &[])
            .iter()
            .map(|flag| flag.to_str().expect("flags in UTF-8"))
            .map(|flag| change(flag).into())
            .collect();
        Self::compiled(compiler, stack, sources, &flags, more, &[])
    }

    /// Compiles them with `flags`, `more` and the stack's own flags. `flags` and `more` name the
    /// `profiles`.
    pub fn with_flags(
        stack: Stack,
        sources: &[&str],
        flags: &[OsString],
        more: &[&str],
        profiles: &[PathBuf],
    ) -> Self {
        Self::compiled(stack.compiler(), stack, sources, flags, more, profiles)
    }

    fn compiled(
        compiler: &'static Compiler,
        stack: Stack,
        sources: &[&str],
        flags: &[OsString],
        more: &[&str],
        profiles: &[PathBuf],
    ) -> Self {
        let stem = sources[0].rsplit('/').next().unwrap_or_default();
        let mut compilation = Compilation::by(compiler.clang)
            .arguments(stack.flags_for(compiler))
            .arguments(["-O1", "-Wall", "-Wextra"])
            .arguments([format!("--offload-arch={TARGET}")])
            .arguments(flags);
        for source in sources {
            compilation = compilation.source(repository("testdata/programs").join(source));
        }
        let folder = sources[0].rsplit_once('/').map_or("", |(folder, _)| folder);
        let headers = files_with_extension(&format!("testdata/programs/{folder}"), "h");
        let file = compilation
            .arguments(more)
            .reads(headers)
            .reads([device_header()])
            .reads(profiles.iter().cloned())
            .output(stem);
        Self { file }
    }

    /// The program under `rocov run` on these GPUs, up to its arguments.
    pub fn under_rocov(&self, gpus: &str, data: &Path) -> Command {
        let mut command = rocov_run(Some(&format!("model:{gpus}")), data);
        command.arg(&self.file);
        command
    }

    /// The program under `rocov run`, with profiles named by this pattern.
    pub fn with_pattern(&self, gpus: &str, pattern: &Path) -> Command {
        let mut command = limited(built("rocov"));
        command
            .args(["run", "--gpu", &format!("model:{gpus}"), "--"])
            .arg(&self.file)
            .env("LLVM_PROFILE_FILE", pattern);
        command
    }

    /// The program on a modelled GPU, without rocov.
    pub fn alone(&self) -> Command {
        let mut command = without_rocov();
        command.arg(&self.file);
        command
    }
}

/// A command that runs the appended program on a modelled GPU, without rocov.
pub fn without_rocov() -> Command {
    let model = built("librocov_modelgpu.so");
    let mut command = limited("env");
    command.arg(format!("ROCOV_MODELGPU={TARGET}"));
    command.arg(format!("LD_PRELOAD={}", model.display()));
    command
}

/// The flags that `rocov flags` prints for the compiler of the stack's programs.
pub fn rocov_flags(stack: Stack, options: &[&str]) -> Vec<OsString> {
    flags_for(stack.compiler().clang, options)
}

/// The flags that `rocov flags` prints for another compiler.
pub fn flags_for(compiler: &str, options: &[&str]) -> Vec<OsString> {
    let mut flags = limited(built("rocov"));
    flags.args(["flags", "--clang", compiler]).args(options);
    let output = run_once(&mut flags).success();
    // A clang before 19 has no fast counters.
    let warning = output
        .stderr
        .lines()
        .filter(|line| !line.contains("--counters=llvm"));
    assert_eq!(warning.count(), 0, "{}", output.stderr);
    let flags = output.stdout;
    flags.split_whitespace().map(OsString::from).collect()
}

/// The output of `rocov flags --link`: it links a program with librocov.
pub fn link_flags() -> Vec<OsString> {
    let library = static_library();
    let mut flags = limited(built("rocov"));
    let flags: Vec<OsString> = run_once(flags.args(["flags", "--link"]))
        .success()
        .silently()
        .stdout
        .split_whitespace()
        .map(OsString::from)
        .collect();
    assert_eq!(flags.last(), Some(&library.into_os_string()));
    flags
}

/// The profiles of device code in a directory, without those of zeros only.
pub fn device_profiles(data: &Path) -> Vec<PathBuf> {
    let is_device = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("gfx") && !is_of_zeros(path)
    };
    raw_profiles(data).into_iter().filter(is_device).collect()
}

/// Returns whether this profile of device code belongs to code that was never launched.
pub fn is_of_zeros(profile: &Path) -> bool {
    profile.to_string_lossy().contains(".zero.")
}

/// One function's entry in a profile.
#[track_caller]
pub fn function(profile: &Path, name: &str) -> Function {
    let functions = functions(profile);
    let found = functions.get(name);
    found
        .unwrap_or_else(|| panic!("no {name} in {}: {functions:?}", profile.display()))
        .clone()
}

/// Calls and other counters of one function in a profile.
#[track_caller]
pub fn counts(profile: &Path, name: &str) -> (u64, Vec<u64>) {
    let Function { calls, blocks, .. } = function(profile, name);
    (calls, blocks)
}
