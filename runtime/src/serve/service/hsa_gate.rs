//! The thread's gate to HSA. It is shut while HSA is being shut down, and once the process is ending.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rocov::support::backoff::Pauses;

use crate::guest::{process, settings};

/// Locked while the thread uses HSA.
static GATE: Mutex<()> = Mutex::new(());

/// Set while HSA is being shut down.
static IS_PAUSED: AtomicBool = AtomicBool::new(false);

/// Set once the process is ending.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs `work`, unless the gate is shut.
pub(super) fn pass<T>(work: impl FnOnce() -> T) -> Option<T> {
    // Held during the work: the thread that shuts HSA down waits for it.
    let _gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_shut = [&IS_PAUSED, &IS_CLOSED].map(|flag| flag.load(Ordering::Acquire));
    (is_shut == [false; 2]).then(work)
}

/// Shuts the gate, because HSA is about to be shut down.
pub(crate) fn pause() {
    shut(&IS_PAUSED);
}

/// Opens the gate again: HSA was shut down, or has only lost one of its users.
pub(crate) fn resume() {
    if process::uses_hsa() {
        IS_PAUSED.store(false, Ordering::Release);
    }
}

/// Shuts the gate for good, because the process is ending.
pub(super) fn close() {
    shut(&IS_CLOSED);
}

/// Sets a flag, so that the thread does not pass from now on, and waits for it if it has passed.
fn shut(flag: &AtomicBool) {
    if process::uses_hsa() {
        flag.store(true, Ordering::Release);
        wait();
    }
}

/// Waits for the thread, but not forever. If a library is closed (`dlclose`) whose destructor shuts HSA
/// down, the thread may be waiting for the dynamic linker's lock.
fn wait() {
    const LEAST: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(1);
    let is_taken = || matches!(GATE.try_lock(), Err(TryLockError::WouldBlock));
    if is_taken() {
        let mut pauses = Pauses::new(LEAST.max(settings::patience()), PAUSE, PAUSE);
        while is_taken() && pauses.take() {}
    }
}
