//! The border between the program's C and our Rust.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::exports::RocovStatus;
use crate::log;

/// Runs `work` on behalf of the program: a panic ends here as a line on standard error, and
/// `errno` is as before.
pub(crate) fn guest(place: &str, work: impl FnOnce()) {
    run(place, work);
}

/// The same for a function of the C interface, which answers with a status.
pub(crate) fn call(function: &str, work: impl FnOnce() -> RocovStatus) -> RocovStatus {
    run(function, work).unwrap_or(RocovStatus::Internal)
}

fn run<T>(place: &str, work: impl FnOnce() -> T) -> Option<T> {
    let errno = errno();
    let result = catch_unwind(AssertUnwindSafe(work)).ok();
    if result.is_none() {
        log::warn(format_args!(
            "a fault of rocov's own in {place}; counts may be lost"
        ));
    }
    set_errno(errno);
    result
}

fn errno() -> i32 {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() = value }
}
