//! Waking the thread, and waiting until it is done: async-signal-safe, for signal handlers.
//!
//! The thread polls an eventfd. Who waits for it does so on a word (a futex): several may, each for
//! what was asked for after its own signal.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The eventfd; -1 without one.
static EVENT: AtomicI32 = AtomicI32::new(-1);
/// How often a drain was asked for that somebody waits for.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// Which of them is done.
static DONE: AtomicU32 = AtomicU32::new(0);

/// Makes the eventfd. False where there is none to be had.
pub(super) fn open() -> bool {
    // SAFETY: plain system call.
    let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    EVENT.store(event, Ordering::Release);
    event >= 0
}

/// What the thread is to poll.
pub(super) fn event() -> c_int {
    EVENT.load(Ordering::Acquire)
}

/// Wakes the thread, if there is one.
pub(super) fn wake() {
    let one = 1_u64;
    // SAFETY: writes eight bytes, which `one` has; without an eventfd the call fails.
    unsafe { libc::write(event(), (&raw const one).cast(), 8) };
}

/// The thread has nobody left to wake it.
pub(super) fn clear() {
    let mut count = 0_u64;
    // SAFETY: reads eight bytes at most, for which there is room.
    unsafe { libc::read(event(), (&raw mut count).cast(), 8) };
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
    if event() < 0 {
        return;
    }
    let mine = WANTED.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    wake();
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

/// There is no thread any more. Returns what is to be closed.
pub(super) fn forget() -> c_int {
    EVENT.swap(-1, Ordering::Relaxed)
}

/// There is no thread, or this is the child of a fork: there is nothing to wake.
pub(super) fn close() {
    let event = forget();
    if event >= 0 {
        // SAFETY: a descriptor of ours, which nobody uses any more.
        unsafe { libc::close(event) };
    }
}
