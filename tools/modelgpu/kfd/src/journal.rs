//! The journal of `rocov run`: notes about kernels, for the reports of the run.
//!
//! A line is `PROCESS WORD TEXT`. tools/rocov reads the words. PROCESS is `PID:START:NAMESPACE`, as librocov writes it: a
//! number alone may be that of several processes.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::sys;

/// An event in the life of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// The kernel has made a mistake, and continues.
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
        this_process(),
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

/// `PID:START:NAMESPACE`: the start of the process in ticks since boot, and the inode of its namespace of process ids.
/// Each is 0 if the system does not show it.
fn this_process() -> String {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let mut stat = String::new();
    if let Ok(file) = sys::open(c"/proc/self/stat", flags) {
        let _ = File::from(file).read_to_string(&mut stat);
    }
    // The name before the last parenthesis may contain anything. The start is the 20th word after it.
    let start = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(19));
    let namespace = sys::open(c"/proc/self/ns/pid", flags).ok();
    let namespace = namespace.and_then(|file| sys::file_id(file.as_raw_fd()));
    let namespace = namespace.map_or(0, |file| file.inode);
    format!(
        "{}:{}:{namespace}",
        std::process::id(),
        start.unwrap_or("0")
    )
}
