//! The failing file calls with their errors, and the preloaded library that makes them fail.
//!
//! The list has all functions of the C library that a drain calls on files below its directory,
//! except for:
//!
//! - `closedir`: on Linux, the close of a directory makes no request to the file system that could
//!   fail;
//! - `lstat64`, `stat64` and `fstat64` and similar functions: the standard library calls `statx`,
//!   and these only if a kernel lacks it;
//! - the read of the boot id from /proc, once in a process: without the id, rocov recognises
//!   leftovers only by their age.

use std::ffi::{CString, c_char, c_int, c_long};
use std::path::Path;

use libloading::os::unix::Library;

/// The failing functions; the preloaded library uses these names.
pub(crate) const FUNCTIONS: [&str; 16] = [
    "open", "write", "read", "pwrite", "pread", "seek", "rename", "link", "mkdir", "unlink",
    "lock", "flock", "opendir", "readdir", "stat", "close",
];

/// Functions that search for leftovers of other processes: leftovers that they miss stay.
pub(crate) const SWEEPING: [&str; 6] = ["open", "unlink", "flock", "opendir", "readdir", "stat"];

/// Functions whose failures cost nothing: leftovers stay, and written data are there.
pub(crate) const UNTOLD: [&str; 6] = ["close", "flock", "opendir", "readdir", "seek", "unlink"];

pub(crate) const EINTR: c_int = 4;
/// EIO, EACCES, EMFILE, EFBIG, ENOSPC, EROFS, ENAMETOOLONG, and EINTR, which needs no message.
const ERRORS: [c_int; 8] = [5, 13, 24, 27, 28, 30, 36, EINTR];
/// EAGAIN, if another process has the lock, and ENOLCK, if the file system has no locks.
const OF_LOCKS: [c_int; 2] = [11, 37];

/// The preloaded library's own functions.
pub(crate) struct Faults {
    arm: unsafe extern "C" fn(*const c_char, *const c_char, c_long, c_int, c_int),
    only_links: unsafe extern "C" fn(c_int),
    pause: unsafe extern "C" fn(c_int),
    disarm: unsafe extern "C" fn(*const c_char) -> c_long,
}

impl Faults {
    pub(crate) fn find() -> Self {
        let all = Library::this();
        // SAFETY: the types are those of file_faults.c.
        unsafe {
            Self {
                arm: *all.get("faults_arm").expect("the library is preloaded"),
                only_links: *all.get("faults_only_links").expect("preloaded"),
                pause: *all.get("faults_pause").expect("preloaded"),
                disarm: *all.get("faults_disarm").expect("preloaded"),
            }
        }
    }

    pub(crate) fn arm(&self, directory: &Path, fault: &Fault) {
        let text = |text: &str| CString::new(text).expect("no NUL");
        let directory = text(directory.to_str().expect("a UTF-8 path"));
        let function = text(fault.function);
        // SAFETY: the strings live as long as the call.
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

    /// Sets whether files get new names only by links, as on NFS.
    pub(crate) fn only_links(&self, is_so: bool) {
        // SAFETY: the function only stores the number.
        unsafe { (self.only_links)(is_so.into()) };
    }

    /// Runs `work` without faults.
    pub(crate) fn apart(&self, work: impl FnOnce()) {
        // SAFETY: the function only stores the number.
        unsafe { (self.pause)(1) };
        work();
        // SAFETY: the function only stores the number.
        unsafe { (self.pause)(0) };
    }

    /// Returns the number of calls of the function.
    pub(crate) fn disarm(&self, function: &str) -> c_long {
        let function = CString::new(function).expect("no NUL");
        // SAFETY: the string lives as long as the call.
        unsafe { (self.disarm)(function.as_ptr()) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) function: &'static str,
    /// The number of the failing call; -1 for none.
    pub(crate) number: c_long,
    pub(crate) error: c_int,
    /// If true, the call takes effect and then reports a failure.
    pub(crate) is_late: bool,
}

/// The errors of `function`, each with a flag: the call takes effect and then reports a failure.
pub(crate) fn errors_of(function: &str) -> Vec<(c_int, bool)> {
    let mut errors: Vec<_> = ERRORS.map(|error| (error, false)).into();
    if ["lock", "flock"].contains(&function) {
        errors.extend(OF_LOCKS.map(|error| (error, false)));
    }
    // After such a call, only a read of the file shows whether it changed; the code writes a pool's
    // header again.
    if ["write", "pwrite", "close"].contains(&function) {
        errors.push((ERRORS[0], true));
    }
    errors
}
