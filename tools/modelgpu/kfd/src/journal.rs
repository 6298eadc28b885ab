//! The journal of `rocov run`: notes about kernels, for the reports of the run.
//!
//! A line is `PID WORD TEXT`. tools/rocov reads the words.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::sys;

/// An event in the life of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// The kernel has made a mistake, and goes on.
    Mistake,
    /// The kernel makes no progress.
    Stuck,
    /// A kernel that was stuck has ended after all.
    GoesOn,
}

impl Note {
    fn word(self) -> &'static str {
        match self {
            Self::Mistake => "mistake",
            Self::Stuck => "stuck",
            Self::GoesOn => "goes-on",
        }
    }
}

/// Appends a note to the journal `file`.
pub(crate) fn append(file: &Path, note: Note, text: &str) {
    let line = format!(
        "{} {} {}\n",
        std::process::id(),
        note.word(),
        text.replace('\n', " ")
    );
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
    // The file is gone if `rocov run` has ended before this process. One call of write(2) keeps the lines of
    // processes apart.
    if let Ok(path) = CString::new(file.as_os_str().as_bytes())
        && let Ok(file) = sys::open(&path, flags)
    {
        sys::write(file.as_raw_fd(), line.as_bytes());
    }
}
