//! A shield around librocov's code, against events that would end the program or the thread.
//!
//! - SIGPIPE, after a line on a standard error without a reader, and SIGXFSZ, for a file above the
//!   program's limit (`RLIMIT_FSIZE`). Behind the shield, the call fails with EPIPE or EFBIG instead.
//! - The cancellation of the thread (`pthread_cancel`), which takes effect in blocking calls and
//!   unwinds the stack. Rust's frames cannot be unwound this way: the process would abort. The thread
//!   is cancelled later, in its own code.
#![expect(
    unsafe_code,
    reason = "changes the signal mask and the cancellation state"
)]

use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr::null_mut;

const SIGNALS: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// `PTHREAD_CANCEL_DISABLE`
const CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    /// The libc crate lacks it for Linux.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The state of the calling thread before the shield was raised.
pub(super) struct Before {
    cancellation: c_int,
    blocked: libc::sigset_t,
    /// Those of [`SIGNALS`] that can become pending only by librocov's own calls.
    ours: libc::sigset_t,
}

/// Runs `work` behind the shield. Async-signal-safe if `work` is.
///
/// `work` must not panic: the shield would stay raised.
pub(crate) fn behind<T>(work: impl FnOnce() -> T) -> T {
    let before = raise();
    let result = work();
    lower(&before);
    result
}

/// Raises the shield. [`lower`] must follow on the same thread.
pub(super) fn raise() -> Before {
    // SAFETY: all-zero sets are valid, and all pointers are to variables that outlive the calls. No
    // call fails with these arguments.
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
        // A signal that was not blocked cannot have been pending.
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

/// Lowers the shield that [`raise`] has raised.
pub(super) fn lower(before: &Before) {
    // SAFETY: all-zero times are valid, and all pointers are to variables that outlive the calls.
    unsafe {
        let at_once: libc::timespec = zeroed();
        // Takes pending signals until there is none left (EAGAIN).
        while libc::sigtimedwait(&raw const before.ours, null_mut(), &raw const at_once) > 0
            || *libc::__errno_location() == libc::EINTR
        {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before.blocked, null_mut());
        pthread_setcancelstate(before.cancellation, null_mut());
    }
}
