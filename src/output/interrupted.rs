//! Calls that a signal comes between.

use std::io;

/// Makes a call until no signal comes between (`EINTR`). The standard library does so where it reads,
/// writes and opens; renaming and looking at files can be interrupted too, on network file systems.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
