//! The calling thread's signal mask. Unsafe because it calls the C library.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `action` with every signal blocked on this thread. New threads inherit the mask.
pub(crate) fn with_signals_blocked<T>(action: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the code writes both sets before it reads them; the calls cannot fail with these
    // arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
    }
    let result = action();
    // SAFETY: the call above filled `old`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), ptr::null_mut()) };
    result
}
