//! Checks the compilers of programs, and LLVM's tools that read their profiles.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use memchr::memmem;
use rocov::format::profraw::Version;

use super::finding::Finding;
use crate::llvm::{Clang, LlvmTools, releases, rocm};
use crate::support::mmap;
use crate::system::command;

/// The oldest whose GPU code can be drained: clang 14 crashes on it.
const OLDEST: u32 = 15;
/// From here on, instrumented GPU code calls [`COUNTER`].
const CALLING: u32 = 23;
/// The releases of ccache that may drop `-Xarch_device` and the flag after it (ccache/ccache#1632). 4.11.2
/// drops them. 4.14.2 passes them on. 4.7.5 does too, and does not cache the result.
const DROPPING: RangeInclusive<(u32, u32)> = (4, 9)..=(4, 12);
/// The function that counts, in LLVM's profile runtime for GPUs.
const COUNTER: &str = "__llvm_profile_instrument_gpu";
/// The paths of that runtime in a clang's resource directory: by target, or by operating system.
const RUNTIMES: [&str; 2] = [
    "lib/amdgcn-amd-amdhsa/libclang_rt.profile.a",
    "lib/amdhsa/libclang_rt.profile-amdgcn.a",
];

/// Each compiler that is newer than all before it, and whether its GPU code can count.
pub(super) fn check(compilers: &[Clang]) -> Vec<Finding> {
    let mut findings: Vec<_> = by_age(compilers).into_iter().map(of_clang).collect();
    if findings.is_empty() {
        findings.push(Finding::warning(
            "compiler",
            "no clang++ or amdclang++ on PATH, in /usr/lib/llvm-N/bin or in $ROCM_PATH/llvm/bin",
            "to compile here, install ROCm or clang 15 or later; to run and report, none is needed",
        ));
    }
    let hipcc = rocm().join("bin/hipcc");
    if hipcc.is_file() {
        findings.push(Finding::ok("hipcc", hipcc.display()));
    }
    findings.extend(ccache());
    findings
}

/// The finding about ccache, if it is on the `PATH`.
fn ccache() -> Option<Finding> {
    let printed = command::output(Command::new("ccache").arg("--version")).ok()?;
    let printed = String::from_utf8_lossy(&printed.stdout);
    let version = printed.strip_prefix("ccache version ")?.lines().next()?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    let release = (numbers.next()??, numbers.next()??);
    Some(match DROPPING.contains(&release) {
        true => Finding::warning(
            "ccache",
            format!("{version}, which may drop the flags of `rocov flags`"),
            "kernels would not count: put the flags into a file and compile with --config=FILE",
        ),
        false => Finding::ok("ccache", version),
    })
}

/// Newest first.
fn by_age(compilers: &[Clang]) -> Vec<&Clang> {
    let mut compilers: Vec<_> = compilers.iter().collect();
    compilers.sort_by_key(|clang| std::cmp::Reverse(clang.llvm));
    compilers
}

fn of_clang(clang: &Clang) -> Finding {
    let found = format!("{}, {}", clang.line, clang.path.display());
    if clang.llvm < OLDEST {
        return Finding::warning(
            "compiler",
            found,
            "it crashes on instrumented GPU code: take clang 15 or later",
        );
    }
    let runtime = runtime(&clang.path);
    match (&runtime, clang.llvm >= CALLING) {
        (Some(runtime), true) if !defines_counter(runtime) => Finding::missing(
            "compiler",
            format!("{found}; {} lacks {COUNTER}", runtime.display()),
            "its instrumented GPU code does not link: take a compiler-rt of the same version, built \
             with COMPILER_RT_BUILD_PROFILE_ROCM",
        ),
        (None, true) => Finding::missing(
            "compiler",
            format!("{found}; no profile runtime for GPUs, which has {COUNTER}"),
            "its instrumented GPU code does not link: build its compiler-rt with \
             COMPILER_RT_BUILD_PROFILE_ROCM, or take clang 15 to 22",
        ),
        (Some(runtime), _) => Finding::ok(
            "compiler",
            format!("{found}; profile runtime for GPUs {}", runtime.display()),
        ),
        (None, false) => Finding::ok(
            "compiler",
            format!("{found}; GPU code by the device header"),
        ),
    }
}

/// LLVM's profile runtime for GPUs that comes with the compiler at `clang`.
fn runtime(clang: &Path) -> Option<PathBuf> {
    let said = command::output(Command::new(clang).arg("--print-resource-dir")).ok()?;
    let directory = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    let mut places = RUNTIMES.iter().map(|place| directory.join(place));
    places.find(|path| path.is_file())
}

fn defines_counter(runtime: &Path) -> bool {
    mmap::map(runtime).is_ok_and(|file| memmem::find(&file, COUNTER.as_bytes()).is_some())
}

/// The tools that read profiles, with the raw versions that they say, and whether those of what the
/// newest compiler writes are among them.
pub(super) fn tools(compilers: &[Clang], installed: &Result<LlvmTools>) -> Vec<Finding> {
    let installed = match installed {
        Ok(installed) => installed,
        Err(error) => {
            return vec![Finding::missing(
                "LLVM tools",
                format!("{error:#}"),
                "on Debian: apt-get install llvm-22; with ROCm they are in $ROCM_PATH/llvm/bin",
            )];
        }
    };
    let mut findings = Vec::new();
    for tools in installed.all() {
        let place = tools.profdata.display();
        findings.push(match tools.raw_version {
            Some(version) => Finding::ok(
                "LLVM tools",
                format!("LLVM {}, raw version {version}, {place}", tools.llvm),
            ),
            None => Finding::warning(
                "LLVM tools",
                format!("LLVM {}, {place}", tools.llvm),
                "its raw version is not known here: try",
            ),
        });
    }
    let newest = by_age(compilers).into_iter().next();
    if let Some(clang) = newest
        && let Some(version) = Version::of_clang(clang.llvm)
        && let Err(error) = installed.reading(version.word())
    {
        let found = format!("none for clang {}", clang.llvm);
        let needed = releases(version.layout());
        findings.push(Finding::missing(
            "LLVM tools",
            found,
            format!(
                "{error:#}; or compile with a clang of the tools that are here, not of {needed}"
            ),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::commands::doctor::finding::State;

    /// A compiler that knows the place of its runtimes.
    fn clang(directory: &Path, llvm: u32) -> Clang {
        let path = directory.join("clang++");
        let script = format!("#!/bin/sh\necho {}\n", directory.display());
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let line = format!("clang version {llvm}.0.0");
        Clang { llvm, line, path }
    }

    #[test]
    fn new_compilers_need_the_profile_runtime_for_gpus() {
        let directory = tempfile::tempdir().unwrap();
        let state = |llvm| of_clang(&clang(directory.path(), llvm)).state;
        assert_eq!(state(14), State::Warning);
        assert_eq!(state(22), State::Ok);
        assert_eq!(state(23), State::Missing);
        let runtime = directory.path().join(RUNTIMES[0]);
        fs::create_dir_all(runtime.parent().unwrap()).unwrap();
        fs::write(&runtime, "another").unwrap();
        assert_eq!(state(23), State::Missing);
        fs::write(&runtime, format!("\0{COUNTER}\0")).unwrap();
        assert_eq!(state(23), State::Ok);
    }

    #[test]
    fn without_a_compiler_one_can_still_report() {
        assert_eq!(check(&[])[0].state, State::Warning);
    }
}
