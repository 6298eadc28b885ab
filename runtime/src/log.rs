//! Standard error, which is the program's: used when something is lost, or when asked for.

use std::fmt::Arguments;
use std::io::{Error, ErrorKind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::shield;

/// How long a line waits for somebody to read what is in a full pipe. Once: where nobody does, later lines
/// do not wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// `PIPE_BUF` of Linux: what goes into a pipe at once, in bytes, or not at all.
const AT_ONCE: usize = 4096;

/// Says that something is lost. One line. Where standard error is closed, or nobody reads it, that is no
/// reason to fail, or to wait for ever.
pub(crate) fn warn(message: Arguments<'_>) {
    let line = format!("rocov: {message}\n");
    // Also here, for what is said by constructors.
    shield::behind(&mut || write(line.as_bytes()));
}

/// Says what happens, where `LLVM_PROFILE_VERBOSE` or `ROCOV_VERBOSE` asks for it.
pub(crate) fn verbose(message: Arguments<'_>) {
    static VERBOSE: OnceLock<bool> = OnceLock::new();
    if *VERBOSE.get_or_init(crate::config::verbose) {
        warn(message);
    }
}

/// Writes as long as there is room: a pipe that has any has it for so many bytes.
fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() && has_room() {
        let part = &bytes[..bytes.len().min(AT_ONCE)];
        // SAFETY: reads the bytes of `part`.
        let written = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) if is_interrupted() => {}
            Err(_) => return,
        }
    }
}

/// Why a call has failed.
fn is_interrupted() -> bool {
    Error::last_os_error().kind() == ErrorKind::Interrupted
}

/// Whether standard error takes more, now or soon.
fn has_room() -> bool {
    static IS_STUCK: AtomicBool = AtomicBool::new(false);
    let until = (!IS_STUCK.load(Ordering::Relaxed)).then(|| Instant::now() + PATIENCE);
    let mut waited_for = libc::pollfd {
        fd: libc::STDERR_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.unwrap_or_default().as_millis() as i32;
        // SAFETY: one description, that lives.
        match unsafe { libc::poll(&raw mut waited_for, 1, left) } {
            0 => {
                IS_STUCK.store(true, Ordering::Relaxed);
                return false;
            }
            -1 if is_interrupted() => {}
            // A reader that is gone does not come back.
            _ => return waited_for.revents & (libc::POLLERR | libc::POLLNVAL) == 0,
        }
    }
}
