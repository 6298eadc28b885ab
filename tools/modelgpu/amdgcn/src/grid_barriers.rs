//! The barriers of all workgroups of a dispatch (global wave sync).

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The resources of a queue.
pub(crate) const RESOURCES: usize = 64;

/// The barriers of a queue. They outlast a dispatch: a kernel of the runtime initialises them for the
/// next one.
#[derive(Debug)]
pub(crate) struct GridBarriers(Mutex<[Resource; RESOURCES]>);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resource {
    /// Waves that must still come before the last one.
    pub missing: u32,
    /// The number of times that all waves came.
    pub rounds: u32,
}

/// A wave's wait at a barrier: the rounds of the barrier when the wave came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridWait(pub(crate) u32);

impl Default for GridBarriers {
    fn default() -> Self {
        Self(Mutex::new([Resource::default(); RESOURCES]))
    }
}

impl GridBarriers {
    pub(crate) fn lock(&self) -> MutexGuard<'_, [Resource; RESOURCES]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
