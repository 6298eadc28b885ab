//! The functions of HSA that the program's calls pass through here on their way.
//!
//! HIP calls ROCr through its exported stubs; a definition in a preloaded library, or in the
//! executable, is found before ROCr's own, even for libamdhip64's versioned references
//! (`@ROCR_1`).

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};
use rocov::device::Executable;
use rocov::hsa::HSA_LIBRARY;
use rocov::hsa::abi::{SUCCESS, Status};

use crate::{boundary, lifecycle};

/// `HSA_STATUS_ERROR`: for a program that calls HSA where there is none.
const ERROR: Status = 0x1000;

type FreezeFn = unsafe extern "C" fn(u64, *const c_char) -> Status;
type DestroyFn = unsafe extern "C" fn(u64) -> Status;

/// Loads are remembered once an executable is frozen: symbols have addresses from then on.
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_freeze(executable: u64, options: *const c_char) -> Status {
    static NEXT: OnceLock<Option<FreezeFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(freeze) = *NEXT.get_or_init(|| unsafe { next(c"hsa_executable_freeze") }) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { freeze(executable, options) };
    if status == SUCCESS {
        boundary::guest("the freeze hook", || {
            lifecycle::frozen(Executable(executable))
        });
    }
    status
}

/// The authoritative drain: HIP destroys the executables of static fat binaries in its module
/// destructors, before a preloaded library's exit handler runs, and those of a module when it is
/// unloaded. The owner promises that no kernel of the executable runs any more.
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_destroy(executable: u64) -> Status {
    static NEXT: OnceLock<Option<DestroyFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(destroy) = *NEXT.get_or_init(|| unsafe { next(c"hsa_executable_destroy") }) else {
        return ERROR;
    };
    boundary::guest("the destroy hook", || {
        lifecycle::destroying(Executable(executable))
    });
    // SAFETY: the caller's argument, passed on.
    unsafe { destroy(executable) }
}

/// The function `name` behind ours: the next in the search order, so that another tool's hook is
/// kept; else the runtime's own, for a runtime that was loaded with `RTLD_LOCAL` (Python's
/// ctypes) and so is in no search order.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn next<T: Copy>(name: &CStr) -> Option<T> {
    const RTLD_NOLOAD: i32 = libc::RTLD_NOLOAD;
    // SAFETY: the name is NUL terminated.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        // SAFETY: a function pointer of the type that the caller promises.
        return Some(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) });
    }
    // SAFETY: NOLOAD runs no initialiser.
    let library = unsafe { Library::open(Some(HSA_LIBRARY), RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: as the caller promises.
    let symbol = unsafe { library.get::<T>(name.to_bytes_with_nul()) }
        .ok()
        .map(|found| *found);
    // The reference stays: the function must outlive us.
    std::mem::forget(library);
    symbol
}
