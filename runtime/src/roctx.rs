//! ROCTx, AMD's annotations in programs: ranges as labels and marks as dumps, where the user asks for it
//! (`ROCOV_ROCTX=1`).
//!
//! The program's calls are interposed, as those of HSA are ([`crate::hooks`]), and always passed on to
//! the library that they are meant for, libroctx64 or librocprofiler-sdk-roctx: a profiler behind it
//! sees what it saw before. Where there is none, they answer as that does without a profiler.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

use crate::election::{self, Event};
use crate::{config, hooks};

type MarkFn = unsafe extern "C" fn(*const c_char);
type PushFn = unsafe extern "C" fn(*const c_char) -> c_int;
type PopFn = unsafe extern "C" fn() -> c_int;

thread_local! {
    /// How many ranges are open, where no library counts them.
    static LEVEL: Cell<c_int> = const { Cell::new(0) };
}

/// Marks a moment: all that was counted up to it is dumped.
///
/// # Safety
/// As for ROCTx's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    static REAL: OnceLock<Option<MarkFn>> = OnceLock::new();
    tell(Event::Dump(message));
    let find = || {
        let real = hooks::find_meant(c"roctxMarkA")?;
        // SAFETY: roctx.h declares the function so.
        Some(unsafe { transmute::<*mut c_void, MarkFn>(real) })
    };
    if let Some(real) = *REAL.get_or_init(find) {
        // SAFETY: the caller's argument, passed on.
        unsafe { real(message) };
    }
}

/// Opens a range, within the one that the thread has opened before. Returns its level, from 0.
///
/// # Safety
/// As for ROCTx's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    static REAL: OnceLock<Option<PushFn>> = OnceLock::new();
    tell(Event::LabelPush(message));
    let find = || {
        let real = hooks::find_meant(c"roctxRangePushA")?;
        // SAFETY: roctx.h declares the function so.
        Some(unsafe { transmute::<*mut c_void, PushFn>(real) })
    };
    match *REAL.get_or_init(find) {
        // SAFETY: the caller's argument, passed on.
        Some(real) => unsafe { real(message) },
        None => LEVEL.replace(LEVEL.get().saturating_add(1)),
    }
}

/// Closes the range that the thread has opened last. Returns its level, -1 where none is open.
///
/// # Safety
/// As for ROCTx's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePop() -> c_int {
    static REAL: OnceLock<Option<PopFn>> = OnceLock::new();
    tell(Event::LabelPop);
    let find = || {
        let real = hooks::find_meant(c"roctxRangePop")?;
        // SAFETY: roctx.h declares the function so.
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

fn tell(event: Event<'_>) {
    static ARE_LABELS: OnceLock<bool> = OnceLock::new();
    if *ARE_LABELS.get_or_init(config::roctx) {
        // What is wrong with a label is said; ROCTx has no word for it.
        election::send(event);
    }
}
