//! HSA's functions, interposed: the program's calls pass through here.
//!
//! HIP calls ROCr through its exported stubs. The dynamic linker finds a definition in a preloaded
//! library, or in the executable, before ROCr's own, even for libamdhip64's versioned references
//! (`@ROCR_1`). If HIP does not find ours, [`super::tool_table`] serves instead.
#![expect(unsafe_code, reason = "defines and calls functions of HSA")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use rocov::device::hsa::abi::Status;

use super::code_objects::{self, FromFileFn, FromMemoryFn, LoadFn, ReaderDestroyFn};
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

/// See [`code_objects::from_memory`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_code_object_reader_create_from_memory(
    code: *const c_void,
    size: usize,
    reader: *mut u64,
) -> Status {
    static NEXT: OnceLock<Option<FromMemoryFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let find = || unsafe { next(c"hsa_code_object_reader_create_from_memory") };
    let Some(from_memory) = *NEXT.get_or_init(find) else {
        return ERROR;
    };
    let hook = hsa_code_object_reader_create_from_memory as *const c_void;
    // SAFETY: the caller's arguments, passed on.
    unsafe { code_objects::from_memory(hook, from_memory, code, size, reader) }
}

/// See [`code_objects::from_file`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_code_object_reader_create_from_file(
    file: c_int,
    reader: *mut u64,
) -> Status {
    static NEXT: OnceLock<Option<FromFileFn>> = OnceLock::new();
    static MEMORY: OnceLock<Option<FromMemoryFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the functions with these types.
    let find = || unsafe { next(c"hsa_code_object_reader_create_from_file") };
    // SAFETY: as above.
    let find_other = || unsafe { next(c"hsa_code_object_reader_create_from_memory") };
    let (Some(from_file), Some(from_memory)) =
        (*NEXT.get_or_init(find), *MEMORY.get_or_init(find_other))
    else {
        return ERROR;
    };
    let hook = hsa_code_object_reader_create_from_file as *const c_void;
    // SAFETY: the caller's arguments, passed on.
    unsafe { code_objects::from_file(hook, from_file, from_memory, file, reader) }
}

/// See [`code_objects::reader_destroy`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_code_object_reader_destroy(reader: u64) -> Status {
    static NEXT: OnceLock<Option<ReaderDestroyFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let find = || unsafe { next(c"hsa_code_object_reader_destroy") };
    let Some(destroy) = *NEXT.get_or_init(find) else {
        return ERROR;
    };
    // SAFETY: the caller's argument, passed on.
    code_objects::reader_destroy(reader, || unsafe { destroy(reader) })
}

/// See [`code_objects::load`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_load_agent_code_object(
    executable: u64,
    agent: u64,
    reader: u64,
    options: *const c_char,
    loaded: *mut u64,
) -> Status {
    static NEXT: OnceLock<Option<LoadFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function with this type.
    let find = || unsafe { next(c"hsa_executable_load_agent_code_object") };
    let Some(load) = *NEXT.get_or_init(find) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    code_objects::load(executable, reader, || unsafe {
        load(executable, agent, reader, options, loaded)
    })
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
