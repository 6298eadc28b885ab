//! Waking the thread, and waiting until it is done: async-signal-safe, for signal handlers.
//!
//! The thread polls a pipe. Who waits for it does so on a word (a futex): several may, each for
//! what was asked for after its own signal.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::own::Own;

/// Its ends, for reading and for writing. An eventfd would be one descriptor, but could not be told from
/// others.
static PIPE: OnceLock<[Own; 2]> = OnceLock::new();
/// Whether there is a thread that polls it.
static IS_POLLED: AtomicBool = AtomicBool::new(false);
/// How often a drain was asked for that somebody waits for.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// Which of them is done.
static DONE: AtomicU32 = AtomicU32::new(0);

/// Makes the pipe. False where there is none to be had.
pub(super) fn open() -> bool {
    let mut ends = [-1; 2];
    // SAFETY: stores two numbers, for which there is room.
    unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
    let [Some(read), Some(write)] = ends.map(Own::new) else {
        return false;
    };
    let is_there = PIPE.set([read, write]).is_ok();
    IS_POLLED.store(is_there, Ordering::Release);
    is_there
}

/// The pipe, if it is polled and both ends are still ours.
fn ends() -> Option<[RawFd; 2]> {
    let [read, write] = PIPE.get().filter(|_| IS_POLLED.load(Ordering::Acquire))?;
    Some([read.get()?, write.get()?])
}

/// What the thread is to poll. `None` where the program has closed it.
pub(super) fn event() -> Option<RawFd> {
    ends().map(|[read, _]| read)
}

/// Wakes the thread. False where there is none that could be.
pub(super) fn wake() -> bool {
    let Some([_, write]) = ends() else {
        return false;
    };
    // SAFETY: writes a byte, which is there. A full pipe wakes it as well.
    unsafe { libc::write(write, c"".as_ptr().cast(), 1) };
    true
}

/// The thread has nobody left to wake it, or is woken again.
pub(super) fn clear() {
    let mut bytes = [0_u8; 64];
    if let Some(read) = event() {
        // SAFETY: reads as many bytes at most as there is room for.
        unsafe { libc::read(read, bytes.as_mut_ptr().cast(), bytes.len()) };
    }
}

/// The drain that somebody waits for now, if anybody does.
pub(super) fn wanted() -> Option<u32> {
    let wanted = WANTED.load(Ordering::Acquire);
    (wanted != DONE.load(Ordering::Relaxed)).then_some(wanted)
}

/// That drain, and those before it, are done.
pub(super) fn done(wanted: u32) {
    DONE.store(wanted, Ordering::Release);
    // SAFETY: wakes who waits on the word.
    unsafe {
        futex(
            libc::FUTEX_WAKE,
            c_int::MAX.cast_unsigned(),
            std::ptr::null(),
        )
    };
}

/// Asks for a drain, and waits for it, or until `patience` is over.
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
        // SAFETY: waits while the word is as it was, at most for the time given. Other signals, and
        // a word that has changed, end the wait: then it is looked at again.
        unsafe { futex(libc::FUTEX_WAIT, done, &raw const left) };
    }
}

/// # Safety
/// The operation reads [`DONE`] and `timeout` alone.
unsafe fn futex(operation: c_int, value: u32, timeout: *const libc::timespec) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_futex, DONE.as_ptr(), operation, value, timeout) };
}

/// There is no thread any more.
pub(super) fn forget() {
    IS_POLLED.store(false, Ordering::Relaxed);
}

/// There is no thread, or this is the child of a fork: there is nothing to wake.
pub(super) fn close() {
    if IS_POLLED.swap(false, Ordering::Relaxed) {
        PIPE.get().into_iter().flatten().for_each(|end| end.close());
    }
}
