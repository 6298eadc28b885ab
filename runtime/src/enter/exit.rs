//! The exit handlers, and the constructor that registers the first of them.
//!
//! Handlers run in the reverse order of their registration (tested with glibc 2.36):
//!
//! | registered | runs |
//! |---|---|
//! | by the constructor of a preloaded library | after HIP's module destructors have destroyed the executables of static fat binaries, possibly after `hsa_shut_down` |
//! | when HSA starts or the first code object is loaded | before them: executables are alive |
//!
//! So librocov registers both: [`register_early`] in case a destructor crashes (HIP and its libraries
//! have done so), [`at_load`] for kernels that destructors still launch. The first drains everything in
//! one pass. The second skips code that has not run since.
#![expect(unsafe_code, reason = "registers exit handlers")]

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocov::device::hsa::is_loaded;

use super::{COPY, tool_table};
use crate::elect::interposer::Interposer;
use crate::guest::{boundary, elf_objects, process};
use crate::serve::{control, drain, kernel_wait};

/// Registers the late exit drain and the fork handlers. Does no more, because the process may never use
/// a GPU.
///
/// If the program is linked with ROCr ahead of this library, its calls of HSA do not pass our hooks.
/// ROCr 5.2 must then learn of us before it starts; later versions look for
/// [`tool_table::HSA_AMD_TOOL_PRIORITY`].
#[ctor::ctor(unsafe)]
fn at_load() {
    register(late);
    process::watch_forks(control::forked);
    let interposer = Interposer::now();
    if !process::came_in(interposer != Interposer::Unknown) {
        kernel_wait::are_all_seen();
    }
    tool_table::announce(interposer);
}

/// Registers the early exit drain when code that counts is loaded. It runs before the handlers that HIP
/// registered at its start. HIP also registers a handler when a library with device code is opened, so
/// this function registers the drain again after libraries were opened.
pub(super) fn register_early() {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let opened = elf_objects::opened();
    if OPENED.swap(opened, Ordering::Relaxed) != opened {
        register(early);
    }
}

/// Registers an exit drain when HSA starts, for a process whose loads no hook sees. If a hook sees them,
/// the drain does nothing: copying amid HIP's own takedown, which HIP registers later, makes HIP 5.7
/// corrupt its heap if a destructor launches a kernel after that.
pub(super) fn register_at_start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(unseen));
}

/// Runs `work` if there is something to drain and this copy drains.
fn at_exit(work: fn()) {
    process::exit_begins();
    if process::may_use_hsa() {
        control::close();
        // Most processes of a test suite use no GPU, and do no more than this. If no copy has seen an
        // event, one takes the office now.
        if is_loaded() && COPY.drains() && process::claim() {
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
    static ONCE: AtomicBool = AtomicBool::new(true);
    if !ONCE.swap(false, Ordering::Relaxed) {
        return;
    }
    boundary::guest("the exit drain", || at_exit(drain::exit_begins));
}

extern "C" fn unseen() {
    if !process::is_user() {
        boundary::guest("the exit drain", || at_exit(leave));
    }
}

extern "C" fn late() {
    process::exit_begins();
    // A program without a GPU may be in a sandbox that allows few calls.
    if !process::is_user() && !is_loaded() {
        return;
    }
    boundary::guest("the late exit drain", || at_exit(leave));
}

unsafe extern "C" {
    /// C11. The libc crate lacks it for glibc.
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}
