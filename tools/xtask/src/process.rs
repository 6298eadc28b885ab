//! The programs that a command runs: in the repository, with the environment of the user.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::{Failure, Outcome, repository, target};

/// Returns a command that starts a program in the repository's root. A program with a slash is one of the repository.
#[must_use]
pub fn program(name: &str) -> Command {
    let mut command = if name.contains('/') {
        Command::new(repository(name))
    } else {
        Command::new(name)
    };
    command.current_dir(repository(""));
    // `cargo run` describes this crate to its program. Tests must not see that.
    for (variable, _) in std::env::vars_os() {
        if is_of_cargo_run(&variable) {
            command.env_remove(variable);
        }
    }
    if let Some(folders) = std::env::var_os("LD_LIBRARY_PATH") {
        let toolchain = std::env::var_os("CARGO").map(PathBuf::from);
        let toolchain = toolchain.and_then(|cargo| Some(cargo.parent()?.parent()?.to_owned()));
        let own: Vec<_> = toolchain.into_iter().chain([target()]).collect();
        let kept = outside(&folders, &own);
        if kept.is_empty() {
            command.env_remove("LD_LIBRARY_PATH");
        } else {
            command.env("LD_LIBRARY_PATH", kept);
        }
    }
    command
}

/// Returns a cargo command with its arguments.
#[must_use]
pub fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = program("cargo");
    command.args(arguments);
    command
}

/// Returns a command that runs another one with the time that no other process needs.
#[must_use]
pub fn in_background(command: &Command) -> Command {
    let mut niced = program("nice");
    niced.args(["-n", "19"]).arg(command.get_program());
    niced.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => niced.env(name, value),
            None => niced.env_remove(name),
        };
    }
    niced
}

/// Returns whether `cargo run` sets a variable for the program that it starts.
fn is_of_cargo_run(variable: &OsStr) -> bool {
    let Some(name) = variable.to_str() else {
        return false;
    };
    name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || matches!(name, "CARGO" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE")
}

/// Returns the folders of a list that are not below one of `others`.
fn outside(list: &OsStr, others: &[PathBuf]) -> OsString {
    let is_kept = |path: &PathBuf| !others.iter().any(|other| path.starts_with(other));
    let folders = std::env::split_paths(list).filter(is_kept);
    std::env::join_paths(folders).unwrap_or_default()
}

/// Runs a command with the terminal of this process.
///
/// # Errors
///
/// Fails if the command cannot be started, or fails.
pub fn run(command: &mut Command) -> Outcome {
    let status = command
        .status()
        .map_err(|error| cannot_start(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(command))
    }
}

/// Runs a command and returns what it printed, and whether it succeeded. Both streams are one text. Lines go to `log`
/// as they come.
///
/// # Errors
///
/// Fails if the command cannot be started, or the log cannot be written.
pub fn run_logged(command: &mut Command, log: &mut dyn Write) -> Outcome<bool> {
    let (child, reader) = started(command)?;
    let mut child = child;
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    let broken = |error| Failure::Check(format!("{}: {error}", shown(command)));
    while reader.read_until(b'\n', &mut line).map_err(broken)? > 0 {
        log.write_all(&line).map_err(broken)?;
        line.clear();
    }
    let status = child.wait().map_err(broken)?;
    Ok(status.success())
}

/// Runs a command, and writes what it prints to `log`.
///
/// # Errors
///
/// Fails if the command cannot be started, or fails.
pub fn run_into(command: &mut Command, log: &mut dyn Write) -> Outcome {
    if run_logged(command, log)? {
        Ok(())
    } else {
        Err(failed(command))
    }
}

/// Starts a command whose streams are one pipe.
fn started(command: &mut Command) -> Outcome<(Child, io::PipeReader)> {
    let piped = || {
        let (reader, writer) = io::pipe()?;
        Ok((reader, writer.try_clone()?, writer))
    };
    let (reader, out, error) = piped().map_err(|error| cannot_start(command, &error))?;
    command.stdin(Stdio::null()).stdout(out).stderr(error);
    let child = command
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    // The command's ends of the pipe: else the pipe never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((child, reader))
}

/// Writes to standard output and to a file.
pub struct Tee(
    /// The file.
    pub File,
);

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        // Nobody may read the output; the log has it.
        let _ = io::stdout().write_all(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns whether a program can be started.
#[must_use]
pub fn is_here(name: &str) -> bool {
    run_quietly(program(name).arg("--version"))
}

/// Runs a command without its output, and returns whether it succeeded.
pub fn run_quietly(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the failure of a command.
#[must_use]
pub fn failed(command: &Command) -> Failure {
    Failure::Check(format!("{} failed", shown(command)))
}

fn cannot_start(command: &Command, error: &io::Error) -> Failure {
    Failure::Check(format!("cannot start {}: {error}", shown(command)))
}

/// Returns a command as a user would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_cargo_run_are_known() {
        for name in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
            assert!(is_of_cargo_run(OsStr::new(name)), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_INCREMENTAL",
            "PATH",
        ] {
            assert!(!is_of_cargo_run(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn folders_of_cargo_run_leave_the_path_of_libraries() {
        let list = "/r/target/debug/deps:/r/target/debug:/opt/rocm/lib:/r/targets:/rust/stable/lib";
        let own = ["/r/target", "/rust/stable"].map(PathBuf::from);
        let kept = outside(OsStr::new(list), &own);
        assert_eq!(kept, "/opt/rocm/lib:/r/targets");
        assert_eq!(outside(OsStr::new("/r/target"), &own), "");
    }

    #[test]
    fn both_streams_of_a_command_are_logged_and_its_failure_is_returned() {
        let mut log = Vec::new();
        let mut shell = program("sh");
        shell.args(["-c", "echo one; echo two >&2; exit 3"]);
        assert_eq!(run_logged(&mut shell, &mut log), Ok(false));
        assert_eq!(String::from_utf8_lossy(&log), "one\ntwo\n");
        assert_eq!(run_logged(&mut program("true"), &mut log), Ok(true));
    }

    #[test]
    fn a_failed_command_is_named_as_it_was_typed() {
        let mut command = program("sh");
        let failure = run(command.args(["-c", "exit 1"])).expect_err("it fails");
        assert_eq!(failure.to_string(), "sh -c exit 1 failed");
        let failure = run(&mut program("no-such-program")).expect_err("it is not there");
        assert!(
            failure
                .to_string()
                .starts_with("cannot start no-such-program: "),
            "{failure}"
        );
    }

    #[test]
    fn a_command_in_the_background_keeps_its_arguments_and_variables() {
        let mut command = program("sh");
        command.args(["-c", "echo $SHOWN; nice"]).env("SHOWN", "5");
        let mut log = Vec::new();
        assert_eq!(run_logged(&mut in_background(&command), &mut log), Ok(true));
        assert_eq!(String::from_utf8_lossy(&log), "5\n19\n");
    }
}
