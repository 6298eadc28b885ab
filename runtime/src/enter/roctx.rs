//! ROCTx, AMD's annotations in programs. If the user asks for it (`ROCOV_ROCTX=1`), ranges become labels
//! and marks become dumps.
//!
//! The hooks interpose the program's calls as those of HSA ([`super::interpose`]), and always pass them on
//! to the library that they are meant for, libroctx64 or librocprofiler-sdk-roctx: a profiler behind it
//! sees all of them. Without such a library, they answer as it does without a profiler.
#![expect(unsafe_code, reason = "defines and calls functions of ROCTx")]

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

use super::copy::send;
use super::next_symbol;
use crate::elect::event::Event;
use crate::guest::settings;

type MarkFn = unsafe extern "C" fn(*const c_char);
type PushFn = unsafe extern "C" fn(*const c_char) -> c_int;
type PopFn = unsafe extern "C" fn() -> c_int;

thread_local! {
    /// The number of open ranges, if no library counts them.
    static LEVEL: Cell<c_int> = const { Cell::new(0) };
}

/// Marks a moment: dumps all counts up to it.
///
/// # Safety
/// As for ROCTx's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    static REAL: OnceLock<Option<MarkFn>> = OnceLock::new();
    send_if_asked(Event::Dump(message));
    let find = || {
        let real = next_symbol::find_meant(c"roctxMarkA")?;
        // SAFETY: roctx.h declares the function with this type.
        Some(unsafe { transmute::<*mut c_void, MarkFn>(real) })
    };
    if let Some(real) = *REAL.get_or_init(find) {
        // SAFETY: the caller's argument, passed on.
        unsafe { real(message) };
    }
}

/// Opens a range, within the thread's last open range. Returns its level, from 0.
///
/// # Safety
/// As for ROCTx's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    static REAL: OnceLock<Option<PushFn>> = OnceLock::new();
    send_if_asked(Event::LabelPush(message));
    let find = || {
        let real = next_symbol::find_meant(c"roctxRangePushA")?;
        // SAFETY: roctx.h declares the function with this type.
        Some(unsafe { transmute::<*mut c_void, PushFn>(real) })
    };
    match *REAL.get_or_init(find) {
        // SAFETY: the caller's argument, passed on.
        Some(real) => unsafe { real(message) },
        None => LEVEL.replace(LEVEL.get().saturating_add(1)),
    }
}

/// Closes the range that the thread has opened last. Returns its level; -1 if none is open.
///
/// # Safety
/// As for ROCTx's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePop() -> c_int {
    static REAL: OnceLock<Option<PopFn>> = OnceLock::new();
    send_if_asked(Event::LabelPop);
    let find = || {
        let real = next_symbol::find_meant(c"roctxRangePop")?;
        // SAFETY: roctx.h declares the function with this type.
        Some(unsafe { transmute::<*mut c_void, PopFn>(real) })
    };
    match *REAL.get_or_init(find) {
        // SAFETY: there are no arguments.
        Some(real) => unsafe { real() },
        None if LEVEL.get() == 0 => -1,
        None => {
            LEVEL.set(LEVEL.get() - 1);
            LEVEL.get()
        }
    }
}

/// Sends an event if the user asks for it.
fn send_if_asked(event: Event<'_>) {
    static IS_ASKED: OnceLock<bool> = OnceLock::new();
    if *IS_ASKED.get_or_init(settings::roctx) {
        // librocov prints why a label is not valid. ROCTx has no status for it.
        send(event);
    }
}
