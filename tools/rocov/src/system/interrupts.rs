//! The ends of a command which waits: Ctrl-C, a hang-up, a request to end, and a reader that is gone.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Signals that end a command.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// These signals, which this process takes one by one.
pub(crate) struct Interrupts(libc::sigset_t);

impl Interrupts {
    /// Blocks these signals in this thread and in all threads that it starts from now on.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses.
    pub(crate) fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the pointer is to a live object of the right type.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: sigemptyset fills the set in, and cannot fail.
        let mut set = unsafe { set.assume_init() };
        for signal in ENDING {
            // SAFETY: the pointer is to a live set, and the signals exist.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        // SAFETY: the pointer is to a live set; a null pointer asks for no old value.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        match result {
            0 => Ok(Self(set)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for one of the signals for as long as `time`. Returns whether one came.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let time = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the pointers are to live objects; a null pointer asks for no details.
        let signal = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &time) };
        signal > 0
    }
}

/// Returns whether standard output is a pipe that nobody reads any more.
pub(crate) fn output_is_closed() -> bool {
    let mut output = libc::pollfd {
        fd: libc::STDOUT_FILENO,
        events: 0,
        revents: 0,
    };
    // SAFETY: the pointer is to one live object, and the call does not wait.
    let ready = unsafe { libc::poll(&raw mut output, 1, 0) };
    ready > 0 && output.revents & libc::POLLERR != 0
}
