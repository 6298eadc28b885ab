//! The calling thread's signal mask. Unsafe because the C library's functions are.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `action` with every signal blocked on this thread. Threads that it starts inherit the
/// mask.
pub(crate) fn with_signals_blocked<T>(action: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are written before they are read; the calls cannot fail with these
    // arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
    }
    let result = action();
    // SAFETY: `old` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), ptr::null_mut()) };
    result
}
