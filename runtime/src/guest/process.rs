//! The state of this process: it uses HSA, does not use it yet, or is the forked child of a process
//! that does.
//!
//! Such a child inherits a runtime that claims to run but fails at every call, memory that it does not
//! own, and perhaps a lock that no thread will release. librocov leaves it alone. A child that was
//! forked before HSA started may start its own.
#![expect(unsafe_code, reason = "calls pthread_atfork, gettid and geteuid")]

use std::ffi::c_void;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rocov::device::hsa;
use rocov::support::diagnostic::diagnostic;

use super::elf_objects::{self, Object};
use super::environment::is_privileged;
use super::journal::{self, Note};
use super::{log, process_word};

/// The id of the process that uses HSA ([`claim`]); 0 if none does yet, as far as librocov has seen.
static USER: AtomicU32 = AtomicU32::new(0);
/// The number of calls of `hsa_init` that the hooks have seen begin, less those that failed and those
/// that `hsa_shut_down` has taken back.
static STARTS: AtomicU32 = AtomicU32::new(0);
/// Set if a call that no hook has seen started HSA.
static STARTED_UNSEEN: AtomicBool = AtomicBool::new(false);
/// Set if code can be loaded that no hook sees. Then only HSA itself knows if it runs.
static IS_LATE: AtomicBool = AtomicBool::new(false);
/// Set in the forked child of a process in which HSA was started, or just starting.
static IS_ORPHAN: AtomicBool = AtomicBool::new(false);
/// Set once exit handlers run.
static IS_EXITING: AtomicBool = AtomicBool::new(false);

/// Registers the fork handlers: this module's, and after it `in_child`. Both run in the child.
pub(crate) fn watch_forks(in_child: extern "C" fn()) {
    for handler in [forked, in_child] {
        // SAFETY: the handler is a function of this library.
        unsafe { libc::pthread_atfork(None, None, Some(handler)) };
    }
}

/// Does not ask HSA: while another thread starts it, it cannot answer, and may crash.
extern "C" fn forked() {
    if STARTS.load(Ordering::Relaxed) != 0 || STARTED_UNSEEN.load(Ordering::Relaxed) {
        IS_ORPHAN.store(true, Ordering::Relaxed);
    }
    process_word::forked();
    journal::forked();
}

/// Notes that librocov has come into the process. `sees_loads` says whether hooks will see the
/// program's calls of HSA. Returns whether HSA was running already.
pub(crate) fn came_in(sees_loads: bool) -> bool {
    let was_running = is_behind_hsa() && hsa::is_running();
    STARTED_UNSEEN.store(was_running, Ordering::Relaxed);
    IS_LATE.store(was_running || !sees_loads, Ordering::Relaxed);
    was_running
}

/// Returns whether the calling thread is the first of its process.
pub(crate) fn is_main_thread() -> bool {
    // SAFETY: has no preconditions.
    let thread = unsafe { libc::gettid() };
    u32::try_from(thread).is_ok_and(|thread| thread == process::id())
}

/// Returns whether HSA was loaded before this library. If not, the process is older than its use of
/// HSA.
fn is_behind_hsa() -> bool {
    let is_ours = |object: &Object| object.contains(is_behind_hsa as *const c_void);
    hsa::is_loaded()
        && elf_objects::all()
            .iter()
            .find(|object| is_ours(object) || object.defines(c"hsa_iterate_agents").is_some())
            .is_some_and(|first| !is_ours(first))
}

/// Notes that the program is about to call `hsa_init`.
pub(crate) fn starting() {
    journal::note(Note::Hip);
    STARTS.fetch_add(1, Ordering::Relaxed);
}

/// Notes that the program starts CUDA. A child that is forked later cannot use it.
pub(crate) fn starting_cuda() {
    journal::note(Note::Cuda);
    STARTS.fetch_add(1, Ordering::Relaxed);
}

/// Notes that a call of `hsa_init` has failed, or that `hsa_shut_down` has taken it back.
pub(crate) fn stopped() {
    let one_less = |starts: u32| starts.checked_sub(1);
    let _ = STARTS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
}

/// Notes that HSA itself reports its start. Returns whether no hook has seen the call that started it.
pub(crate) fn started() -> bool {
    let is_unseen = STARTS.load(Ordering::Relaxed) == 0;
    if is_unseen {
        journal::note(Note::Hip);
        STARTED_UNSEEN.store(true, Ordering::Relaxed);
    }
    is_unseen
}

/// Makes this process the one that uses HSA. Callers have seen code loaded, or HSA in a process where code
/// may have been loaded past the hooks. Returns false for the forked child of such a process, and for a
/// privileged program.
pub(crate) fn claim() -> bool {
    if !may_use_hsa() {
        return false;
    }
    if is_privileged() {
        warn_privileged();
        return false;
    }
    USER.store(process::id(), Ordering::Relaxed);
    true
}

/// Claims the process if HSA runs and code may have been loaded that no hook saw. Returns whether the
/// process is claimed.
///
/// If the hooks see all code, they claim the process when the first is loaded. Then HSA is not asked,
/// because another thread may just be starting it.
pub(crate) fn claim_running() -> bool {
    uses_hsa() || (may_use_hsa() && IS_LATE.load(Ordering::Relaxed) && hsa::is_running() && claim())
}

/// Returns whether HSA, if there is one, belongs to this process.
pub(crate) fn may_use_hsa() -> bool {
    // A child of vfork or clone has called no fork handler. Only its number shows that it is a child.
    let user = USER.load(Ordering::Relaxed);
    !IS_ORPHAN.load(Ordering::Relaxed) && (user == 0 || user == process::id())
}

/// Returns whether this process uses HSA: whether it has [claimed](claim) it. Needs one system call at most
/// and no lock: children of vfork ask too, and they share their parent's memory.
pub(crate) fn uses_hsa() -> bool {
    let user = USER.load(Ordering::Relaxed);
    user != 0 && user == process::id() && !IS_ORPHAN.load(Ordering::Relaxed)
}

/// The inode and the device of the root directory before a change of it, in one number; 0 before the first. The roots of
/// file systems of one kind often have one inode.
static ROOT: AtomicU64 = AtomicU64::new(0);

/// Notes the root directory, which the program may be about to change.
pub(crate) fn note_root() {
    let _ = ROOT.compare_exchange(0, root(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Returns whether the program has changed its root directory, as far as the calls were seen.
pub(crate) fn has_other_root() -> bool {
    let before = ROOT.load(Ordering::Relaxed);
    before != 0 && before != root()
}

fn root() -> u64 {
    fs::metadata("/").map_or(0, |found| {
        found.ino() ^ found.dev().rotate_left(u64::BITS / 2)
    })
}

/// Notes that exit handlers run.
pub(crate) fn exit_begins() {
    IS_EXITING.store(true, Ordering::Relaxed);
}

/// Returns whether exit handlers run.
pub(crate) fn is_exiting() -> bool {
    IS_EXITING.load(Ordering::Relaxed)
}

/// Returns the effective user id.
pub(crate) fn effective_user_id() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
}

fn warn_privileged() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::warn(diagnostic!(
            "this program has privileges that its user lacks (setuid, setgid, capabilities): rocov drains nothing";
            "run it without these privileges"
        ));
    });
}
