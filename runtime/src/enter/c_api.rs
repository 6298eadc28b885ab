//! The C interface, `rocov.h`, and the entry points of LLVM's own drain.
#![expect(unsafe_code, reason = "exports functions")]

use std::ffi::{c_char, c_int, c_void};

use super::copy::send;
use super::gtest;
use crate::elect::event::Event;
use crate::elect::llvm_drain;
use crate::guest::status::RocovStatus;

/// Returns the version of this library, such as "0.1.0". The string remains valid; do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Immediately writes the counts of every loaded code object, even if kernels are running. Their later counts are
/// written by the next drain, at the latest when the code object is unloaded or the process exits. Nothing is counted
/// twice.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_drain() -> RocovStatus {
    send(Event::Drain)
}

/// Zeroes the counters of every loaded code object on the device. Counts that have already been drained stay in their
/// files, and later counts are added to them. Counts since the last drain are discarded.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_reset() -> RocovStatus {
    send(Event::Reset)
}

/// Sets the name pattern of profiles from now on, in the format of LLVM_PROFILE_FILE. NULL restores the
/// pattern of that variable. Files with the old name are kept, and the files with the new name contain
/// all counts.
///
/// # Safety
/// `pattern` is null or NUL terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_set_file(pattern: *const c_char) -> RocovStatus {
    send(Event::SetFile(pattern))
}

/// Opens a window. rocov then writes only counts from inside windows, and discards all counts before the first one. The
/// counters on the device do not change.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_start() -> RocovStatus {
    send(Event::Start)
}

/// Closes the window, or ends the period before the first window. Writes the counts of that period, and leaves out
/// later counts until the next rocov_start. Waits for running kernels, but no longer than ROCOV_WAIT.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_stop() -> RocovStatus {
    send(Event::Stop)
}

/// Writes the counts since the last dump or drain, or since labels or windows last changed, as a profile with the label
/// `label` inside the open labels. The profile goes to labels/LABEL next to the other profiles. If `label` is NULL, the
/// labels are dump-1, dump-2 and so on. Each count is in only one file, so the sum over all files is the count on the
/// device. Waits for kernels in the same way as rocov_stop. Returns ROCOV_STATUS_NOTHING if nothing was counted.
///
/// # Safety
/// `label` is null or NUL terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_dump(label: *const c_char) -> RocovStatus {
    send(Event::Dump(label))
}

/// Opens a label inside the last open label of the calling thread. rocov writes the counts up to the end of the label
/// as profiles with that label. A label consists of one to eight names separated by /, of at most 128 bytes each. GPU
/// counters do not show which thread launched a kernel, so while several threads have open labels, counts belong to all
/// of these labels. Waits for kernels at both ends in the same way as rocov_stop.
///
/// Returns ROCOV_STATUS_INVALID for a label that cannot be used. Close that one, too.
///
/// # Safety
/// `label` is null or NUL terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_label_push(label: *const c_char) -> RocovStatus {
    // SAFETY: null or NUL terminated, as the caller promises.
    unsafe { gtest::sees_push(label) };
    send(Event::LabelPush(label))
}

/// Closes the last label that the calling thread opened. Returns ROCOV_STATUS_NOTHING if no label is open. When a
/// thread ends, its open labels are closed.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_label_pop() -> RocovStatus {
    gtest::sees_pop();
    send(Event::LabelPop)
}

/// Notifies librocov that a code object was loaded. This is for tools that get this information from another source,
/// such as rocprofiler-sdk. Does nothing if librocov's own hooks intercept loads.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_code_loaded() -> RocovStatus {
    send(Event::CodeLoaded)
}

/// Notifies librocov that the GPU has stopped a kernel permanently, and why. The reason goes into the registry, and
/// reports show it. Later drains do not wait for kernels. This is for simulators and debuggers, because a GPU does not
/// report reasons.
///
/// # Safety
/// `reason` is NUL terminated UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_kernel_stopped(reason: *const c_char) -> RocovStatus {
    send(Event::KernelStopped(reason))
}

/// Notifies librocov that a code object is about to be unloaded. Waits for kernels and drains all loaded code. Does
/// nothing if librocov's own hooks intercept unloads.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_code_unloading() -> RocovStatus {
    send(Event::CodeUnloading)
}

/// LLVM's entry point for an early drain. Returns 0, or -1 if counts were lost. If LLVM's own runtime drains this
/// program, also passes the call on to it, because the call may be meant for it.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_hip_collect_device_data() -> c_int {
    let drained = match rocov_drain() {
        RocovStatus::Ok | RocovStatus::Nothing => 0,
        _ => -1,
    };
    match llvm_drain::exported_entry() {
        // SAFETY: this is LLVM's function, which takes no arguments.
        Some(llvms) => drained.min(unsafe { llvms() }),
        None => drained,
    }
}

/// Does nothing. Objects that were compiled for LLVM's earlier drain, which registered device variables,
/// need it to link and run.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_shadow_variable(variable: *mut c_void) {
    let _ = variable;
}

/// Does nothing. Objects for LLVM's earlier drain need it to link.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_section_shadow_variable(variable: *mut c_void) {
    let _ = variable;
}

/// Does nothing: librocov follows modules through HSA. Objects for LLVM's earlier drain need it to link.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_dynamic_module(
    status: c_int,
    module: *mut *mut c_void,
    image: *const c_void,
) {
    let _ = (status, module, image);
}
