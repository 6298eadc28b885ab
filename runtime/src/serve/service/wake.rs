//! Functions that wake the thread and wait for it. They are async-signal-safe, for signal handlers.
//!
//! The thread polls a pipe. Handlers wait on a word (a futex). Several may wait, each for the drain that it
//! has asked for.
#![expect(unsafe_code, reason = "calls pipe, read, write and futex")]

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::owned_fd::OwnedFd;

/// The ends of the pipe, for reading and for writing. An eventfd would be one descriptor, but looks like
/// any other eventfd.
static PIPE: OnceLock<[OwnedFd; 2]> = OnceLock::new();
/// Set while a thread polls the pipe.
static IS_POLLED: AtomicBool = AtomicBool::new(false);
/// The number of drains that handlers have requested.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// The number of the last such drain that is done.
static DONE: AtomicU32 = AtomicU32::new(0);

/// Makes the pipe. Returns false if that fails.
pub(super) fn open() -> bool {
    let mut ends = [-1; 2];
    // SAFETY: stores two numbers, the size of `ends`.
    unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
    let [Some(read), Some(write)] = ends.map(OwnedFd::new) else {
        return false;
    };
    let is_set = PIPE.set([read, write]).is_ok();
    IS_POLLED.store(is_set, Ordering::Release);
    is_set
}

/// Returns the pipe if a thread polls it and both ends are still ours.
fn ends() -> Option<[RawFd; 2]> {
    let [read, write] = PIPE.get().filter(|_| IS_POLLED.load(Ordering::Acquire))?;
    Some([read.get()?, write.get()?])
}

/// Returns the descriptor for the thread to poll; `None` if the program has closed it.
pub(super) fn event() -> Option<RawFd> {
    ends().map(|[read, _]| read)
}

/// Wakes the thread. Returns false if there is none.
pub(super) fn wake() -> bool {
    let Some([_, write]) = ends() else {
        return false;
    };
    // SAFETY: writes one byte of a string. A full pipe wakes the thread, too.
    unsafe { libc::write(write, c"".as_ptr().cast(), 1) };
    true
}

/// Empties the pipe. A later wake fills it again.
pub(super) fn clear() {
    let mut bytes = [0_u8; 64];
    if let Some(read) = event() {
        // SAFETY: reads no more bytes than `bytes` has.
        unsafe { libc::read(read, bytes.as_mut_ptr().cast(), bytes.len()) };
    }
}

/// Returns the number of the drain that a handler waits for; `None` if none does.
pub(super) fn wanted() -> Option<u32> {
    let wanted = WANTED.load(Ordering::Acquire);
    (wanted != DONE.load(Ordering::Relaxed)).then_some(wanted)
}

/// Reports that the drain of this number, and all before it, are done.
pub(super) fn done(wanted: u32) {
    DONE.store(wanted, Ordering::Release);
    // SAFETY: wakes all that wait on the word.
    unsafe {
        futex(
            libc::FUTEX_WAKE,
            c_int::MAX.cast_unsigned(),
            std::ptr::null(),
        )
    };
}

/// Asks for a drain, and waits for it no longer than `patience`.
pub(super) fn drain_within(patience: Duration) {
    let mine = WANTED.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    if !wake() {
        return;
    }
    let until = Instant::now() + patience;
    loop {
        let done = DONE.load(Ordering::Acquire);
        let left = until.saturating_duration_since(Instant::now());
        if done.wrapping_sub(mine).cast_signed() >= 0 || left.is_zero() {
            return;
        }
        let left = libc::timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: waits while the word has this value, no longer than the given time. Other signals and
        // another value end the wait; then the loop reads the word again.
        unsafe { futex(libc::FUTEX_WAIT, done, &raw const left) };
    }
}

/// Calls futex(2) on [`DONE`].
///
/// # Safety
/// The operation reads only [`DONE`] and `timeout`.
unsafe fn futex(operation: c_int, value: u32, timeout: *const libc::timespec) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_futex, DONE.as_ptr(), operation, value, timeout) };
}

/// Notes that there is no thread any more.
pub(super) fn forget() {
    IS_POLLED.store(false, Ordering::Relaxed);
}

/// Closes the pipe, because there is no thread, or this is the child of a fork.
pub(super) fn close() {
    if IS_POLLED.swap(false, Ordering::Relaxed) {
        PIPE.get().into_iter().flatten().for_each(|end| end.close());
    }
}
