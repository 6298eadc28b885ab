//! Writes what was counted before a fault ends the program, or its user ends a kernel that is stuck.
//!
//! ROCr up to release 6 ends the program at a GPU's fault at once, and no library can read the counters
//! any more. Here the fault waits for them: librocov, if the process has it, drains first.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::time::Duration;

use modelgpu_queue::run_within;

/// The longest wait. The stopped queue may hold what the drain needs.
const LIMIT: Duration = Duration::from_secs(10);

/// Tells librocov why a kernel was stopped, and lets it drain, if the process has it.
pub(crate) fn drain_after(reason: &str) {
    let Some(told) = symbol(c"rocov_kernel_stopped") else {
        return;
    };
    // SAFETY: the function of rocov.h: a NUL-terminated text, an enumeration as its result, callable on any
    // thread.
    let told: extern "C" fn(*const c_char) -> c_int =
        unsafe { std::mem::transmute::<*mut c_void, _>(told) };
    let reason = CString::new(reason.replace('\0', " ")).unwrap_or_default();
    drain_with(move || {
        told(reason.as_ptr());
    });
}

/// Lets librocov drain, if the process has it.
pub(crate) fn drain() {
    drain_with(|| {});
}

fn drain_with(before: impl FnOnce() + Send + 'static) {
    let Some(drain) = symbol(c"rocov_drain") else {
        return;
    };
    // SAFETY: the function of rocov.h: no arguments, an enumeration as its result, callable on any
    // thread.
    let drain: extern "C" fn() -> c_int = unsafe { std::mem::transmute::<*mut c_void, _>(drain) };
    run_within(LIMIT, move || {
        before();
        drain();
    });
}

/// The function of this name in the process, if there is one.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string; the default search order.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}
