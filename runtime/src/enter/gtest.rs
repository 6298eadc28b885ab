//! Results that GoogleTest streams. If the user asks for it (`ROCOV_GTEST=1`), its suites and tests become labels.
//!
//! Every GoogleTest program for Linux has a listener that connects to the address in `GTEST_STREAM_RESULT_TO`, and
//! writes a line to it when a suite or test begins and ends (`StreamingListener` in `gtest-internal-inl.h`). It calls
//! `write` in the thread that runs the test, so the hook here sees each event while no other code of the test runs.
//! The program needs no rebuild, and GoogleTest may be linked statically and without symbols.
#![expect(unsafe_code, reason = "defines and calls functions of the C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use rocov::store::Label;
use rocov::support::diagnostic::diagnostic;

use super::copy::send;
use super::next_symbol;
use crate::elect::event::Event;
use crate::guest::{boundary, log, settings};

type WriteFn = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;

/// The first line of a stream.
const GREETING: &[u8] = b"gtest_streaming_protocol_version=1.0\n";

/// The user does not want labels of tests, or the program labels its tests itself.
const OFF: c_int = -2;
/// No stream has begun.
const NONE: c_int = -1;

/// The file of the stream, or one of the values above.
static STREAM: AtomicI32 = AtomicI32::new(OFF);

/// The C library's `write`, or the hook of another tool. A signal handler may call `write`, but not dlsym: the
/// constructor of librocov stores it.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

static PROGRESS: Mutex<Progress> = Mutex::new(Progress {
    suite: None,
    is_labelled: false,
    pushed: None,
});

/// The place of the stream between its events.
struct Progress {
    /// The suite that has just begun, until the next event.
    suite: Option<CString>,
    /// Labels are open for the suite.
    is_labelled: bool,
    /// The label that the program has opened last by itself, if it is open.
    pushed: Option<CString>,
}

/// Finds the function behind the hook, and reads whether the user wants labels. The constructor calls this.
pub(super) fn at_load() {
    let next = next_symbol::find_behind(c"write").unwrap_or_default();
    NEXT.store(next, Ordering::Relaxed);
    if settings::gtest() {
        STREAM.store(NONE, Ordering::Relaxed);
    }
}

/// Writes. Opens and closes labels first, if the data is an event of GoogleTest's stream.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, data: *const c_void, size: usize) -> isize {
    let stream = STREAM.load(Ordering::Relaxed);
    if stream != OFF && !data.is_null() {
        // A program may pass memory that it cannot read, and expect an error: this reads only what a stream writes.
        if file == stream {
            // SAFETY: the stream's data are the bytes of a string.
            let line = unsafe { std::slice::from_raw_parts(data.cast(), size) };
            boundary::guest("a test's event", || event(line));
            // SAFETY: the caller's arguments, passed on. Nobody may read any more: that must not end the program.
            let sent = unsafe { libc::send(file, data, size, libc::MSG_NOSIGNAL) };
            // SAFETY: the pointer is valid for the life of the thread.
            if sent >= 0 || unsafe { *libc::__errno_location() } != libc::ENOTSOCK {
                return sent;
            }
        } else if stream == NONE && size == GREETING.len() {
            // SAFETY: the program's data of this size.
            let text: &[u8] = unsafe { std::slice::from_raw_parts(data.cast(), size) };
            if text == GREETING {
                STREAM.store(file, Ordering::Relaxed);
            }
        }
    }
    let next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { libc::syscall(libc::SYS_write, file, data, size) as isize };
    }
    // SAFETY: <unistd.h> declares the function with this type.
    let next = unsafe { std::mem::transmute::<*mut c_void, WriteFn>(next) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { next(file, data, size) }
}

/// Takes an event of the stream. The names in it are as in the program, without any encoding.
fn event(line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let Some(event) = line.strip_prefix("event=") else {
        return;
    };
    let (event, rest) = event.split_once('&').unwrap_or((event.trim_end(), ""));
    let name = rest
        .strip_prefix("name=")
        .map(|name| name.trim_end_matches('\n'));
    match (event, name) {
        ("TestCaseStart", Some(suite)) => suite_starts(suite),
        ("TestStart", Some(test)) if goes_on() => push(&label(test)),
        ("TestEnd", _) if goes_on() => {
            send(Event::LabelPop);
        }
        ("TestCaseEnd", _) if goes_on() => {
            progress(|progress| progress.is_labelled = false);
            send(Event::LabelPop);
        }
        ("TestProgramEnd", _) => STREAM.store(NONE, Ordering::Relaxed),
        _ => {}
    }
}

fn suite_starts(suite: &str) {
    // ctest's list often has a test for each test of GoogleTest, with its name. The label has that name already.
    if settings::label_contains(&format!("{suite}.")) {
        return;
    }
    let suite = label(suite);
    let is_own = progress(|progress| {
        let is_own = progress.pushed.as_deref() == Some(&suite);
        progress.is_labelled = !is_own;
        progress.suite = (!is_own).then(|| suite.clone());
        is_own
    });
    match is_own {
        // The listener of rocov_gtest.h has come first.
        true => STREAM.store(OFF, Ordering::Relaxed),
        false => push(&suite),
    }
}

/// Returns whether labels are open for the suite.
fn goes_on() -> bool {
    progress(|progress| {
        progress.suite = None;
        progress.is_labelled
    })
}

fn push(label: &CStr) {
    // librocov prints why a label cannot be used. That label needs a pop, too.
    send(Event::LabelPush(label.as_ptr()));
}

/// The label of a suite or test: its name, as far as it is one.
fn label(name: &str) -> CString {
    let label = Label::text_for(name);
    if label != name {
        log::warn_once(diagnostic!(
            "some test names cannot be labels, for example because they are longer than 128 bytes: rocov shortens \
            them and appends a hash";
            "use shorter test names to avoid this"
        ));
    }
    CString::new(label).unwrap_or_default()
}

/// Sees a label that the program opens by itself. If this is the listener of `rocov_gtest.h`, leaves all labels to it.
///
/// # Safety
/// `label` is null or NUL terminated.
pub(super) unsafe fn sees_push(label: *const c_char) {
    if STREAM.load(Ordering::Relaxed) == OFF || label.is_null() {
        return;
    }
    // SAFETY: NUL terminated, as the caller promises.
    let label = unsafe { CStr::from_ptr(label) };
    let is_listener = progress(|progress| {
        progress.pushed = Some(label.to_owned());
        progress.suite.take().as_deref() == Some(label)
    });
    if is_listener {
        STREAM.store(OFF, Ordering::Relaxed);
        send(Event::LabelPop);
    }
}

/// Sees that the program closes a label.
pub(super) fn sees_pop() {
    if STREAM.load(Ordering::Relaxed) != OFF {
        progress(|progress| progress.pushed = None);
    }
}

fn progress<T>(change: impl FnOnce(&mut Progress) -> T) -> T {
    change(&mut PROGRESS.lock().unwrap_or_else(PoisonError::into_inner))
}
