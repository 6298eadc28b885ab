//! What would end the program, or the calling thread, for something that our code does: kept off while it
//! runs.
//!
//! - SIGPIPE, of a line on a standard error that nobody reads any more, and SIGXFSZ, of a file above the
//!   program's limit (`RLIMIT_FSIZE`): to us, such a call is one that fails, with EPIPE or EFBIG.
//! - The cancellation of the thread (`pthread_cancel`), which comes when it calls something that waits, and
//!   unwinds its stack. Rust's frames cannot be unwound so: the process would be aborted. The thread is
//!   cancelled later, in its own code.

use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr::null_mut;

const SIGNALS: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// `PTHREAD_CANCEL_DISABLE`
const CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    /// Missing from the libc crate for Linux.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The calling thread as it was before.
struct Before {
    cancellation: c_int,
    blocked: libc::sigset_t,
    /// Those of [`SIGNALS`] that can have become pending by what we do, and no other way.
    ours: libc::sigset_t,
}

/// Runs `work` with these kept off. Async-signal-safe, if `work` is.
pub(crate) fn behind(work: &mut dyn FnMut()) {
    let before = raise();
    work();
    lower(&before);
}

#[inline(never)]
fn raise() -> Before {
    // SAFETY: all-zero sets are valid, and all pointers are to what lives as long as the calls. No call
    // fails with these arguments.
    unsafe {
        let mut before = Before {
            cancellation: 0,
            blocked: zeroed(),
            ours: zeroed(),
        };
        pthread_setcancelstate(CANCEL_DISABLE, &raw mut before.cancellation);
        for signal in SIGNALS {
            libc::sigaddset(&raw mut before.ours, signal);
        }
        libc::pthread_sigmask(
            libc::SIG_BLOCK,
            &raw const before.ours,
            &raw mut before.blocked,
        );
        let was_blocked = |signal| libc::sigismember(&raw const before.blocked, signal) == 1;
        // One that was not blocked cannot have been pending.
        if SIGNALS.into_iter().any(was_blocked) {
            let mut pending = zeroed();
            libc::sigpending(&raw mut pending);
            for signal in SIGNALS {
                if libc::sigismember(&raw const pending, signal) == 1 {
                    libc::sigdelset(&raw mut before.ours, signal);
                }
            }
        }
        before
    }
}

#[inline(never)]
fn lower(before: &Before) {
    // SAFETY: all-zero times are valid, and all pointers are to what lives as long as the calls.
    unsafe {
        let at_once: libc::timespec = zeroed();
        // Until there is none, which is EAGAIN.
        while libc::sigtimedwait(&raw const before.ours, null_mut(), &raw const at_once) > 0
            || *libc::__errno_location() == libc::EINTR
        {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before.blocked, null_mut());
        pthread_setcancelstate(before.cancellation, null_mut());
    }
}
