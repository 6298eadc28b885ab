//! How a process ends, and who is called then.
//!
//! Handlers run in the reverse order of their registration (tested with glibc 2.36):
//!
//! | registered | runs |
//! |---|---|
//! | by the constructor of a preloaded library | after HIP's module destructors have destroyed the executables of static fat binaries, possibly after `hsa_shut_down` |
//! | when HSA starts or the first code object is loaded | before them: executables are alive |
//!
//! So both are registered: [`register_early`] for the case that something on the way down crashes
//! (HIP and its libraries have), [`at_load`] for what destructors still count. The first drains
//! everything in one pass. What nothing runs on after it, nobody copies again.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocov::hsa::is_loaded;

use crate::{boundary, control, hooks, lifecycle, objects, process, queues, table};

/// Registers the late exit drain. Only registers: the process may never use a GPU.
///
/// Where the program's calls of HSA do not pass our hooks, because it is linked with ROCr ahead of
/// this library, ROCr 5.2 must be told of us before it starts; later ones look for
/// [`crate::table::HSA_AMD_TOOL_PRIORITY`].
#[ctor::ctor(unsafe)]
fn at_load() {
    register(late);
    process::watch_forks();
    let first = hooks::first();
    if !process::came_in(first) {
        queues::are_all_seen();
    }
    table::announce(first);
}

/// Registers the early exit drain when a code object that counts is loaded: what HIP has
/// registered when it started runs after it. HIP also registers what unloads a library's code when
/// that library is opened, so this registers itself again after libraries were opened.
pub(crate) fn register_early() {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let opened = objects::opened();
    if OPENED.swap(opened, Ordering::Relaxed) != opened {
        register(early);
    }
}

/// Registers an exit drain when HSA starts, for a process whose loads are not seen. Where they are,
/// it has nothing to do: copying in the middle of HIP's own takedown, which HIP registers later,
/// makes HIP 5.7 corrupt its heap if a destructor launches a kernel after that.
pub(crate) fn register_at_start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(unseen));
}

static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// Whether exit handlers are being called.
pub(crate) fn is_under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed)
}

fn drain(work: fn()) {
    UNDER_WAY.store(true, Ordering::Relaxed);
    if process::may_use_hsa() {
        control::close();
        work();
    }
}

fn register(handler: extern "C" fn()) {
    // SAFETY: the handlers are functions of this library, which is never unloaded before exit:
    // a preloaded or linked object stays, and glibc runs the handlers of one that does not when
    // it goes.
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
    boundary::guest("the exit drain", || drain(lifecycle::exit_begins));
}

extern "C" fn unseen() {
    if !process::is_user() {
        boundary::guest("the exit drain", || drain(lifecycle::exiting));
    }
}

extern "C" fn late() {
    UNDER_WAY.store(true, Ordering::Relaxed);
    // A program that uses no GPU may be in a sandbox that allows it little.
    if !process::is_user() && !is_loaded() {
        return;
    }
    boundary::guest("the late exit drain", || drain(lifecycle::exiting));
}

unsafe extern "C" {
    /// C11; missing from the libc crate for glibc.
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}
