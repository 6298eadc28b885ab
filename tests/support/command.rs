//! Commands under test, run to their end within a time limit. `Ended` keeps their whole output.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use super::artifacts::{built, temporary_directory};

/// The time limit of a command in seconds. It stops a kernel that never ends; a busy machine stays
/// far below it.
const LIMIT_SECONDS: u32 = 600;

/// The exit status of `timeout` at the limit.
const TIMED_OUT: i32 = 124;

/// The result of a command.
#[derive(Clone)]
pub struct Ended {
    line: String,
    /// The exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error without ROCr's lines about [`Ended::leaked_signals`].
    pub stderr: String,
    /// The number of missing signals by ROCr's own count, if it counts them. Debian's ROCr 7.2.4
    /// counts, and always misses some of its own signals after a kernel launch.
    pub leaked_signals: u64,
}

/// `program` under the time limit, which also ends the program's children.
pub fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg(LIMIT_SECONDS.to_string());
    command.arg(program);
    // Not in the home of whoever runs the tests.
    command.env("XDG_CACHE_HOME", temporary_directory());
    command
}

/// `rocov run` of the command that the caller appends, on the given GPUs, if any.
pub fn rocov_run(gpu: Option<&str>, data: &Path) -> Command {
    let mut command = limited(built("rocov"));
    command.arg("run");
    if let Some(gpu) = gpu {
        command.args(["--gpu", gpu]);
    }
    command.arg("-o").arg(data).arg("--");
    command
}

/// The line of `rocov run` on the given GPUs, if any, about a program that used none. `rocov: ` is before it.
pub fn no_use(gpu: Option<&str>) -> &'static str {
    let drivers = ["/dev/kfd", "/dev/nvidiactl"];
    if gpu.is_some() || drivers.iter().any(|driver| Path::new(driver).exists()) {
        "nothing was drained: no process used a GPU; check the command and its arguments"
    } else {
        "nothing was drained: no process used a GPU, and this machine has none (no /dev/kfd, no /dev/nvidiactl); run \
         the program on a machine with a GPU, or use --gpu model if its code is for AMD GPUs"
    }
}

/// Copies a program that a test starts. Another process does so, because a child that this one starts in the meantime has the
/// file open for writing until it runs a program of its own. Nobody can start the copy as long.
pub fn copy_program(from: &Path, to: &Path) {
    run(Command::new("cp").arg(from).arg(to)).success();
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
    let (stderr, leaked_signals) = without_leaks(&String::from_utf8_lossy(&output.stderr));
    let ended = Ended {
        line,
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr,
        leaked_signals,
    };
    assert_ne!(
        ended.status.code(),
        Some(TIMED_OUT),
        "not done after {LIMIT_SECONDS} s: {ended}"
    );
    ended
}

/// Runs a command that has one answer in this process, unless it ran before. Tests ask compilers and scripts for flags
/// and versions hundreds of times, and each start of a compiler takes longer than most tests' own work.
pub fn run_once(command: &mut Command) -> Ended {
    static ANSWERS: Mutex<BTreeMap<String, Ended>> = Mutex::new(BTreeMap::new());
    // A command that fails its test leaves the other answers whole.
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = answers.entry(line(command)).or_insert_with(|| run(command));
    answer.clone()
}

/// Removes ROCr's lines about leaked signals from a text. Returns their number too.
pub fn without_leaks(text: &str) -> (String, u64) {
    let mut rest = String::new();
    let mut leaked = 0;
    for line in text.split_inclusive('\n') {
        let number = line
            .strip_prefix("Warning: Resource leak detected by SharedSignalPool, ")
            .and_then(|line| line.strip_suffix(" Signals leaked.\n"));
        match number.and_then(|number| number.parse::<u64>().ok()) {
            Some(number) => leaked += number,
            None => rest.push_str(line),
        }
    }
    (rest, leaked)
}

impl Ended {
    /// Returns whether the command had this argument.
    pub fn ran_with(&self, argument: &str) -> bool {
        self.line.split(' ').any(|word| word == argument)
    }

    /// Expects exit status 0.
    #[track_caller]
    pub fn success(self) -> Self {
        self.with_status(0)
    }

    /// Expects this exit status.
    #[track_caller]
    pub fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status.code(), Some(status), "{self}");
        self
    }

    /// Expects all of these on standard error.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "nothing about {word:?} on standard error: {self}"
            );
        }
        self
    }

    /// Expects nothing on standard error.
    #[track_caller]
    pub fn silently(self) -> Self {
        assert_eq!(self.stderr, "", "standard error is not empty: {self}");
        self
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} ({})", self.line, self.status)?;
        writeln!(f, "--- standard output\n{}", self.stdout)?;
        write!(f, "--- standard error\n{}", self.stderr)
    }
}

/// The command as a shell line.
fn line(command: &Command) -> String {
    let mut line = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _ = write!(line, "{}={value:?} ", name.to_string_lossy());
        }
    }
    line.push_str(&command.get_program().to_string_lossy());
    for argument in command.get_args() {
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}
