//! Signal handlers: for the signal that asks for a snapshot, and for two that end programs. They tell the
//! thread, and then do what the signal did without librocov.
//!
//! A handler may have interrupted anything: an allocation, or HSA with its lock held. So it only wakes
//! the thread, and waits for it for a limited time. A handler that the program installs later takes the
//! place of ours: then the program decides.
#![expect(unsafe_code, reason = "installs and calls signal handlers")]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{socket, wake};
use crate::guest::{boundary, process, settings};

/// The signals that end programs, but let them clean up.
const ENDING: [c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// The actions before ours.
static TERM: OnceLock<libc::sigaction> = OnceLock::new();
static INT: OnceLock<libc::sigaction> = OnceLock::new();
static SNAPSHOT: OnceLock<(c_int, libc::sigaction)> = OnceLock::new();

/// Set if a signal has requested a snapshot.
static WANTS_SNAPSHOT: AtomicBool = AtomicBool::new(false);
/// The time that a handler waits, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(0);

type Handler = unsafe extern "C" fn(c_int);
type HandlerWithInfo = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Installs handlers for the signals that end programs, unless they are ignored, and for the one that asks
/// for snapshots.
pub(super) fn take(snapshot: Option<c_int>) {
    // Twice, because the thread may be waiting for kernels for another request when it is woken.
    let patience = (2 * settings::patience()).max(Duration::from_secs(5));
    let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    PATIENCE.store(patience, Ordering::Relaxed);
    for signal in ENDING {
        let before = action(signal);
        if before.sa_sigaction != libc::SIG_IGN && before_of(signal).set(before).is_ok() {
            install(signal, before);
        }
    }
    if let Some(signal) = snapshot {
        let before = action(signal);
        if SNAPSHOT.set((signal, before)).is_ok() {
            install(signal, before);
        }
    }
}

/// Restores the actions before ours, in a forked child without a thread. Async-signal-safe.
pub(super) fn give_back() {
    let ending = ENDING.map(|signal| Some((signal, before_of(signal).get()?)));
    let snapshot = SNAPSHOT.get().map(|(signal, before)| (*signal, before));
    for (signal, before) in ending.into_iter().chain([snapshot]).flatten() {
        if action(signal).sa_sigaction == on_signal as *const () as usize {
            set_action(signal, before);
        }
    }
}

/// Returns whether a signal has requested a snapshot since the last call.
pub(super) fn wants_snapshot() -> bool {
    WANTS_SNAPSHOT.swap(false, Ordering::AcqRel)
}

/// Returns the place for the action before ours.
fn before_of(signal: c_int) -> &'static OnceLock<libc::sigaction> {
    match signal {
        libc::SIGTERM => &TERM,
        _ => &INT,
    }
}

fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: an all-zero action is valid: the default.
    let mut action = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and stores the present action.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    action
}

fn set_action(signal: c_int, action: &libc::sigaction) {
    // SAFETY: the action is valid and its handler stays, because librocov is not unloaded.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Installs our handler with the flags and the mask of the action before it: the blocked signals, the
/// stack, the number of times.
fn install(signal: c_int, before: libc::sigaction) {
    let mut ours = before;
    ours.sa_sigaction = on_signal as *const () as usize;
    ours.sa_flags |= libc::SA_SIGINFO;
    if is_default(&before) {
        // Interrupted calls continue. A thread with a small stack may have another one for signals.
        ours.sa_flags |= libc::SA_RESTART | libc::SA_ONSTACK;
    }
    set_action(signal, &ours);
}

fn is_default(action: &libc::sigaction) -> bool {
    action.sa_sigaction == libc::SIG_DFL
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let snapshot = SNAPSHOT.get().filter(|(number, _)| *number == signal);
    if let Some((_, before)) = snapshot {
        boundary::guest("a signal handler", || {
            WANTS_SNAPSHOT.store(true, Ordering::Release);
            wake::wake();
        });
        // The program's own handler runs too, if there is one.
        call(before, signal, info, context);
        return;
    }
    let before = before_of(signal).get();
    let dies = before.is_none_or(is_default);
    boundary::guest("a signal handler", || {
        // A child of vfork has handlers of its own, and the memory of its parent.
        if process::uses_hsa() {
            let patience = PATIENCE.load(Ordering::Relaxed);
            wake::drain_within(Duration::from_millis(patience));
            if dies {
                socket::remove();
            }
        }
    });
    match before {
        Some(before) if !dies => call(before, signal, info, context),
        _ => die(signal),
    }
}

/// Calls the program's own handler, if it has one.
fn call(action: &libc::sigaction, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = action.sa_sigaction;
    if matches!(handler, libc::SIG_DFL | libc::SIG_IGN) {
        return;
    }
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the handler was installed for three arguments, and gets those of the kernel.
        unsafe { std::mem::transmute::<usize, HandlerWithInfo>(handler)(signal, info, context) };
    } else {
        // SAFETY: the handler was installed for one argument.
        unsafe { std::mem::transmute::<usize, Handler>(handler)(signal) };
    }
}

/// Ends the process by this signal, as its default action does. The parent sees the signal.
fn die(signal: c_int) {
    // SAFETY: an all-zero action is valid: the default.
    set_action(signal, &unsafe { std::mem::zeroed() });
    // SAFETY: the sets are valid. A handler's own signal is blocked; a raised signal arrives once it is
    // unblocked.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}
