//! Writes what was counted before a fault ends the program.
//!
//! ROCr up to release 6 ends the program at a GPU's fault at once, and no library can read the counters
//! any more. Here the fault waits for them: librocov, if the process has it, drains first.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use modelgpu_queue::run_within;

/// The longest wait. The stopped queue may hold what the drain needs.
const LIMIT: Duration = Duration::from_secs(10);

/// Calls librocov's `rocov_drain`, if the process has it.
pub(crate) fn drain() {
    // SAFETY: a C string; the default search order.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"rocov_drain".as_ptr()) };
    if symbol.is_null() {
        return;
    }
    // SAFETY: the function of rocov.h: no arguments, an enumeration as its result, callable on any
    // thread.
    let drain: extern "C" fn() -> c_int = unsafe { std::mem::transmute::<*mut c_void, _>(symbol) };
    run_within(LIMIT, move || {
        drain();
    });
}
