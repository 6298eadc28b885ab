//! Checks the compilers of programs, and looks for LLVM's tools.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::finding::Finding;
use crate::llvm::{Clang, DeviceCompiler, LlvmTools, fast_counters, rocm};
use crate::system::command;
use crate::term::remedy::explained;

/// The oldest whose GPU code can be drained: clang 14 crashes on it.
const OLDEST: u32 = 15;
/// The releases of ccache that may drop `-Xarch_device` and the flag after it (ccache/ccache#1632). 4.11.2
/// drops them. 4.14.2 passes them on. 4.7.5 does too, and does not cache the result.
const DROPPING: RangeInclusive<(u32, u32)> = (4, 9)..=(4, 12);
/// The paths of LLVM's profile runtime for GPUs in a clang's resource directory: by target (clang 24 has
/// a new name for it), or by operating system.
const RUNTIMES: [&str; 3] = [
    "lib/amdgpu-amd-amdhsa/libclang_rt.profile.a",
    "lib/amdgcn-amd-amdhsa/libclang_rt.profile.a",
    "lib/amdhsa/libclang_rt.profile-amdgcn.a",
];

/// Reports on each compiler that is newer than all before it.
pub(crate) fn check(compilers: &[Clang]) -> Vec<Finding> {
    let mut findings: Vec<_> = by_age(compilers).into_iter().map(clang_finding).collect();
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
            "kernels would have no counters: put the flags into a file and compile with --config=FILE",
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

fn clang_finding(clang: &Clang) -> Finding {
    let found = format!("{}, {}", clang.line, clang.path.display());
    if clang.llvm < OLDEST {
        return Finding::warning(
            "compiler",
            found,
            "it crashes on instrumented GPU code: use clang 15 or later",
        );
    }
    // The device header defines all that instrumented GPU code needs of that runtime.
    let by = match runtime(&clang.path) {
        Some(runtime) => format!("profile runtime for GPUs {}", runtime.display()),
        None => "GPU code uses rocov's device header".to_owned(),
    };
    Finding::ok("compiler", format!("{found}; {by}; {}", counters(clang)))
}

/// The best counters of this compiler.
fn counters(clang: &Clang) -> String {
    let plugin =
        DeviceCompiler::new(clang, &[]).and_then(|compiler| fast_counters::plugin(&compiler));
    match plugin {
        Ok(Some(plugin)) => format!("fast counters by {}", plugin.display()),
        _ if clang.llvm < fast_counters::OLDEST => "LLVM's own counters".to_owned(),
        _ => format!(
            "LLVM's own counters (`rocov pass build --clang {}` builds a plugin for fast ones)",
            clang.path.display()
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

/// LLVM's tools, with the raw versions that they say. rocov needs none.
pub(crate) fn tools(installed: &Result<LlvmTools>, is_chosen: bool) -> Vec<Finding> {
    let installed = match installed {
        Ok(installed) => installed,
        Err(error) if is_chosen => {
            return vec![Finding::missing(
                "LLVM tools",
                explained(error).what(),
                "leave out --llvm-bin: rocov needs none",
            )];
        }
        Err(_) => {
            return vec![Finding::ok(
                "LLVM tools",
                "none, and rocov needs none: it reads and merges profiles itself",
            )];
        }
    };
    let findings = installed.all().iter().map(|tools| {
        let place = tools.profdata.display();
        match tools.raw_version {
            Some(version) => Finding::ok(
                "LLVM tools",
                format!("LLVM {}, raw version {version}, {place}", tools.llvm),
            ),
            None => Finding::ok("LLVM tools", format!("LLVM {}, {place}", tools.llvm)),
        }
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::checks::finding::State;

    /// A compiler that finds its runtimes.
    fn clang(directory: &Path, llvm: u32) -> Clang {
        let path = directory.join("clang++");
        let script = format!("#!/bin/sh\necho {}\n", directory.display());
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let line = format!("clang version {llvm}.0.0");
        Clang { llvm, line, path }
    }

    #[test]
    fn tools_of_llvm_are_missing_only_if_they_were_asked_for() {
        let states = |is_chosen| {
            let none = Err(anyhow::Error::msg("none"));
            let findings = tools(&none, is_chosen).into_iter();
            findings.map(|finding| finding.state).collect::<Vec<_>>()
        };
        assert_eq!(states(false), [State::Ok]);
        assert_eq!(states(true), [State::Missing]);
    }

    #[test]
    fn no_compiler_needs_the_profile_runtime_for_gpus() {
        let directory = tempfile::tempdir().unwrap();
        let finding = |llvm| clang_finding(&clang(directory.path(), llvm));
        assert_eq!(finding(14).state, State::Warning);
        for llvm in [15, 22, 23, 24] {
            let finding = finding(llvm);
            assert_eq!(finding.state, State::Ok);
            assert!(
                finding
                    .found
                    .contains("; GPU code uses rocov's device header;")
            );
        }
        let runtime = directory.path().join(RUNTIMES[0]);
        fs::create_dir_all(runtime.parent().unwrap()).unwrap();
        fs::write(&runtime, "").unwrap();
        let finding = finding(24);
        assert_eq!(finding.state, State::Ok);
        let named = format!("; profile runtime for GPUs {};", runtime.display());
        assert!(finding.found.contains(&named));
    }

    /// The compiler of the test above compiles nothing, so no plugin fits it.
    #[test]
    fn a_compiler_without_a_plugin_has_the_command_that_makes_one() {
        let directory = tempfile::tempdir().unwrap();
        let found = |llvm| clang_finding(&clang(directory.path(), llvm)).found;
        let path = directory.path().join("clang++");
        let command = format!("`rocov pass build --clang {}`", path.display());
        assert!(found(19).contains(&command), "{}", found(19));
        // The plugin needs LLVM 19.
        assert!(
            found(18).ends_with("; LLVM's own counters"),
            "{}",
            found(18)
        );
    }

    #[test]
    fn without_a_compiler_one_can_still_report() {
        assert_eq!(check(&[])[0].state, State::Warning);
    }
}
