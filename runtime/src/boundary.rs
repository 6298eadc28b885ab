//! The border between the program's C and our Rust.

use std::arch::asm;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::exports::RocovStatus;
use crate::journal::{self, Note};
use crate::{log, shield};

/// Runs `work` on behalf of the program: a panic ends here as a line on standard error, and `errno`
/// and the floating-point exceptions are as before. Meanwhile the thread is not cancelled, and a file above
/// the limit, or a pipe that nobody reads, does not end the program.
pub(crate) fn guest(place: &str, work: impl FnOnce()) {
    run(place, work);
}

/// The same for a function of the C interface, which answers with a status.
pub(crate) fn call(function: &str, work: impl FnOnce() -> RocovStatus) -> RocovStatus {
    run(function, work).unwrap_or(RocovStatus::Internal)
}

fn run<T>(place: &str, work: impl FnOnce() -> T) -> Option<T> {
    let (mut work, mut result) = (Some(work), None);
    guarded(place, &mut || result = work.take().map(|work| work()));
    result
}

/// Once for all kinds of work, of which there are many.
#[inline(never)]
fn guarded(place: &str, work: &mut dyn FnMut()) {
    let (errno, floating_point) = (errno(), floating_point());
    shield::behind(&mut || {
        if catch_unwind(AssertUnwindSafe(&mut *work)).is_err() {
            journal::note(Note::Lost);
            log::warn(format_args!(
                "a fault of rocov's own in {place}; counts may be lost"
            ));
        }
    });
    set_errno(errno);
    set_floating_point(floating_point);
}

fn errno() -> i32 {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() = value }
}

/// The SSE unit's control and status register: the rounding mode, what is trapped, and the exceptions
/// since the program last looked. ROCr computes with floating point while it copies, which leaves
/// "inexact" there; a program that asks after a computation of its own would be told of it.
fn floating_point() -> u32 {
    let mut value = 0;
    // SAFETY: stores four bytes, which `value` has.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

fn set_floating_point(value: u32) {
    // SAFETY: loads four bytes that were stored from the same register.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
}
