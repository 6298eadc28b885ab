//! When the thread may use HSA: not while it is being shut down, nor once the process is ending.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{config, process};

/// Locked while the thread uses HSA.
static GATE: Mutex<Gate> = Mutex::new(Gate {
    is_paused: false,
    is_closed: false,
});

struct Gate {
    is_paused: bool,
    is_closed: bool,
}

/// Runs `work`, unless HSA is going or gone.
pub(super) fn pass<T>(work: impl FnOnce() -> T) -> Option<T> {
    let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_open = !gate.is_paused && !gate.is_closed;
    // Under the lock: that is what whoever shuts HSA down waits for.
    is_open.then(work)
}

/// HSA is about to be shut down.
pub(crate) fn pause() {
    change(|gate| gate.is_paused = true);
}

/// It was, or it has only lost one of its users.
pub(crate) fn resume() {
    change(|gate| gate.is_paused = false);
}

/// The process is ending.
pub(super) fn close() {
    change(|gate| gate.is_closed = true);
}

fn change(change: impl FnOnce(&mut Gate)) {
    if process::is_user()
        && let Some(mut gate) = lock()
    {
        change(&mut gate);
    }
}

/// Waits for what the thread is doing, but not for ever: where a library is closed (`dlclose`) whose
/// destructor shuts HSA down, the thread may be waiting for the dynamic linker's lock.
fn lock() -> Option<MutexGuard<'static, Gate>> {
    const LEAST: Duration = Duration::from_secs(5);
    let mut until = None;
    loop {
        match GATE.try_lock() {
            Ok(gate) => return Some(gate),
            Err(TryLockError::Poisoned(gate)) => return Some(gate.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        let until = until.get_or_insert_with(|| Instant::now() + LEAST.max(config::patience()));
        if Instant::now() > *until {
            return None;
        }
        sleep(Duration::from_millis(1));
    }
}
