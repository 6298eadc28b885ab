//! Which process this is: one that uses HSA, one that does not yet, or a forked child of one that
//! does.
//!
//! Such a child inherits a runtime that says it is running and whose every call fails, memory that
//! it does not have, and perhaps a lock that nobody will release: it is left alone. A child that
//! was forked before HSA was started may start its own.

use std::ffi::c_void;
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rocov::hsa;

use crate::hooks::First;
use crate::journal::Note;
use crate::{control, journal, log, objects};

/// The process that has loaded code objects, 0 before the first.
static USER: AtomicU32 = AtomicU32::new(0);
/// The program's calls of `hsa_init` that the hooks have seen begin, less those that failed and
/// those that it has taken back.
static STARTS: AtomicU32 = AtomicU32::new(0);
/// Whether HSA was started by a call that no hook has seen.
static STARTED_UNSEEN: AtomicBool = AtomicBool::new(false);
/// Whether code can be loaded that no hook sees: HSA has to be asked whether it runs.
static IS_LATE: AtomicBool = AtomicBool::new(false);
/// Whether this is a forked child of a process in which HSA was started, or just starting.
static IS_ORPHAN: AtomicBool = AtomicBool::new(false);

/// Registers what is to happen at a fork. Only registers: there may never be one.
pub(crate) fn watch_forks() {
    // SAFETY: the handler is a function of this library.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// HSA is not asked: while another thread starts it, it cannot answer, and may crash.
extern "C" fn in_child() {
    if STARTS.load(Ordering::Relaxed) != 0 || STARTED_UNSEEN.load(Ordering::Relaxed) {
        IS_ORPHAN.store(true, Ordering::Relaxed);
    }
    control::forked();
    journal::forked();
}

/// librocov has come into the process, where `first` gets the program's calls of HSA: HSA may be
/// running already, which is answered.
pub(crate) fn came_in(first: First) -> bool {
    let was_running = is_behind_hsa() && hsa::is_running();
    STARTED_UNSEEN.store(was_running, Ordering::Relaxed);
    IS_LATE.store(was_running || first == First::Nobody, Ordering::Relaxed);
    was_running
}

/// Whether HSA was loaded before this library. If not, the process is older than its use of HSA.
fn is_behind_hsa() -> bool {
    let is_ours = |object: &objects::Object| object.contains(is_behind_hsa as *const c_void);
    hsa::is_loaded()
        && objects::all()
            .iter()
            .find(|object| is_ours(object) || object.defines(c"hsa_iterate_agents").is_some())
            .is_some_and(|first| !is_ours(first))
}

/// The program is about to call `hsa_init`.
pub(crate) fn starting() {
    journal::note(Note::Hip);
    STARTS.fetch_add(1, Ordering::Relaxed);
}

/// That call has failed, or was taken back by `hsa_shut_down`.
pub(crate) fn stopped() {
    let one_less = |starts: u32| starts.checked_sub(1);
    let _ = STARTS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
}

/// HSA itself says that it starts.
pub(crate) fn started() {
    if STARTS.load(Ordering::Relaxed) == 0 {
        STARTED_UNSEEN.store(true, Ordering::Relaxed);
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

/// The same where librocov may have come in when code was loaded already: if HSA is running. Else
/// the process is a user once the hooks have seen code loaded; HSA is not asked, as another thread
/// may just be starting it.
pub(crate) fn claim_running() -> bool {
    is_user() || (may_use_hsa() && IS_LATE.load(Ordering::Relaxed) && hsa::is_running() && claim())
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

/// The effective user.
pub(crate) fn user() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
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
