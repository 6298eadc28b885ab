//! The ends of a process that run no exit handlers.
#![expect(unsafe_code, reason = "defines and calls functions of the C library")]

use std::ffi::c_int;

use super::copy::send;
use super::next_symbol::next;
use crate::elect::event::Event;
use crate::guest::process;
use crate::serve::service;

type ExitFn = unsafe extern "C" fn(c_int) -> !;

/// Ends the process without exit handlers, as Python's `os._exit` and forked workers do.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    // SAFETY: the arguments are passed on.
    unsafe { exit_now(status) }
}

/// Ends the process as `_exit` does, under C99's name.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the arguments are passed on.
    unsafe { exit_now(status) }
}

/// Drains, unless this is a signal handler. Then removes the control socket and ends the process.
///
/// # Safety
/// As for the C library's `_exit`.
unsafe fn exit_now(status: c_int) -> ! {
    before_leaving();
    // Allowed in a signal handler, too.
    service::leave();
    // SAFETY: <unistd.h> declares the function with this type.
    if let Some(exit) = unsafe { next::<ExitFn>(c"_exit") } {
        // SAFETY: the caller's argument, passed on.
        unsafe { exit(status) }
    }
    // SAFETY: ends the process, as the caller wants.
    unsafe {
        libc::syscall(libc::SYS_exit_group, status);
        libc::abort()
    }
}

/// Has the drainer drain before a call that ends the program at once. Does nothing in a signal handler, which may
/// have interrupted an allocation, HIP or a drain: it would wait for itself forever.
pub(super) fn before_leaving() {
    // Checked first, and without a lock: most callers are children of vfork on their way to exec.
    if process::uses_hsa() && !is_in_signal_handler() {
        send(Event::Exiting);
    }
}

/// Returns whether this looks like the handler of a signal that ends programs: its signal is blocked. A
/// thread that has blocked such a signal for another reason looks like a handler, too.
fn is_in_signal_handler() -> bool {
    const ENDING: [c_int; 10] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGALRM,
    ];
    // SAFETY: an all-zero set is valid.
    let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: without a new set the call changes nothing, and stores the old set in `blocked`.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked) };
    // SAFETY: the set and the numbers are valid.
    let is_blocked = |signal| unsafe { libc::sigismember(&raw const blocked, signal) } == 1;
    ENDING.into_iter().any(is_blocked)
}
