//! The border between the program's C code and librocov's Rust code.
#![expect(
    unsafe_code,
    reason = "reads and writes errno and the SSE control register"
)]

use std::arch::asm;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rocov::support::diagnostic::diagnostic;

use super::journal::{self, Note};
use super::status::RocovStatus;
use super::{log, signal_shield};

/// Runs `work` as a guest of the program.
///
/// A panic ends here, as a line on standard error. `errno` and the floating-point exceptions are the
/// same before and after. In between the thread cannot be cancelled, and neither a file above the
/// limit nor a pipe without a reader ends the program.
pub(crate) fn guest(place: &str, work: impl FnOnce()) {
    run(place, work);
}

/// Runs `work` as [`guest`] does, for a function of the C interface, and returns its status.
pub(crate) fn call(function: &str, work: impl FnOnce() -> RocovStatus) -> RocovStatus {
    run(function, work).unwrap_or(RocovStatus::Internal)
}

thread_local! {
    /// True behind the shield: a hook calls other copies of librocov, and this one, by the C interface.
    static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
}

fn run<T>(place: &str, work: impl FnOnce() -> T) -> Option<T> {
    let (errno, floating_point) = (errno(), floating_point());
    // A thread that is already ending has its own shield each time.
    let is_behind = IS_BEHIND.try_with(|is_behind| is_behind.replace(true));
    let before = (is_behind != Ok(true)).then(signal_shield::raise);
    let result = catch_unwind(AssertUnwindSafe(work)).ok();
    if result.is_none() {
        journal::note(Note::Lost);
        log::warn(diagnostic!("internal error in {place}; counts may be lost"; "report this"));
    }
    if let Some(before) = before {
        signal_shield::lower(&before);
        let _ = IS_BEHIND.try_with(|is_behind| is_behind.set(false));
    }
    set_errno(errno);
    set_floating_point(floating_point);
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

/// Reads the control and status register of the SSE unit: the rounding mode, the traps, and the
/// exceptions since the program cleared them. ROCr computes with floating point while it copies, and
/// leaves "inexact" there. A program that asks after its own computation must not see that.
fn floating_point() -> u32 {
    let mut value = 0;
    // SAFETY: stores four bytes, the size of `value`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

fn set_floating_point(value: u32) {
    // SAFETY: loads four bytes that the same register held before.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
}
