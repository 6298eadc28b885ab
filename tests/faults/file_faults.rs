//! Which calls on files fail, with what, and the preloaded library that has them do so.
//!
//! All functions of the C library that a drain calls on files below its directory are here, but for:
//!
//! - `closedir`: on Linux, closing a directory asks nothing of the file system that could fail;
//! - `lstat64`, `stat64` and `fstat64`, with the others that look at a file: the standard library calls
//!   `statx`, and them where a kernel has none;
//! - what reads the boot id from /proc, once in a process: where it is not known, leftovers are told by
//!   their age alone.

use std::ffi::{CString, c_char, c_int, c_long};
use std::path::Path;

use libloading::os::unix::Library;

/// The functions that fail, as the preloaded library calls them.
pub(crate) const FUNCTIONS: [&str; 16] = [
    "open", "write", "read", "pwrite", "pread", "seek", "rename", "link", "mkdir", "unlink",
    "lock", "flock", "opendir", "readdir", "stat", "close",
];

/// Those that look for what other processes have left: what of it is not seen stays.
pub(crate) const SWEEPING: [&str; 6] = ["open", "unlink", "flock", "opendir", "readdir", "stat"];

/// Those whose failures cost nothing: leftovers stay, what was written is there.
pub(crate) const UNTOLD: [&str; 6] = ["close", "flock", "opendir", "readdir", "seek", "unlink"];

pub(crate) const EINTR: c_int = 4;
/// EIO, EACCES, EMFILE, EFBIG, ENOSPC, EROFS, ENAMETOOLONG, and the one that nobody needs to know of.
const ERRORS: [c_int; 8] = [5, 13, 24, 27, 28, 30, 36, EINTR];
/// EAGAIN, as somebody else has the lock, and ENOLCK, as the file system has none.
const OF_LOCKS: [c_int; 2] = [11, 37];

/// The preloaded library's own functions.
pub(crate) struct Faults {
    arm: unsafe extern "C" fn(*const c_char, *const c_char, c_long, c_int, c_int),
    only_links: unsafe extern "C" fn(c_int),
    pause: unsafe extern "C" fn(c_int),
    disarm: unsafe extern "C" fn(*const c_char) -> c_long,
}

impl Faults {
    pub(crate) fn find() -> Faults {
        let all = Library::this();
        // SAFETY: the types are those of file_faults.c.
        unsafe {
            Faults {
                arm: *all.get("faults_arm").expect("the library is preloaded"),
                only_links: *all.get("faults_only_links").expect("likewise"),
                pause: *all.get("faults_pause").expect("likewise"),
                disarm: *all.get("faults_disarm").expect("likewise"),
            }
        }
    }

    pub(crate) fn arm(&self, directory: &Path, fault: &Fault) {
        let text = |text: &str| CString::new(text).expect("no NUL");
        let directory = text(directory.to_str().expect("a UTF-8 path"));
        let function = text(fault.function);
        // SAFETY: strings that live as long as the call.
        unsafe {
            (self.arm)(
                directory.as_ptr(),
                function.as_ptr(),
                fault.number,
                fault.error,
                fault.is_late.into(),
            );
        }
    }

    /// Whether files get new names by linking alone, as on NFS.
    pub(crate) fn only_links(&self, is_so: bool) {
        // SAFETY: it only notes the number.
        unsafe { (self.only_links)(is_so.into()) };
    }

    /// Does what is not to go wrong.
    pub(crate) fn apart(&self, work: impl FnOnce()) {
        // SAFETY: it only notes the number.
        unsafe { (self.pause)(1) };
        work();
        // SAFETY: as above.
        unsafe { (self.pause)(0) };
    }

    /// Returns how often it was called.
    pub(crate) fn disarm(&self, function: &str) -> c_long {
        let function = CString::new(function).expect("no NUL");
        // SAFETY: a string that lives as long as the call.
        unsafe { (self.disarm)(function.as_ptr()) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) function: &'static str,
    /// -1 for none.
    pub(crate) number: c_long,
    pub(crate) error: c_int,
    /// The call is made, and called a failure.
    pub(crate) is_late: bool,
}

/// With what `function` fails: the error, and whether the call is made and called a failure.
pub(crate) fn errors_of(function: &str) -> Vec<(c_int, bool)> {
    let mut errors: Vec<_> = ERRORS.map(|error| (error, false)).into();
    if ["lock", "flock"].contains(&function) {
        errors.extend(OF_LOCKS.map(|error| (error, false)));
    }
    // Whether another call that was made and called a failure has changed a file, nobody can tell but by
    // looking; a pool's header is written again.
    if ["write", "pwrite", "close"].contains(&function) {
        errors.push((ERRORS[0], true));
    }
    errors
}
