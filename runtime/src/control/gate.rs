//! When the thread may use HSA: not while it is being shut down, nor once the process is ending.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rocov::pauses::Pauses;

use crate::{config, process};

/// Locked while the thread uses HSA.
static GATE: Mutex<()> = Mutex::new(());

/// Whether HSA is being shut down.
static IS_PAUSED: AtomicBool = AtomicBool::new(false);

/// Whether the process is ending.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs `work`, unless HSA is going or gone.
pub(super) fn pass<T>(work: impl FnOnce() -> T) -> Option<T> {
    // Held meanwhile: that is what whoever shuts HSA down waits for.
    let _gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_shut = [&IS_PAUSED, &IS_CLOSED].map(|it| it.load(Ordering::Acquire));
    (is_shut == [false; 2]).then(work)
}

/// HSA is about to be shut down.
pub(crate) fn pause() {
    shut(&IS_PAUSED);
}

/// It was, or it has only lost one of its users.
pub(crate) fn resume() {
    if process::is_user() {
        IS_PAUSED.store(false, Ordering::Release);
    }
}

/// The process is ending.
pub(super) fn close() {
    shut(&IS_CLOSED);
}

/// Nobody passes from now on, whether or not who has passed comes back in time.
fn shut(what: &AtomicBool) {
    if process::is_user() {
        what.store(true, Ordering::Release);
        wait();
    }
}

/// Waits for what the thread is doing, but not for ever: where a library is closed (`dlclose`) whose
/// destructor shuts HSA down, the thread may be waiting for the dynamic linker's lock.
fn wait() {
    const LEAST: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(1);
    let is_taken = || matches!(GATE.try_lock(), Err(TryLockError::WouldBlock));
    if is_taken() {
        let mut pauses = Pauses::new(LEAST.max(config::patience()), PAUSE, PAUSE);
        while is_taken() && pauses.take() {}
    }
}
