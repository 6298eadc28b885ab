//! Finds the socket of a process, by the environment that it was started with.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::control::socket_path;
use rocov::settings::variables::{CONTROL, XDG_RUNTIME_DIR};
use rocov::support::diagnostic::fail;

use crate::support::failure::failure;

/// A process that runs.
pub(super) struct Process {
    pid: u32,
    /// Its user.
    owner: u32,
    /// The environment that it was started with; empty if it has overwritten that.
    environment: Vec<u8>,
}

impl Process {
    /// Looks for process `pid`.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or it is another user's. Removes the socket of a process that is gone.
    pub(super) fn find(pid: u32) -> Result<Self> {
        let directory = Path::new("/proc").join(pid.to_string());
        let Ok(metadata) = directory.metadata() else {
            let left = socket(|name| env::var_os(name), own_user()?, pid)?;
            match left.filter(|path| is_socket(path) && is_stale(path)) {
                None => fail!("there is no process {pid}"; "check the PID"),
                Some(left) => {
                    remove(&left)?;
                    fail!(
                        "there is no process {pid}";
                        "check the PID; rocov removed its socket: {}", left.display()
                    );
                }
            }
        };
        let owner = metadata.uid();
        let environment = match fs::read(directory.join("environ")) {
            Ok(environment) => environment,
            Err(_) if ![0, owner].contains(&own_user()?) => return Err(not_yours(pid, owner)),
            Err(error) => return Err(not_shown(pid, error)),
        };
        Ok(Self {
            pid,
            owner,
            environment,
        })
    }

    /// The path of the socket that it listens on, which is there.
    ///
    /// # Errors
    ///
    /// Fails if it listens on none.
    pub(super) fn socket(&self) -> Result<PathBuf> {
        let pid = self.pid;
        let wanted = self.variable(CONTROL.name).is_some();
        let path = socket(|name| self.variable(name), self.owner, pid)?;
        match path {
            Some(path) if is_socket(&path) => Ok(path),
            Some(path) if wanted => {
                fail!(
                    "process {pid} does not listen on {}: it has not loaded GPU code yet, or it cannot create its \
                    socket",
                    path.display();
                    "see its standard error"
                )
            }
            _ => {
                fail!("process {pid} has no control socket"; "start it with `rocov run --control`")
            }
        }
    }

    /// The error that the process is not this user's.
    pub(super) fn not_yours(&self) -> anyhow::Error {
        not_yours(self.pid, self.owner)
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let mut variables = self.environment.split(|byte| *byte == 0);
        let value = variables.find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?;
            value.strip_prefix(b"=")
        });
        value.map(|value| OsString::from_vec(value.to_vec()))
    }
}

/// Removes a socket that nobody listens on.
pub(super) fn remove(socket: &Path) -> Result<()> {
    fs::remove_file(socket).with_context(|| format!("cannot remove {}", socket.display()))
}

/// The error that the environment of a process of this user cannot be read.
fn not_shown(pid: u32, error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            failure!(
                "the system does not show the environment of process {pid}, as it would for a program that `rocov \
                 run --control` started for you";
                "check the PID; `pgrep -x NAME` prints that of a program by its name"
            )
        }
        _ => anyhow::Error::from(error).context(format!("cannot look at process {pid}")),
    }
}

fn not_yours(pid: u32, owner: u32) -> anyhow::Error {
    failure!("process {pid} belongs to user {owner}"; "run the command as that user or as root")
}

/// The socket of a process of this user with these variables. A process without them may have
/// overwritten its environment, as some do for a title.
fn socket(
    variable: impl Fn(&str) -> Option<OsString>,
    user: u32,
    pid: u32,
) -> Result<Option<PathBuf>> {
    let wanted = variable(CONTROL.name);
    let wanted = wanted.as_deref().unwrap_or(OsStr::new("1"));
    let directory = socket_path::directory(wanted, variable(XDG_RUNTIME_DIR.name).as_deref(), user)
        .context(CONTROL.name)?;
    Ok(directory.map(|directory| socket_path::socket(&directory, pid)))
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns whether nobody listens: a process of another PID namespace might.
fn is_stale(socket: &Path) -> bool {
    let error = UnixStream::connect(socket).err();
    error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn own_user() -> Result<u32> {
    let metadata = fs::metadata("/proc/self").context("cannot look at /proc")?;
    Ok(metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_the_system_hides_is_most_likely_another_program() {
        let error = not_shown(1, io::Error::from(ErrorKind::PermissionDenied)).to_string();
        assert!(error.ends_with("`pgrep -x NAME` prints that of a program by its name"));
        assert!(!error.contains("change its mode"), "{error}");
    }
}
