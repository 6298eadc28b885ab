//! The exit handlers, and the constructor that registers the first of them.
//!
//! Handlers run in the reverse order of their registration (tested with glibc 2.36):
//!
//! | registered | runs |
//! |---|---|
//! | by the constructor of a preloaded library | after HIP's module destructors have destroyed the executables of static fat binaries, possibly after `hsa_shut_down` |
//! | when HSA starts or code is loaded | before them: executables are alive |
//!
//! So librocov registers a handler at each of these times:
//!
//! - [`at_load`] registers the late drain, for kernels that destructors still launch.
//! - [`register_early`] registers the early drain, in case a destructor crashes (HIP and its libraries have
//!   done so).
//! - [`register_at_start`] registers a drain for a process whose loads no hook sees.
//!
//! Each drain skips code if it knows that the code has not run since the drain before.
#![expect(unsafe_code, reason = "registers exit handlers")]

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocov::device::hsa::is_loaded;

use super::{COPY, exchange, injection, tool_table};
use crate::elect::interposer::Interposer;
use crate::guest::{boundary, elf_objects, process};
use crate::serve::{drain, kernel_wait, service};

/// Registers the late exit drain and the fork handlers, and notes whether HSA runs already and whether our
/// hooks will see its calls. Does nothing on a GPU and starts no thread, because the process may never use
/// a GPU.
///
/// If the program is linked with ROCr ahead of this library, its calls of HSA do not pass our hooks.
/// ROCr 5.2 must then learn of us before it starts, by a variable of the environment. Later versions look
/// for [`tool_table::HSA_AMD_TOOL_PRIORITY`].
#[ctor::ctor(unsafe)]
fn at_load() {
    register(late);
    process::watch_forks(service::forked);
    let interposer = Interposer::now();
    if !process::came_in(interposer != Interposer::Unknown) {
        kernel_wait::note_all_seen();
    }
    tool_table::announce(interposer);
}

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

/// Registers an exit drain when HSA starts, for a process whose loads no hook sees. If a hook has seen one,
/// this drain does nothing: HIP registers its own takedown later, and copying amid it makes HIP 5.7 corrupt
/// its heap if a destructor launches a kernel after that.
pub(super) fn register_at_start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(unseen));
}

/// Ends the service for requests from outside, and runs `work` if this process may use an HSA runtime that is
/// loaded, or has used one, and this copy is the drainer. Claims that role if no copy has it. LLVM's offload
/// runtime unloads HSA before the last handler runs.
fn at_exit(work: fn()) {
    process::exit_begins();
    if process::may_use_hsa() {
        service::close();
        // Most processes of a test suite use no GPU, and do no more than this. If no copy has seen an
        // event, one becomes the drainer now.
        let has_used_hsa = is_loaded() || process::uses_hsa();
        if has_used_hsa && COPY.claim_drain() && process::claim() {
            work();
        }
    }
}

/// Drains everything that was seen, and looks for code that was loaded past the hooks.
fn leave() {
    drain::leaving();
}

fn register(handler: extern "C" fn()) {
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
            injection::watch_launches();
            at_exit(drain::exit_begins);
        });
    }
}

extern "C" fn unseen() {
    if !process::uses_hsa() {
        boundary::guest("the exit drain", || at_exit(leave));
    }
}

extern "C" fn late() {
    process::exit_begins();
    injection::report_other_tool();
    exchange::report_losses();
    // A program without a GPU may be in a sandbox that allows few calls.
    if !process::uses_hsa() && !is_loaded() {
        return;
    }
    boundary::guest("the late exit drain", || at_exit(leave));
}

unsafe extern "C" {
    /// C11. The libc crate lacks it for glibc.
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}
