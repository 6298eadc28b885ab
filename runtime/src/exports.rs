//! The C interface, `rocov.h`, and the entry points of LLVM's own drain.

use std::ffi::{c_char, c_int, c_void};

use crate::election::{self, Event};
use crate::neighbour;

/// What a function of this library answers. A number is never given another meaning.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RocovStatus {
    /// Done.
    Ok = 0,
    /// There was nothing to do: no GPU is in use, or LLVM's own runtime drains this program.
    Nothing = 1,
    /// Some counts could not be read or written; standard error says which and why.
    Loss = 2,
    /// An argument is null, not UTF-8 or not a pattern; standard error says what.
    Invalid = 3,
    /// A fault of this library's own.
    Internal = 4,
}

impl RocovStatus {
    /// The status of a number that another build's copy answered.
    pub(crate) fn of_number(number: c_int) -> RocovStatus {
        match number {
            0 => RocovStatus::Ok,
            1 => RocovStatus::Nothing,
            2 => RocovStatus::Loss,
            3 => RocovStatus::Invalid,
            _ => RocovStatus::Internal,
        }
    }
}

/// The version of this library, such as "0.1.0": valid for ever, not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Writes the counts of every loaded code object now. Kernels may run meanwhile: what they count
/// later is written by the next drain, at the latest when the code object is unloaded or the
/// process exits. Nothing is counted twice.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_drain() -> RocovStatus {
    election::send(Event::Drain)
}

/// Zeroes the counters of every loaded code object on the device. What was drained before stays
/// written, and later counts are added to it; what was counted since is dropped.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_reset() -> RocovStatus {
    election::send(Event::Reset)
}

/// Sets the name pattern of profiles from now on, as LLVM_PROFILE_FILE has it; NULL goes back to
/// that variable. Files written under another name stay; counts go to the new name whole.
///
/// # Safety
/// `pattern` is null or NUL terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_set_file(pattern: *const c_char) -> RocovStatus {
    election::send(Event::SetFile(pattern))
}

/// Opens a window: only what is counted while one is open is written. What was counted before the
/// first is left out. The device's counters stay as they are.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_start() -> RocovStatus {
    election::send(Event::Start)
}

/// Closes the window, or all that came before the first: what was counted is written, and what is
/// counted from now on is left out until the next rocov_start. Kernels that still run are waited for
/// as long as ROCOV_WAIT says.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_stop() -> RocovStatus {
    election::send(Event::Stop)
}

/// Writes what was counted since the last dump or drain, or change of labels or windows, as a profile of
/// `label`, within the labels that are open: into labels/LABEL beside the other profiles. NULL takes
/// dump-1, dump-2 and so on. Each count is in one file alone: the sum of all files is what the device
/// has counted. Kernels are waited for as in rocov_stop. Answers ROCOV_STATUS_NOTHING where nothing
/// was counted.
///
/// # Safety
/// `label` is null or NUL terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_dump(label: *const c_char) -> RocovStatus {
    election::send(Event::Dump(label))
}

/// Opens a label, within the one that the calling thread has opened before: what is counted until its
/// end is written as profiles of that label. One to eight names with / between them, of at most 128
/// bytes each. While several threads have labels open, what is counted is of all of them, as GPU
/// counters do not tell which thread has launched a kernel. Kernels that run at its begin and end are
/// waited for as in rocov_stop.
///
/// A label that cannot be used answers ROCOV_STATUS_INVALID, and is to be closed all the same.
///
/// # Safety
/// `label` is null or NUL terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_label_push(label: *const c_char) -> RocovStatus {
    election::send(Event::LabelPush(label))
}

/// Closes the label that the calling thread has opened last; ROCOV_STATUS_NOTHING where it has none. What
/// a thread leaves open ends with it.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_label_pop() -> RocovStatus {
    election::send(Event::LabelPop)
}

/// For tools that are told of code objects by others, as by rocprofiler-sdk: one was loaded. It is
/// looked at, unless librocov's own hooks see it.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_code_loaded() -> RocovStatus {
    election::send(Event::CodeLoaded)
}

/// Likewise: a code object is about to be unloaded. What is loaded is drained once its kernels are done,
/// unless librocov's own hooks see that.
#[unsafe(no_mangle)]
pub extern "C" fn rocov_code_unloading() -> RocovStatus {
    election::send(Event::CodeUnloading)
}

/// LLVM's entry point for an early drain: returns 0, or -1 where counts were lost. Where LLVM's own
/// runtime drains this program, it gets the call, which may be one of its own.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_hip_collect_device_data() -> c_int {
    if let Some(llvms) = neighbour::exported_entry() {
        // SAFETY: LLVM's function, which takes no arguments.
        return unsafe { llvms() };
    }
    match rocov_drain() {
        RocovStatus::Ok | RocovStatus::Nothing => 0,
        _ => -1,
    }
}

/// Does nothing: objects compiled for LLVM's earlier drain, which was told of device variables,
/// link and run.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_shadow_variable(variable: *mut c_void) {
    let _ = variable;
}

/// Does nothing, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_section_shadow_variable(variable: *mut c_void) {
    let _ = variable;
}

/// Does nothing, likewise: modules are followed through HSA.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_dynamic_module(
    status: c_int,
    module: *mut *mut c_void,
    image: *const c_void,
) {
    let _ = (status, module, image);
}
