//! Lines on standard error, which belongs to the program: about losses, or if the user asks for more.
#![expect(unsafe_code, reason = "calls write and poll on standard error")]

use std::collections::BTreeSet;
use std::fmt::Arguments;
use std::io::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rocov::settings::variables::{PROFILE_VERBOSE, VERBOSE};
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::{environment, signal_shield};

/// The time that a line waits for a reader of a full pipe. Only the first line waits: if nobody
/// reads it, later lines do not wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// `PIPE_BUF` of Linux: a pipe takes so many bytes at once, or none of them.
const AT_ONCE: usize = 4096;

/// The number of different lines after which [`warn_once`] prints no more.
const MAX_DIFFERENT: usize = 100;

/// Prints a line. If standard error is closed or nobody reads it, the line is dropped: the program
/// neither fails nor waits forever.
pub(crate) fn warn(message: Diagnostic) {
    print(format_args!("{message}"));
}

fn print(message: Arguments<'_>) {
    let line = format!("rocov: {message}\n");
    // Constructors print without the shield of `boundary`.
    signal_shield::behind(|| write(line.as_bytes()));
}

/// Prints a line, unless it was printed before: rocov drains code objects again and again. After
/// [`MAX_DIFFERENT`] different lines it prints and remembers no more.
pub(crate) fn warn_once(message: Diagnostic) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let message = message.to_string();
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.len() == MAX_DIFFERENT || printed.contains(&message) {
        return;
    }
    print(format_args!("{message}"));
    printed.insert(message);
    if printed.len() == MAX_DIFFERENT {
        warn(diagnostic!(
            "rocov prints at most {MAX_DIFFERENT} different lines";
            "fix these first"
        ));
    }
}

/// Prints a line if `LLVM_PROFILE_VERBOSE` or `ROCOV_VERBOSE` asks for it: set, and neither empty
/// nor `0`.
pub(crate) fn verbose(message: Arguments<'_>) {
    static IS_VERBOSE: OnceLock<bool> = OnceLock::new();
    let is_set = |name: &&str| {
        environment::variable(name).is_some_and(|value| !value.is_empty() && value != "0")
    };
    let names = [PROFILE_VERBOSE.name, VERBOSE.name];
    if *IS_VERBOSE.get_or_init(|| names.iter().any(is_set)) {
        print(message);
    }
}

/// Writes while there is room. A pipe with any room has it for [`AT_ONCE`] bytes.
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

/// Returns whether a signal has interrupted the last call.
fn is_interrupted() -> bool {
    Error::last_os_error().kind() == ErrorKind::Interrupted
}

/// Returns whether standard error takes more bytes, now or soon.
fn has_room() -> bool {
    static IS_STUCK: AtomicBool = AtomicBool::new(false);
    let until = (!IS_STUCK.load(Ordering::Relaxed)).then(|| Instant::now() + PATIENCE);
    let mut request = libc::pollfd {
        fd: libc::STDERR_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.unwrap_or_default().as_millis() as i32;
        // SAFETY: one request, which outlives the call.
        match unsafe { libc::poll(&raw mut request, 1, left) } {
            0 => {
                IS_STUCK.store(true, Ordering::Relaxed);
                return false;
            }
            -1 if is_interrupted() => {}
            // A reader that has gone does not come back.
            _ => return request.revents & (libc::POLLERR | libc::POLLNVAL) == 0,
        }
    }
}
