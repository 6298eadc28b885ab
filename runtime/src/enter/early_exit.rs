//! The early exit drain, which the drainer registers when instrumented code is loaded, and what all exit drains share. See
//! [`exit`](super::exit) for the order of exit handlers.
#![expect(unsafe_code, reason = "registers exit handlers")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocov::device::ModelledDevice;
use rocov::device::hsa::is_loaded;

use super::cupti;
use crate::guest::{boundary, elf_objects, process};
use crate::serve::{drain, service};

/// Registers the early exit drain when instrumented code is loaded. It runs before the handlers that HIP
/// registered at its start. HIP also registers a handler when a library with device code is opened, so
/// this function registers the drain again after libraries were opened.
pub(super) fn register_early() {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let opened = elf_objects::opened();
    if OPENED.swap(opened, Ordering::Relaxed) != opened {
        register(early);
    }
}

/// Ends the service for requests from outside, and runs `work` if this process may use an HSA runtime that is
/// loaded, or has used one or a modelled GPU, and `is_drainer` says that this copy drains. LLVM's offload
/// runtime unloads HSA before the last handler runs.
pub(super) fn at_exit(is_drainer: impl FnOnce() -> bool, work: fn()) {
    process::exit_begins();
    if process::may_use_hsa() {
        service::close();
        // Most processes of a test suite use no GPU, and do no more than this. If no copy has seen an
        // event, one becomes the drainer now.
        let has_used_gpu = process::uses_hsa() || has_run_kernels();
        if has_used_gpu && is_drainer() && process::claim() {
            work();
        }
    }
}

/// Returns whether the process may have run kernels: it has loaded an HSA runtime, or has driven a modelled GPU without one.
pub(super) fn has_run_kernels() -> bool {
    is_loaded() || ModelledDevice::attach().is_some()
}

pub(super) fn register(handler: extern "C" fn()) {
    // SAFETY: the handlers are functions of this library. A preloaded or linked library stays to the
    // end; glibc runs the handlers of any other library when it unloads it.
    unsafe {
        libc::atexit(handler);
        at_quick_exit(handler);
    }
}

extern "C" fn early() {
    // It may be registered several times.
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    if !HAS_RUN.swap(true, Ordering::Relaxed) {
        boundary::guest("the exit drain", || {
            cupti::watch_launches();
            // The drainer alone has registered this handler.
            at_exit(|| true, drain::exit_begins);
        });
    }
}

unsafe extern "C" {
    /// C11. The libc crate lacks it for glibc.
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}
