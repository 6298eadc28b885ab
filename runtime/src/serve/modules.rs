//! The modules of the CUDA driver that are loaded, the events that wait for the driver's locks, and the number of launches.
//!
//! [`State::catch_up`]: super::state::State::catch_up

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rocov::device::Executable;
use rocov::device::cuda::modules::Modules;

/// Returns the modules of the process that count.
pub(super) fn modules() -> &'static Arc<Modules> {
    static MODULES: OnceLock<Arc<Modules>> = OnceLock::new();
    MODULES.get_or_init(Arc::default)
}

/// An event that came while the driver held locks.
pub(super) enum Late {
    /// An instrumented module was loaded by code in this file.
    Loaded(Executable, Option<PathBuf>),
    /// A module has gone.
    Gone(Executable),
}

/// The events for [`State::catch_up`], in their order. Never locked during a call of the driver.
pub(super) fn late() -> MutexGuard<'static, Vec<Late>> {
    static LATE: Mutex<Vec<Late>> = Mutex::new(Vec::new());
    LATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of launches since they are watched, plus 1; 0 before.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Notes that launches are watched from now on.
pub(crate) fn watch_launches() {
    let _ = LAUNCHES.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
}

/// Notes a launch.
pub(crate) fn launched() {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
}

/// Returns a number that is equal at two moments if nothing was launched between them. `None` if launches are not watched.
pub(super) fn moment() -> Option<u64> {
    Some(LAUNCHES.load(Ordering::Relaxed)).filter(|number| *number > 0)
}
