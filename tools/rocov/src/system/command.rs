//! Runs other programs, with errors that show the whole command.

use std::ffi::OsStr;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, Command, Output, Stdio};

use anyhow::{Context, Result};
use rocov::support::diagnostic::fail;

use crate::support::temporary;

/// Runs `command` and captures its output.
///
/// # Errors
///
/// Fails if it cannot be run or fails; with the command and the end of its messages.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    let output = ended(command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        fail!(
            "{} failed ({}): {}", display(command), output.status, one_line(&said);
            "fix what it reports"
        );
    }
    Ok(output)
}

/// Runs `command` and captures its output, even if it fails.
///
/// # Errors
///
/// Fails if it cannot be run.
pub(crate) fn ended(command: &mut Command) -> Result<Output> {
    command
        .output()
        .with_context(|| format!("cannot run {}", display(command)))
}

/// The reason that a tool of LLVM gives for its failure: the text after `error: ` in the first line
/// that has it, else all of it.
pub(crate) fn reason(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find_map(|line| line.split_once("error: "));
    error.map_or_else(|| one_line(&said), |(_, reason)| reason.trim().to_owned())
}

/// Runs `command`, and calls `consume` to read its output as it comes. Returns its messages on standard
/// error too.
///
/// # Errors
///
/// Fails if it cannot be run or fails, with the command and the end of its messages; or if `consume`
/// fails.
pub(crate) fn read<T>(
    command: &mut Command,
    consume: impl FnOnce(ChildStdout) -> Result<T>,
) -> Result<(T, String)> {
    // In a file, as it may say more than a pipe holds while its output is read.
    let mut said = temporary::unnamed()?;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(said.try_clone().context("cannot use a temporary file")?)
        .spawn()
        .with_context(|| format!("cannot run {}", display(command)))?;
    let stdout = child
        .stdout
        .take()
        .context("the child process has no pipe")?;
    let consumed = consume(stdout);
    let status = child.wait().context("cannot wait for a command")?;
    let mut text = Vec::new();
    said.rewind()
        .and_then(|()| said.read_to_end(&mut text))
        .context("cannot read a temporary file")?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if !status.success() && status.signal() != Some(libc::SIGPIPE) {
        fail!("{} failed ({status}): {}", display(command), one_line(&text); "fix what it reports");
    }
    Ok((consumed?, text))
}

/// The command as it can be pasted into a shell.
pub(crate) fn display(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quoted)
        .collect();
    format!("`{}`", words.join(" "))
}

/// The word as it can be pasted into a shell.
pub(crate) fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn one_line(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_and_what_it_said() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo 'it''s second' >&2; exit 3"]);
        let message = output(&mut command).unwrap_err().to_string();
        assert!(message.starts_with("`sh -c 'echo first"), "{message}");
        assert!(
            message.ends_with("first; its second; fix what it reports"),
            "{message}"
        );
        assert!(message.contains("exit status: 3"), "{message}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, expected) in [
            ("a-b/c.d=1", "a-b/c.d=1"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
    }
}
