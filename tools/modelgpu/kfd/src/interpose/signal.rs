//! `hsa_signal_wait_scacquire`: a wait for a kernel sleeps.
//!
//! HIP has ROCr look at a signal all the time while it waits for a kernel. ROCr also does so if HIP asks for
//! a sleep and another thread waits already. A GPU needs no processor of the host meanwhile, but the
//! model's kernels do.

use std::ffi::{CStr, c_void};
use std::mem;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};
use std::{process, ptr, thread};

use modelgpu_queue::Pause;

use crate::log;
use crate::model::Model;

type Wait = unsafe extern "C" fn(u64, u32, i64, u64, u32) -> i64;

const NAME: &CStr = c"hsa_signal_wait_scacquire";
/// The first name is that of all releases of ROCr. Python wheels have copies with the second one.
const LIBRARIES: [&CStr; 2] = [c"libhsa-runtime64.so.1", c"libhsa-runtime64.so"];

/// The value of `hsa_wait_state_t` for a thread that looks at the signal all the time.
const ACTIVE: u32 = 1;

/// The time for which a thread looks at the signal all the time, and leaves its processor to others between two
/// looks. HIP asks for so long before it asks for more.
const FIRST_LOOKS: Duration = Duration::from_micros(100);

/// The shortest and the longest time between two looks after that.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// ROCr's function, once it is known.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

fn real() -> Wait {
    let mut found = REAL.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the name is a C string.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr()) };
        if found.is_null() {
            found = in_library();
        }
        REAL.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        log::message("a library waits for a signal of HSA, but ROCr is not loaded");
        process::abort();
    }
    // SAFETY: ROCr's function of this name has this type.
    unsafe { mem::transmute::<*mut c_void, Wait>(found) }
}

/// Looks in a ROCr that was loaded for one library only.
fn in_library() -> *mut c_void {
    for name in LIBRARIES {
        // SAFETY: the name is a C string, and the library's constructors have run already.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !library.is_null() {
            // SAFETY: the handle is open, and the name is a C string.
            return unsafe { libc::dlsym(library, NAME.as_ptr()) };
        }
    }
    ptr::null_mut()
}

/// Returns whether a signal's value meets a condition (`hsa_signal_condition_t`).
fn holds(condition: u32, value: i64, wanted: i64) -> bool {
    match condition {
        0 => value == wanted,
        1 => value != wanted,
        2 => value < wanted,
        _ => value >= wanted,
    }
}

/// # Safety
/// As in ROCr.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_signal_wait_scacquire(
    signal: u64,
    condition: u32,
    wanted: i64,
    timeout: u64,
    state: u32,
) -> i64 {
    let wait = real();
    if Model::existing().is_none() {
        // SAFETY: the caller's promise.
        return unsafe { wait(signal, condition, wanted, timeout, state) };
    }
    let (start, limit) = (Instant::now(), Duration::from_nanos(timeout));
    let pause = Pause::between(PAUSES.0, PAUSES.1);
    loop {
        // SAFETY: the caller's promise. ROCr looks once, and gives the value back although the time is over.
        let value = unsafe { wait(signal, condition, wanted, 0, ACTIVE) };
        let waited = start.elapsed();
        if holds(condition, value, wanted) || waited >= limit {
            return value;
        }
        if waited < FIRST_LOOKS {
            thread::yield_now();
        } else {
            pause.wait();
        }
    }
}
