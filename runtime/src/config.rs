//! The environment: where profiles go, what is drained, what is kept beside them, and how much is
//! said.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rocov::control::place;
use rocov::control::words::{Interval, SnapshotSignal, parse_wait};
use rocov::drain::Drainer;
use rocov::filter::Filter;
use rocov::output::{Expansion, Label, LabelError, PatternError, ProfileName};
use rocov::registry::{Keeping, Process, SettingError, clock, parse_bytes};

use crate::{log, process};

/// The name where `LLVM_PROFILE_FILE` is not set: LLVM's own.
const DEFAULT_NAME: &str = "default.profraw";

/// A variable of the environment, unless whoever chose it has fewer rights than the program.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|_| !process::is_privileged())
}

/// Whether `LLVM_PROFILE_VERBOSE` or `ROCOV_VERBOSE` is set, to anything but `0` or nothing.
pub(crate) fn verbose() -> bool {
    ["LLVM_PROFILE_VERBOSE", "ROCOV_VERBOSE"]
        .iter()
        .any(|name| variable(name).is_some_and(|value| !value.is_empty() && value != "0"))
}

/// The name for this process's profiles, from `LLVM_PROFILE_FILE`. A relative one is taken from
/// the working directory as it is now, so that a later chdir does not scatter the files.
///
/// A name that cannot be used is said and replaced by the default: counts under another name can
/// be moved, lost ones cannot be had back.
pub(crate) fn profile_name() -> ProfileName {
    if let Err(error) = label() {
        log::warn(format_args!("ROCOV_LABEL: {error}; profiles get none"));
    }
    let default = || parse_name(DEFAULT_NAME).expect("the default is a good pattern");
    let fallback = |why: &dyn Display| {
        log::warn(format_args!("{why}; writing to {DEFAULT_NAME} instead"));
        default()
    };
    let Some(pattern) = variable("LLVM_PROFILE_FILE").filter(|pattern| !pattern.is_empty()) else {
        return default();
    };
    match pattern.into_string() {
        Ok(pattern) => parse_name(&pattern).unwrap_or_else(|error| fallback(&error)),
        Err(pattern) => fallback(&format_args!("LLVM_PROFILE_FILE: {pattern:?} is not UTF-8")),
    }
}

/// The label of profiles: `ROCOV_LABEL`.
fn label() -> Result<Option<Label>, LabelError> {
    let label = variable("ROCOV_LABEL").filter(|label| !label.is_empty());
    label
        .map(|label| label.to_string_lossy().parse())
        .transpose()
}

/// Returns whether code that was never launched counts as zero: unless `ROCOV_ZERO=0`. Asked by constructors.
pub(crate) fn zero() -> bool {
    static ZERO: OnceLock<bool> = OnceLock::new();
    *ZERO.get_or_init(|| variable("ROCOV_ZERO").is_none_or(|value| value != "0"))
}

/// Whether nothing counts until the program opens a window: `ROCOV_PAUSED=1`.
pub(crate) fn paused() -> bool {
    variable("ROCOV_PAUSED").is_some_and(|value| value == "1")
}

/// Whether ROCTx ranges are labels: `ROCOV_ROCTX=1`.
pub(crate) fn roctx() -> bool {
    variable("ROCOV_ROCTX").is_some_and(|value| value == "1")
}

/// How long kernels are waited for when code is unloaded: `ROCOV_WAIT`, in seconds. Read once, as it is
/// asked for at every turn.
pub(crate) fn patience() -> Duration {
    static PATIENCE: OnceLock<Duration> = OnceLock::new();
    *PATIENCE.get_or_init(|| setting("ROCOV_WAIT", "10", parse_wait))
}

/// Who drains a program that has LLVM's own drain in it: `ROCOV_DRAIN`. Read once, as it is asked for at
/// every turn.
pub(crate) fn drainer() -> Option<Drainer> {
    static DRAINER: OnceLock<Option<Drainer>> = OnceLock::new();
    *DRAINER.get_or_init(|| asked("ROCOV_DRAIN", |word| word.to_string_lossy().parse()))
}

