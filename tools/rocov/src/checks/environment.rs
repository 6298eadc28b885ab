//! Checks the environment that `rocov run` would pass on to a program.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rocov::store::{Expansion, ProfileName};

use super::finding::Finding;
use crate::system::installed::{DRAIN, INJECTION_VARIABLE};

/// Looks at the variables that `variable` gives.
pub(crate) fn check(variable: impl Fn(&str) -> Option<OsString>) -> Vec<Finding> {
    let value = |name: &str| variable(name).filter(|value| !value.is_empty());
    let checks = [
        value("LD_PRELOAD").map(preload),
        value("LLVM_PROFILE_FILE").map(|value| profile_file(&value.to_string_lossy())),
        value("HSA_TOOLS_LIB").map(tools_lib),
        value(INJECTION_VARIABLE).map(injection),
    ];
    checks.into_iter().flatten().collect()
}

/// Libraries that come into every program: `rocov run` puts its own before them.
fn preload(value: OsString) -> Finding {
    let found = format!("LD_PRELOAD={}", value.display());
    let mut names = value
        .as_bytes()
        .split(|byte| *byte == b':' || byte.is_ascii_whitespace());
    let is_ours = |name: &[u8]| name.ends_with(DRAIN.as_bytes());
    if names.any(is_ours) {
        return Finding::ok(
            "environment",
            format!("{found}: programs are drained as they are started"),
        );
    }
    Finding::warning(
        "environment",
        found,
        "librocov is preloaded before these; if counts are missing and one of them interposes HSA, as tracers do, try without it",
    )
}

/// Checks the user's own name for profiles.
fn profile_file(value: &str) -> Finding {
    let found = format!("LLVM_PROFILE_FILE={value}");
    if value.contains("%c") {
        return Finding::missing(
            "environment",
            found,
            "rocov rejects %c, because device memory cannot be mapped into a file: remove it",
        );
    }
    let here = env::current_dir().unwrap_or_default();
    match ProfileName::find(value, &Expansion::default(), &here) {
        Ok(name) if name.is_nowhere() => {
            return Finding::warning(
                "environment",
                format!("{found}: no profile is written"),
                "unset the variable for counts",
            );
        }
        Err(error) if error.names_no_file() => {
            return Finding::missing("environment", error.to_string(), "or unset the variable");
        }
        _ => {}
    }
    let Some(directory) = constant_directory(value) else {
        return Finding::ok("environment", found);
    };
    match writable(&directory) {
        Ok(()) => Finding::ok("environment", found),
        Err(reason) => Finding::missing(
            "environment",
            format!("{found}: {reason}"),
            "profiles cannot be written there: make the directory writable, or unset the variable",
        ),
    }
}

/// The directory of a pattern, as far as it is the same for all processes. `%t` is left out.
fn constant_directory(pattern: &str) -> Option<PathBuf> {
    let constant = pattern.split('%').next()?;
    if constant.is_empty() && pattern.starts_with('%') {
        return None;
    }
    let end = constant.rfind('/');
    Some(match end {
        Some(0) => PathBuf::from("/"),
        Some(end) => PathBuf::from(&constant[..end]),
        None => PathBuf::from("."),
    })
}

/// Returns whether files can be made in `directory`, which librocov makes if its parents exist.
fn writable(directory: &Path) -> Result<(), String> {
    let Some(there) = directory
        .ancestors()
        .find(|ancestor| ancestor.as_os_str().is_empty() || ancestor.exists())
    else {
        return Ok(());
    };
    let there = if there.as_os_str().is_empty() {
        Path::new(".")
    } else {
        there
    };
    if !fs::metadata(there).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(format!("{} is not a directory", there.display()));
    }
    match tempfile::tempfile_in(there) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("cannot write to {}: {error}", there.display())),
    }
}

/// Tools that ROCr loads: each gets the table of HSA's functions that those before it left.
fn tools_lib(value: OsString) -> Finding {
    Finding::warning(
        "environment",
        format!("HSA_TOOLS_LIB={}", value.display()),
        "librocov runs together with these tools; if counts are missing, try without them",
    )
}

/// The tool that the CUDA driver loads. It loads one.
fn injection(value: OsString) -> Finding {
    let found = format!("{INJECTION_VARIABLE}={}", value.display());
    if value.as_bytes().ends_with(DRAIN.as_bytes()) {
        return Finding::ok("environment", found);
    }
    Finding::warning(
        "environment",
        format!("{found}: code on NVIDIA GPUs is not counted"),
        "unset the variable for counts",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::finding::State;

    fn states(name: &str, value: &str) -> Vec<State> {
        let findings = check(|variable| (variable == name).then(|| OsString::from(value)));
        findings.iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn an_empty_environment_has_nothing_to_say() {
        assert_eq!(check(|_| None), []);
        assert_eq!(states("LD_PRELOAD", ""), []);
    }

    #[test]
    fn libraries_that_are_preloaded_are_named() {
        assert_eq!(states("LD_PRELOAD", "libasan.so"), [State::Warning]);
        assert_eq!(
            states("LD_PRELOAD", "/a/librocov.so libasan.so"),
            [State::Ok]
        );
    }

    #[test]
    fn another_tool_of_the_cuda_driver_is_named() {
        let states = |value| states("CUDA_INJECTION64_PATH", value);
        assert_eq!(states("/nsys/libinjection.so"), [State::Warning]);
        assert_eq!(states("/a/librocov.so"), [State::Ok]);
    }

    #[test]
    fn profiles_must_have_a_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let place = directory.path().display();
        for (value, state) in [
            (format!("{place}/%p.profraw"), State::Ok),
            (format!("{place}/new/deep/%p.profraw"), State::Ok),
            (format!("{place}/rank-%p/x.profraw"), State::Ok),
            (format!("{place}/%c%p.profraw"), State::Missing),
            (format!("{place}/file/%p.profraw"), State::Missing),
            ("/proc/self/%p.profraw".to_owned(), State::Missing),
            ("%t/%p.profraw".to_owned(), State::Ok),
            ("%p.profraw".to_owned(), State::Ok),
        ] {
            assert_eq!(states("LLVM_PROFILE_FILE", &value), [state], "{value}");
        }
    }
}
