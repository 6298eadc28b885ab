//! Signals: one that asks for a snapshot, and two that end programs, which are told to the thread
//! before they do what they did without us.
//!
//! A handler may have interrupted anything, an allocation or HSA with its lock held, so it does
//! nothing but wake the thread, and wait for it no longer than is reasonable. A handler that the
//! program installs later takes the place of ours: then the program decides.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{socket, wake};
use crate::{boundary, config, process};

/// Those that end programs which clean up.
const ENDING: [c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// What was in place before us.
static TERM: OnceLock<libc::sigaction> = OnceLock::new();
static INT: OnceLock<libc::sigaction> = OnceLock::new();
static SNAPSHOT: OnceLock<(c_int, libc::sigaction)> = OnceLock::new();

/// Whether a snapshot was asked for.
static WANTS_SNAPSHOT: AtomicBool = AtomicBool::new(false);
/// How long a handler waits, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(0);

type Handler = unsafe extern "C" fn(c_int);
type HandlerWithInfo = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Takes the signals that end programs, unless they are ignored, and the one for snapshots.
pub(super) fn take(snapshot: Option<c_int>) {
    // Twice, as the thread may be waiting for kernels on behalf of another when it is woken.
    let patience = (2 * config::patience()).max(Duration::from_secs(5));
    let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    PATIENCE.store(patience, Ordering::Relaxed);
    for signal in ENDING {
        let before = action(signal);
        if before.sa_sigaction != libc::SIG_IGN && of(signal).set(before).is_ok() {
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

/// Gives them back: in a forked child there is no thread to wake. Async-signal-safe.
pub(super) fn give_back() {
    let ending = ENDING.map(|signal| Some((signal, of(signal).get()?)));
    let snapshot = SNAPSHOT.get().map(|(signal, before)| (*signal, before));
    for (signal, before) in ending.into_iter().chain([snapshot]).flatten() {
        if action(signal).sa_sigaction == on_signal as *const () as usize {
            set_action(signal, before);
        }
    }
}

/// Whether a snapshot was asked for since this was last called.
pub(super) fn wants_snapshot() -> bool {
    WANTS_SNAPSHOT.swap(false, Ordering::AcqRel)
}

fn of(signal: c_int) -> &'static OnceLock<libc::sigaction> {
    match signal {
        libc::SIGTERM => &TERM,
        _ => &INT,
    }
}

fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: an all-zero action is valid: the default.
    let mut action = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and the action in force is stored.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    action
}

fn set_action(signal: c_int, action: &libc::sigaction) {
    // SAFETY: a valid action, whose handler stays: librocov is not unloaded.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Installs our handler with the flags and the mask of what it goes before: what is blocked
/// meanwhile, on which stack it runs, whether it is for one time.
fn install(signal: c_int, before: libc::sigaction) {
    let mut ours = before;
    ours.sa_sigaction = on_signal as *const () as usize;
    ours.sa_flags |= libc::SA_SIGINFO;
    if is_default(&before) {
        // Calls that it interrupts go on; a thread with a small stack may have another for signals.
        ours.sa_flags |= libc::SA_RESTART | libc::SA_ONSTACK;
    }
    set_action(signal, &ours);
}

fn is_default(action: &libc::sigaction) -> bool {
    action.sa_sigaction == libc::SIG_DFL
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let snapshot = SNAPSHOT.get().filter(|(its, _)| *its == signal);
    if let Some((_, before)) = snapshot {
        boundary::guest("a signal handler", || {
            WANTS_SNAPSHOT.store(true, Ordering::Release);
            wake::wake();
        });
        // Without a handler of the program's own, that is all that the signal is for.
        call(before, signal, info, context);
        return;
    }
    let before = of(signal).get();
    let dies = before.is_none_or(is_default);
    boundary::guest("a signal handler", || {
        // A child of vfork has handlers of its own, and the memory of its parent.
        if process::is_user() {
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
        // SAFETY: a handler that was installed for three arguments, and gets those of the kernel.
        unsafe { std::mem::transmute::<usize, HandlerWithInfo>(handler)(signal, info, context) };
    } else {
        // SAFETY: a handler that was installed for one argument.
        unsafe { std::mem::transmute::<usize, Handler>(handler)(signal) };
    }
}

/// Ends the process by this signal, as its default does: whoever waits for it sees that.
fn die(signal: c_int) {
    // SAFETY: an all-zero action is valid: the default.
    set_action(signal, &unsafe { std::mem::zeroed() });
    // SAFETY: the sets are valid; a signal that is raised while it is blocked, as it is in its
    // handler, arrives when it is not any more.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}
