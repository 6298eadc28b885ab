//! A queue's thread, and those that help it with a dispatch. Unsafe because it calls the C library.
//!
//! A GPU needs no lock of the process, so its queues must not need one either. A thread of the
//! standard library takes the dynamic linker's lock at its start: it registers a destructor of
//! thread-local variables (`__cxa_thread_atexit_impl`). `dlclose` holds that lock while a library's
//! destructors run. HIP unloads the library's code in such a destructor and may wait there for a
//! new queue. So queues have threads of the C library. No code on these threads may register such a
//! destructor.

use std::ffi::{CString, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use modelgpu_amdgcn::Workers;

use crate::sigmask;

/// Bytes of stack, as in the standard library's threads.
const STACK: usize = 2 << 20;

/// Nanoseconds by which the system may make a sleep longer.
const SLACK: libc::c_ulong = 1000;

/// A running thread that somebody must join.
pub(crate) struct Thread(libc::pthread_t);

type Work = Box<dyn FnOnce() + Send>;

impl Thread {
    /// Starts a thread that does `work`. A panic there ends only this thread.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let work: *mut Work = Box::into_raw(Box::new(Box::new(work)));
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let mut thread = 0;
        // The host program's signals are for its own threads. This thread must never run a handler,
        // so it starts with all signals blocked. SAFETY: the code initialises the attributes before
        // it uses them, and the new thread takes the work over.
        let error = sigmask::with_signals_blocked(|| unsafe {
            libc::pthread_attr_init(attributes.as_mut_ptr());
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
            let made = libc::pthread_create(&raw mut thread, attributes.as_ptr(), run, work.cast());
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            made
        });
        if error != 0 {
            // SAFETY: the call made no thread that could have taken the work.
            drop(unsafe { Box::from_raw(work) });
            return Err(io::Error::from_raw_os_error(error));
        }
        if let Ok(name) = CString::new(name) {
            // SAFETY: nobody has joined the thread yet. The call rejects a name that is too long,
            // which does no harm.
            unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
        }
        Ok(Self(thread))
    }

    /// Does `work` on another thread and waits for its end, at most for `limit`.
    fn run_within(limit: Duration, work: impl FnOnce() + Send + 'static) {
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let started = Self::start("modelgpu aside", move || {
            work();
            told.store(true, Ordering::Release);
        });
        let Ok(thread) = started else {
            return;
        };
        let end = Instant::now() + limit;
        while !ended.load(Ordering::Acquire) {
            if Instant::now() > end {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        thread.join();
    }

    /// Waits for the thread's end.
    pub(crate) fn join(self) {
        // SAFETY: a thread from `start`, which nobody else joins.
        unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
    }
}

/// The threads that run a dispatch, in addition to the queue's own.
#[derive(Clone, Copy, Debug)]
pub struct DispatchThreads(
    /// The most threads, the queue's own included; at least 1.
    pub usize,
);

/// Threads that end before this value does.
struct Joined(Vec<Thread>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Thread::join);
    }
}

impl Workers for DispatchThreads {
    fn count(&self) -> usize {
        self.0.max(1)
    }

    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only threads in `joined` use the longer lifetime. They end before this function
        // does, also if `work` panics.
        let shared: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        let mut joined = Joined(Vec::with_capacity(count));
        for worker in 1..count {
            // A thread that cannot be had leaves its work to the others.
            let started = Thread::start("modelgpu work", move || shared(worker));
            joined.0.extend(started);
        }
        work(0);
    }
}

/// Does `work` on another thread and waits for its end, at most for `limit`: a queue's own thread must
/// not wait for ever for somebody who may wait for the queue.
pub fn run_within(limit: Duration, work: impl FnOnce() + Send + 'static) {
    Thread::run_within(limit, work);
}

extern "C" fn run(work: *mut c_void) -> *mut c_void {
    // The queues look at memory every few microseconds. By default, the system makes each of these sleeps 50
    // microseconds longer. SAFETY: the call changes only this thread's slack, and a failure does no harm.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK) };
    // SAFETY: `Thread::start` made the box for this thread.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    // A panic has printed its message on standard error; it must not cross into the C library.
    let _ = catch_unwind(AssertUnwindSafe(*work));
    ptr::null_mut()
}
