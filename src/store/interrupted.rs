//! Repeats calls that a signal interrupts.

use std::io;

/// Repeats a call until no signal interrupts it (`EINTR`). The standard library does so in reads, writes and
/// opens. On network file systems, renames and stats can be interrupted too.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
