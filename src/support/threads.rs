//! Threads in somebody's program.
#![expect(unsafe_code, reason = "calls the C library")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// Starts a thread with a stack of this many bytes and all signals blocked: the program's signals are for its own threads.
/// Its caller must join or detach it.
///
/// A thread of the standard library would wait for the lock of the dynamic linker before its first step. A program whose
/// library loads GPU code in a constructor holds this lock.
///
/// # Errors
/// Fails if there are too many threads, or too little memory: the error number is that of `pthread_create`.
///
/// # Safety
/// `run` may be called with `argument` on another thread, and does not unwind.
pub unsafe fn start(
    stack: usize,
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> Result<libc::pthread_t, c_int> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the sets and the attributes are written before they are read.
    let error = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        let error = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        error
    };
    match error {
        // SAFETY: the call that succeeded has written it.
        0 => Ok(unsafe { thread.assume_init() }),
        error => Err(error),
    }
}
