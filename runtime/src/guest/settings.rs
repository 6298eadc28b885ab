//! The settings of the environment: the names of profiles, the code to drain, the files to keep beside
//! profiles, and the requests from outside.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rocov::control::socket_path;
use rocov::discover::filter::Filter;
use rocov::settings::variables::{
    CONTROL, DATA, DRAIN, GTEST, INSTRUMENT, LABEL, ONLY, PAUSED, PROFILE_FILE, ROCTX, SKIP,
    SNAPSHOT_EVERY, SNAPSHOT_SIGNAL, WAIT, XDG_RUNTIME_DIR, ZERO,
};
use rocov::settings::{
    Counting, Drainer, Interval, Keeping, Setting, SettingError, SnapshotSignal, parse_wait,
};
use rocov::store::{Expansion, Label, LabelError, PatternError, Process, ProfileName};
use rocov::support::clock;
use rocov::support::diagnostic::{Diagnostic, Remedy, diagnostic};

use super::environment::variable;
use super::journal::{self, Note};
use super::{log, process, process_word};

/// Returns the name for this process's profiles, from `LLVM_PROFILE_FILE`. A relative name starts at
/// the present working directory, so that a later chdir does not scatter the files.
///
/// Prints a line about a name that cannot be used, and takes the default: you can move counts under
/// another name, but not get lost ones back. If the name is that of a device or a directory, no other name is
/// what the user means: then nothing is written.
pub(crate) fn profile_name() -> ProfileName {
    if let Err(error) = label() {
        let message = error.diagnostic().so("rocov leaves the label out");
        log::warn(message.within(LABEL));
    }
    let default =
        || parse_name(PROFILE_FILE.default.literal()).expect("the default is a good pattern");
    let fallback = |why: Diagnostic| {
        let usual = PROFILE_FILE.default.literal();
        let message = why.so(format_args!("rocov writes to {usual} instead"));
        log::warn(message.within(PROFILE_FILE));
        default()
    };
    let Some(pattern) = variable(PROFILE_FILE.name).filter(|pattern| !pattern.is_empty()) else {
        return default();
    };
    match pattern.into_string() {
        Ok(pattern) => match parse_name(&pattern) {
            Ok(name) => name,
            Err(error) if error.names_no_file() => {
                let effect = "rocov writes nothing, and the counts of this process are lost";
                log::warn(error.diagnostic().so(effect).within(PROFILE_FILE));
                journal::note(Note::Lost);
                ProfileName::nowhere()
            }
            Err(error) => fallback(error.diagnostic()),
        },
        Err(pattern) => fallback(diagnostic!("{pattern:?} is not UTF-8"; "use another name")),
    }
}

/// Returns the label of profiles: `ROCOV_LABEL`.
fn label() -> Result<Option<Label>, LabelError> {
    let label = variable(LABEL.name).filter(|label| !label.is_empty());
    label
        .map(|label| label.to_string_lossy().parse())
        .transpose()
}

/// Returns whether code that was never launched counts as zero: unless `ROCOV_ZERO=0`. Constructors
/// call this.
pub(crate) fn zero() -> bool {
    static IS_ZERO: OnceLock<bool> = OnceLock::new();
    *IS_ZERO.get_or_init(|| flag(&ZERO, |value| value != "0"))
}

/// Returns whether nothing counts until the program opens a window: `ROCOV_PAUSED=1`.
pub(crate) fn paused() -> bool {
    flag(&PAUSED, |value| value == "1")
}

/// Returns whether ROCTx ranges are labels: `ROCOV_ROCTX=1`.
pub(crate) fn roctx() -> bool {
    flag(&ROCTX, |value| value == "1")
}

/// Returns whether tests that GoogleTest streams are labels: `ROCOV_GTEST=1`. Constructors call this.
pub(crate) fn gtest() -> bool {
    flag(&GTEST, |value| value == "1")
}

/// Returns whether the label of profiles (`ROCOV_LABEL`) contains this text.
pub(crate) fn label_contains(text: &str) -> bool {
    variable(LABEL.name).is_some_and(|label| label.to_string_lossy().contains(text))
}

/// Returns the counters that GPU code gets while it is loaded: `ROCOV_INSTRUMENT`. `None` if it stays as it is.
/// Reads the variable once, because every load needs it.
pub(crate) fn instrument() -> Option<Counting> {
    static COUNTING: OnceLock<Option<Counting>> = OnceLock::new();
    *COUNTING.get_or_init(|| setting(&INSTRUMENT, Counting::parse))
}

/// Returns whether `is_on` accepts the value of a variable, or the default.
fn flag(setting: &Setting, is_on: impl Fn(&OsStr) -> bool) -> bool {
    match variable(setting.name) {
        Some(value) if !value.is_empty() => is_on(&value),
        _ => is_on(setting.default.literal().as_ref()),
    }
}

