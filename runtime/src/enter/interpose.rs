//! HSA's functions, interposed: the program's calls pass through here.
//!
//! HIP calls ROCr through its exported stubs. The dynamic linker finds a definition in a preloaded
//! library, or in the executable, before ROCr's own, even for libamdhip64's versioned references
//! (`@ROCR_1`). If HIP does not find ours, [`super::tool_table`] serves instead.
#![expect(unsafe_code, reason = "defines and calls functions of HSA")]

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use rocov::device::hsa::abi::Status;

use super::hsa_hooks::{
    self, DestroyFn, FreezeFn, InitFn, QueueCreateFn, QueueDestroyFn, QueueErrorFn, ShutDownFn,
};
use super::next_symbol::next;

/// `HSA_STATUS_ERROR`, for a program that calls HSA without having it.
const ERROR: Status = 0x1000;

/// See [`hsa_hooks::init`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_init() -> Status {
    static NEXT: OnceLock<Option<InitFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let Some(init) = *NEXT.get_or_init(|| unsafe { next(c"hsa_init") }) else {
        return ERROR;
    };
    // SAFETY: there are no arguments.
    hsa_hooks::init(|| unsafe { init() })
}

/// See [`hsa_hooks::freeze`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_freeze(executable: u64, options: *const c_char) -> Status {
    static NEXT: OnceLock<Option<FreezeFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let Some(freeze) = *NEXT.get_or_init(|| unsafe { next(c"hsa_executable_freeze") }) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    hsa_hooks::freeze(freeze_entry(), executable, || unsafe {
        freeze(executable, options)
    })
}

/// See [`hsa_hooks::destroy`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_destroy(executable: u64) -> Status {
    static NEXT: OnceLock<Option<DestroyFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let Some(destroy) = *NEXT.get_or_init(|| unsafe { next(c"hsa_executable_destroy") }) else {
        return ERROR;
    };
    // SAFETY: the caller's argument, passed on.
    hsa_hooks::destroy(executable, || unsafe { destroy(executable) })
}

/// See [`hsa_hooks::shut_down`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_shut_down() -> Status {
    static NEXT: OnceLock<Option<ShutDownFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let Some(shut_down) = *NEXT.get_or_init(|| unsafe { next(c"hsa_shut_down") }) else {
        return ERROR;
    };
    // SAFETY: there are no arguments.
    hsa_hooks::shut_down(|| unsafe { shut_down() })
}

/// See [`hsa_hooks::queue_create`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_queue_create(
    agent: u64,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorFn>,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut u64,
) -> Status {
    static NEXT: OnceLock<Option<QueueCreateFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let Some(create) = *NEXT.get_or_init(|| unsafe { next(c"hsa_queue_create") }) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    let call = || unsafe {
        create(
            agent,
            size,
            kind,
            callback,
            data,
            private_segment_size,
            group_segment_size,
            queue,
        )
    };
    // SAFETY: HSA's function writes the queue's address there.
    unsafe { hsa_hooks::queue_create(agent, queue, call) }
}

/// See [`hsa_hooks::queue_destroy`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_queue_destroy(queue: u64) -> Status {
    static NEXT: OnceLock<Option<QueueDestroyFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let Some(destroy) = *NEXT.get_or_init(|| unsafe { next(c"hsa_queue_destroy") }) else {
        return ERROR;
    };
    // SAFETY: the caller's argument, passed on.
    hsa_hooks::queue_destroy(queue, || unsafe { destroy(queue) })
}

/// Returns the address at which the program's calls of `hsa_executable_freeze` arrive.
fn freeze_entry() -> *const c_void {
    hsa_executable_freeze as *const c_void
}
