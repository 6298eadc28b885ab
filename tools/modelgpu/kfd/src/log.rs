//! The log (`ROCOV_MODELGPU_LOG`), messages to the user, and files of text.

use std::ffi::CString;
use std::fmt::{Arguments, Write};
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use crate::config::{Destination, LogConfig};
use crate::sys;

/// Prints a message that the user must not miss on standard error.
pub(crate) fn message(text: &str) {
    // One write per line, so that lines of several threads or processes do not mix.
    for line in text.lines() {
        sys::write(2, format!("rocov modelgpu: {line}\n").as_bytes());
    }
}

/// Opens a destination for the life of the process. If it cannot be opened, prints a message that
/// calls it `name`, and returns `None`.
pub(crate) fn open(destination: &Destination, name: &str) -> Option<RawFd> {
    let path = match destination {
        Destination::Stderr => return Some(2),
        Destination::File(path) => path,
    };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    let opened = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| sys::Errno(libc::EINVAL))
        .and_then(|path| sys::open(&path, flags));
    match opened {
        Ok(fd) => Some(fd.into_raw_fd()),
        Err(errno) => {
            let reason = std::io::Error::from_raw_os_error(errno.0);
            message(&format!("cannot open {name} {}: {reason}", path.display()));
            None
        }
    }
}

/// An open log, or none.
pub(crate) struct Log {
    fd: RawFd,
    level: u8,
    start_ns: u64,
}

impl Log {
    /// Opens the log. If the file cannot be opened, prints a message and continues without a log.
    pub(crate) fn open(config: Option<&LogConfig>) -> Self {
        let mut log = Self {
            fd: -1,
            level: 0,
            start_ns: sys::monotonic_ns(),
        };
        let Some(config) = config else {
            return log;
        };
        if let Some(fd) = open(&config.destination, "the log") {
            (log.fd, log.level) = (fd, config.level);
        }
        log
    }

    /// Writes `text` if the log's level is at least `level`.
    pub(crate) fn note(&self, level: u8, text: Arguments<'_>) {
        if level > self.level {
            return;
        }
        let ms = (sys::monotonic_ns() - self.start_ns) as f64 / 1e6;
        let mut line = String::with_capacity(160);
        let thread = sys::thread_id();
        // Writes to a string cannot fail.
        let _ = writeln!(line, "[{ms:10.3} ms thread {thread}] {text}");
        sys::write(self.fd, line.as_bytes());
    }
}
