//! A queue's thread. Unsafe because the C library's functions are.
//!
//! A GPU needs nobody's lock to work, and so its queues must not either. A thread of the standard
//! library takes the dynamic linker's lock as it starts: it registers a destructor of thread-local
//! variables (`__cxa_thread_atexit_impl`). `dlclose` holds that lock while a library's destructors run,
//! and HIP unloads the library's code in one, which may wait for a queue that was made just then. So
//! queues have threads of the C library, and nothing that these do may have such a destructor.

use std::ffi::{CString, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::sigmask;

/// Bytes of stack: what the standard library gives a thread.
const STACK: usize = 2 << 20;

/// A running thread, which is to be joined.
pub(crate) struct Thread(libc::pthread_t);

type Work = Box<dyn FnOnce() + Send>;

impl Thread {
    /// Starts a thread that does `work`. A panic in there ends the thread alone.
    ///
    /// # Errors
    /// The system's, when it cannot make a thread.
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let work: *mut Work = Box::into_raw(Box::new(Box::new(work)));
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let mut thread = 0;
        // The host program's signals are for its own threads: this one must never run a handler,
        // so it is born with all of them blocked.
        // SAFETY: the attributes are initialised before they are used, and the new thread takes the
        // work over.
        let error = sigmask::with_signals_blocked(|| unsafe {
            libc::pthread_attr_init(attributes.as_mut_ptr());
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
            let made = libc::pthread_create(&raw mut thread, attributes.as_ptr(), run, work.cast());
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            made
        });
        if error != 0 {
            // SAFETY: there is no thread that could have taken the work.
            drop(unsafe { Box::from_raw(work) });
            return Err(io::Error::from_raw_os_error(error));
        }
        if let Ok(name) = CString::new(name) {
            // SAFETY: the thread is not joined yet. A name that is too long is refused, which does
            // no harm.
            unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
        }
        Ok(Thread(thread))
    }

    /// Waits for the thread's end.
    pub(crate) fn join(self) {
        // SAFETY: a thread of `start`, which nobody else joins.
        unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
    }
}

extern "C" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: `Thread::start` has made the box for this thread.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    // A panic has said so on standard error; it must not cross into the C library.
    let _ = catch_unwind(AssertUnwindSafe(*work));
    ptr::null_mut()
}
