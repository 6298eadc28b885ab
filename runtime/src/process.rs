//! Which process this is: one that uses HSA, one that does not yet, or a forked child of one that
//! does.
//!
//! Such a child inherits a runtime that says it is running and whose every call fails, memory that
//! it does not have, and perhaps a lock that nobody will release: it is left alone. A child that
//! was forked before HSA was started may start its own.

use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rocov::hsa;

use crate::{boundary, log};

/// The process that has loaded code objects, 0 before the first.
static USER: AtomicU32 = AtomicU32::new(0);
/// Whether HSA was running when the process forked last.
static WAS_RUNNING: AtomicBool = AtomicBool::new(false);
/// Whether this is a forked child of a process in which it was.
static IS_ORPHAN: AtomicBool = AtomicBool::new(false);

/// Registers what is to happen at a fork. Only registers: there may never be one.
pub(crate) fn watch_forks() {
    // SAFETY: the handlers are functions of this library.
    unsafe { libc::pthread_atfork(Some(before_fork), None, Some(in_child)) };
}

/// Asked before, as the child could wait for a lock of the dynamic linker for ever.
extern "C" fn before_fork() {
    boundary::guest("fork", || {
        WAS_RUNNING.store(hsa::is_running(), Ordering::Relaxed)
    });
}

extern "C" fn in_child() {
    if WAS_RUNNING.load(Ordering::Relaxed) {
        IS_ORPHAN.store(true, Ordering::Relaxed);
    }
}

/// Makes this process the one that uses HSA. False for a forked child of one that did, and for a
/// program that must not be drained.
pub(crate) fn claim() -> bool {
    if !may_use_hsa() {
        return false;
    }
    if is_privileged() {
        say_privileged();
        return false;
    }
    USER.store(process::id(), Ordering::Relaxed);
    true
}

/// Whether HSA, if there is one, is this process's own.
pub(crate) fn may_use_hsa() -> bool {
    // A child of vfork or clone has called no handler; it can only be told by its number.
    let user = USER.load(Ordering::Relaxed);
    !IS_ORPHAN.load(Ordering::Relaxed) && (user == 0 || user == process::id())
}

/// Whether this process has loaded code objects. Costs a system call at most, and takes no lock:
/// also children of vfork ask, which share their parent's memory.
pub(crate) fn is_user() -> bool {
    let user = USER.load(Ordering::Relaxed);
    user != 0 && user == process::id() && !IS_ORPHAN.load(Ordering::Relaxed)
}

/// Whether the program has rights that whoever started it has not: setuid, setgid, file capabilities.
/// The kernel tells, as `AT_SECURE`. Files that are written with such rights, where the environment and
/// the working directory of the other say, are a way to damage the system: none are.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: reads what the kernel handed to the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn say_privileged() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::warn(format_args!(
            "this program has rights that its user has not (setuid, setgid, capabilities): nothing is \
             drained"
        ));
    });
}
