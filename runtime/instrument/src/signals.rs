//! The signals of the program, which are for its own threads.
#![expect(unsafe_code, reason = "calls the C library")]

use std::mem::MaybeUninit;

/// Calls `start`, which starts threads: they begin with all signals blocked. Those of the calling thread are as before
/// afterwards.
pub(crate) fn with_all_blocked(start: &mut dyn FnMut()) {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are written before they are read, and with these arguments the calls do not fail.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    start();
    // SAFETY: the call above has written this set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> Vec<i32> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the call writes the set, which is read after it.
        let set = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
            set.assume_init()
        };
        // SAFETY: the set is valid, and so are the numbers.
        let is_blocked = |signal: &i32| unsafe { libc::sigismember(&raw const set, *signal) == 1 };
        let all = [libc::SIGINT, libc::SIGTERM, libc::SIGPROF, libc::SIGRTMIN()];
        all.into_iter().filter(is_blocked).collect()
    }

    #[test]
    fn threads_begin_with_all_signals_blocked_and_the_calling_one_has_its_own() {
        let before = blocked();
        let mut found = Vec::new();
        with_all_blocked(&mut || found = std::thread::spawn(blocked).join().unwrap());
        assert_eq!(found.len(), 4);
        assert_eq!(blocked(), before);
    }
}