/// Returns the time to wait for kernels: `ROCOV_WAIT`, in seconds. Reads the variable once, because
/// every drain needs it.
pub(crate) fn patience() -> Duration {
    static PATIENCE: OnceLock<Duration> = OnceLock::new();
    *PATIENCE.get_or_init(|| setting(&WAIT, parse_wait))
}

/// Returns who drains a program with LLVM's own drain in it: `ROCOV_DRAIN`. Reads the variable once,
/// because every drain needs it.
pub(crate) fn drainer() -> Option<Drainer> {
    static DRAINER: OnceLock<Option<Drainer>> = OnceLock::new();
    *DRAINER.get_or_init(|| optional(&DRAIN, |word| word.to_string_lossy().parse()))
}

/// Returns the filter of files to drain: `ROCOV_ONLY` and `ROCOV_SKIP`. If one of them cannot be used,
/// prints a line and drains everything: you can leave files out of a report later.
pub(crate) fn filter() -> Filter {
    let [only, skip] = [ONLY, SKIP].map(|setting| variable(setting.name).unwrap_or_default());
    Filter::new(&only.to_string_lossy(), &skip.to_string_lossy()).unwrap_or_else(|error| {
        let message = error.diagnostic().so("rocov drains everything");
        log::warn(message.within(format_args!("{ONLY}, {SKIP}")));
        Filter::default()
    })
}

/// Returns whether `ROCOV_ONLY` or `ROCOV_SKIP` is set.
pub(crate) fn has_filter() -> bool {
    let is_set = |setting: &Setting| variable(setting.name).is_some_and(|value| !value.is_empty());
    [ONLY, SKIP].iter().any(is_set)
}

/// Returns the files to keep beside profiles: `ROCOV_REGISTRY`, `ROCOV_OBJECTS` and
/// `ROCOV_OBJECTS_MAX`.
pub(crate) fn keeping() -> Keeping {
    Keeping::from_variables(variable, warn)
}

/// Returns the directory of the control socket: `ROCOV_CONTROL`.
pub(crate) fn control_directory() -> Option<PathBuf> {
    let runtime = variable(XDG_RUNTIME_DIR.name);
    optional(&CONTROL, |wanted| {
        socket_path::directory(wanted, runtime.as_deref(), process::effective_user_id())
    })
    .flatten()
}

/// Returns the time between snapshots: `ROCOV_SNAPSHOT_EVERY`.
pub(crate) fn snapshot_every() -> Option<Duration> {
    let every = optional(&SNAPSHOT_EVERY, |word| {
        word.to_string_lossy().parse::<Interval>()
    });
    every.map(|Interval(every)| every)
}

/// Returns the number of the signal that asks for a snapshot: `ROCOV_SNAPSHOT_SIGNAL`.
pub(crate) fn snapshot_signal() -> Option<i32> {
    let signal = optional(&SNAPSHOT_SIGNAL, |word| word.to_string_lossy().parse());
    signal.map(SnapshotSignal::number)
}

/// Returns the value of an optional variable. Prints a line about a value that cannot be used, and
/// ignores it.
fn optional<T>(setting: &Setting, parse: impl Fn(&OsStr) -> Result<T, SettingError>) -> Option<T> {
    let word = variable(setting.name).filter(|word| !word.is_empty())?;
    parse(&word)
        .inspect_err(|error| log::warn(error.diagnostic().so("rocov ignores it").within(setting)))
        .ok()
}

/// Returns the value of a variable, or the default. Prints a line about a value that cannot be used,
/// and takes the default.
fn setting<T>(setting: &Setting, parse: impl Fn(&str) -> Result<T, SettingError>) -> T {
    setting.value(variable(setting.name).as_deref(), parse, |error| {
        warn(setting, error)
    })
}

/// Prints a line about a value that cannot be used.
fn warn(setting: &Setting, error: &SettingError) {
    let default = setting.default.literal();
    let message = error.diagnostic().so(format_args!("rocov uses {default}"));
    log::warn(message.within(setting));
}

/// Returns this process, for its registry.
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

/// Parses a name pattern, with the values of this process and this moment. Adds the label, and the data
/// directory if `ROCOV_DATA` is set.
///
/// # Errors
/// Fails if the pattern is not valid.
pub(crate) fn parse_name(pattern: &str) -> Result<ProfileName, PatternError> {
    let directory = env::current_dir().unwrap_or_default();
    let name = ProfileName::find(pattern, &expansion(), &directory)?;
    let name = match variable(DATA.name) {
        Some(data) => name.in_data(Path::new(&data)),
        None => name,
    };
    Ok(name.with_label(label().unwrap_or_default()))
}

fn expansion() -> Expansion {
    Expansion::for_process(std::process::id(), process_word::word(), variable("TMPDIR"))
}