/// What is drained: `ROCOV_ONLY` and `ROCOV_SKIP`. If one of them cannot be used, that is said and
/// everything is drained: what is too much can be left out of a report.
pub(crate) fn filter() -> Filter {
    let list = |name| variable(name).unwrap_or_default();
    let [only, skip] = ["ROCOV_ONLY", "ROCOV_SKIP"].map(list);
    Filter::new(&only.to_string_lossy(), &skip.to_string_lossy()).unwrap_or_else(|error| {
        log::warn(format_args!(
            "ROCOV_ONLY, ROCOV_SKIP: {error}; everything is drained"
        ));
        Filter::default()
    })
}

/// What is kept beside profiles: `ROCOV_REGISTRY`, `ROCOV_OBJECTS` and `ROCOV_OBJECTS_MAX`.
pub(crate) fn keeping() -> Keeping {
    Keeping {
        document: setting("ROCOV_REGISTRY", "auto", str::parse),
        objects: setting("ROCOV_OBJECTS", "instrumented", str::parse),
        objects_max: setting("ROCOV_OBJECTS_MAX", "4G", parse_bytes),
    }
}

/// Where the socket is to be: `ROCOV_CONTROL`.
pub(crate) fn control_directory() -> Option<PathBuf> {
    let runtime = variable("XDG_RUNTIME_DIR");
    asked("ROCOV_CONTROL", |wanted| {
        place::directory(wanted, runtime.as_deref(), process::user())
    })
    .flatten()
}

/// How often counts are drained: `ROCOV_SNAPSHOT_EVERY`.
pub(crate) fn snapshot_every() -> Option<Duration> {
    let every = asked("ROCOV_SNAPSHOT_EVERY", |word| {
        word.to_string_lossy().parse::<Interval>()
    });
    every.map(|Interval(every)| every)
}

/// The number of the signal on which they are: `ROCOV_SNAPSHOT_SIGNAL`.
pub(crate) fn snapshot_signal() -> Option<i32> {
    let signal = asked("ROCOV_SNAPSHOT_SIGNAL", |word| {
        word.to_string_lossy().parse()
    });
    signal.map(SnapshotSignal::number)
}

/// What a variable asks for. A value that cannot be used is said, and nothing is done.
fn asked<T>(variable: &str, parse: impl Fn(&OsStr) -> Result<T, SettingError>) -> Option<T> {
    let word = self::variable(variable).filter(|word| !word.is_empty())?;
    parse(&word)
        .inspect_err(|error| log::warn(format_args!("{variable}: {error}; it is as if not set")))
        .ok()
}

/// The value of a variable. One that cannot be used is said and replaced by the default.
fn setting<T>(variable: &str, default: &str, parse: impl Fn(&str) -> Result<T, SettingError>) -> T {
    let word = self::variable(variable).filter(|word| !word.is_empty());
    let word = word.unwrap_or_else(|| default.into());
    parse(&word.to_string_lossy()).unwrap_or_else(|error| {
        log::warn(format_args!("{variable}: {error}; {default} is used"));
        parse(default).expect("the default is a good value")
    })
}

/// This process, for its registry.
pub(crate) fn process() -> Process {
    let Expansion { pid, host, .. } = expansion();
    // Each argument ends in a NUL.
    let command = fs::read("/proc/self/cmdline").unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    Process {
        pid,
        host,
        command: command.split_terminator('\0').map(String::from).collect(),
        epoch: clock::epoch(),
    }
}

/// A name pattern with the values of this process and this moment, its label, and the data directory
/// that it is of: `ROCOV_DATA`, if that is it.
pub(crate) fn parse_name(pattern: &str) -> Result<ProfileName, PatternError> {
    let directory = env::current_dir().unwrap_or_default();
    let name = ProfileName::parse(pattern, &expansion(), &directory)?;
    let name = match variable("ROCOV_DATA") {
        Some(data) => name.in_data(Path::new(&data)),
        None => name,
    };
    Ok(name.with_label(label().unwrap_or_default()))
}

fn expansion() -> Expansion {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let tmpdir = variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    Expansion {
        pid: std::process::id(),
        host: host.trim_end().to_owned(),
        tmpdir: tmpdir.to_string_lossy().trim_end_matches('/').to_owned(),
    }
}
