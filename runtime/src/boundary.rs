//! The border between the program's C and our Rust.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::log;

/// Runs `work` on behalf of the program: a panic ends here as a line on standard error, and
/// `errno` is as before.
pub(crate) fn guest(place: &str, work: impl FnOnce()) {
    let errno = errno();
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        log::warn(format_args!(
            "a fault of rocov's own in {place}; counts may be lost"
        ));
    }
    set_errno(errno);
}

fn errno() -> i32 {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() = value }
}
