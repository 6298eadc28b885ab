//! Threads that help the calling one.
#![expect(unsafe_code, reason = "starts threads")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rocov::support::threads::start;

/// The stack of a helper. Pages that are never used take no memory.
const STACK: usize = 2 << 20;

/// Has up to `most` other threads call `help`, and calls `work`. The threads have ended when it returns.
pub(crate) fn beside(most: usize, help: &(dyn Fn() + Sync), work: &mut dyn FnMut()) {
    let mut threads = Threads(Vec::with_capacity(most));
    while threads.0.len() < most {
        // SAFETY: `threads` joins the thread before `help` is gone.
        match unsafe { start(STACK, run, (&raw const help).cast_mut().cast()) } {
            Ok(thread) => threads.0.push(thread),
            Err(_) => break,
        }
    }
    work();
}

/// Threads, which end before this does.
struct Threads(Vec<libc::pthread_t>);

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // SAFETY: the thread was started, and nothing else joins it.
            unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn run(help: *mut c_void) -> *mut c_void {
    // SAFETY: `beside` passes a reference that outlives this thread.
    let help = unsafe { *help.cast::<&(dyn Fn() + Sync)>() };
    // SAFETY: the name is NUL terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"rocov-helper".as_ptr()) };
    // The others do the work of one that panics.
    let _ = catch_unwind(AssertUnwindSafe(help));
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, mpsc};
    use std::time::{Duration, Instant};

    use super::*;

    /// Enough for anything but a thread that waits for ever.
    const LONG: Duration = Duration::from_secs(60);

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
    fn helpers_have_all_signals_blocked_and_the_calling_thread_has_its_own() {
        let before = blocked();
        let found = Mutex::new(Vec::new());
        let help = || found.lock().unwrap().push(blocked());
        beside(3, &help, &mut || assert_eq!(blocked(), before));
        assert_eq!(blocked(), before);
        let found = found.into_inner().unwrap();
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|blocked| blocked.len() == 4), "{found:?}");
    }

    #[test]
    fn helpers_have_ended_after_a_panic() {
        let ended = AtomicUsize::new(0);
        let help = || {
            std::thread::sleep(Duration::from_millis(20));
            ended.fetch_add(1, Ordering::SeqCst);
        };
        let work = || beside(2, &help, &mut || panic!("as planned"));
        assert!(catch_unwind(work).is_err());
        assert_eq!(ended.into_inner(), 2);
    }

    static HELPED: AtomicUsize = AtomicUsize::new(0);

    /// Two helpers, on whose first steps the calling thread waits.
    extern "C" fn load() {
        let help = || {
            HELPED.fetch_add(1, Ordering::SeqCst);
        };
        let start = Instant::now();
        beside(2, &help, &mut || {
            while HELPED.load(Ordering::SeqCst) < 2 && start.elapsed() < LONG {
                std::thread::yield_now();
            }
        });
    }

    /// The dynamic linker holds its lock in a constructor. Threads of the standard library would wait for it.
    #[test]
    fn helpers_run_while_a_library_is_opened() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [source, library] = ["load.c", "load.so"].map(|name| directory.path().join(name));
        let text = format!(
            "__attribute__((constructor)) static void load(void) {{ ((void (*)(void)){:#x}ul)(); }}\n",
            load as extern "C" fn() as usize,
        );
        std::fs::write(&source, text).expect("a file can be written");
        let mut compile = Command::new("cc");
        let made = compile
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .status();
        assert!(made.expect("a C compiler").success());
        let (sender, done) = mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: its constructor calls the function above.
            let opened = unsafe { libloading::Library::new(&library) };
            sender.send(opened.is_ok()).expect("a receiver");
        });
        assert_eq!(done.recv_timeout(2 * LONG), Ok(true));
        assert_eq!(HELPED.load(Ordering::SeqCst), 2);
    }
}
