//! Limits the wait for copies, and remembers the copies that did not end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::{DeviceError, DeviceRange};

/// The state of a process's copies, shared by all its devices.
///
/// A copy that does not end cannot be cancelled. Its host memory stays allocated and locked, and nobody reads
/// it. Its device memory must not be freed either: ask [`Copying::may_touch`]. rocov copies nothing more from
/// or to the agent, because every later copy would have to wait behind that one.
#[derive(Debug)]
pub struct Copying {
    patience: Duration,
    /// Handles of agents with a copy that did not end.
    stuck: Mutex<Vec<u64>>,
    /// Device memory that abandoned copies may still read or write.
    abandoned: Mutex<Vec<DeviceRange>>,
}

impl Copying {
    /// The shortest wait. A user who does not wait for kernels still wants copies.
    const LEAST: Duration = Duration::from_secs(1);

    /// Makes a limit: a wait ends after `patience`, or at least a second, without progress. The largest
    /// section takes some 10 milliseconds of a PCIe 4 link. The rest is for copies of the program itself.
    #[must_use]
    pub fn with_patience(patience: Duration) -> Self {
        Self {
            patience: patience.max(Self::LEAST),
            stuck: Mutex::default(),
            abandoned: Mutex::default(),
        }
    }

    /// Forgets all stuck copies, because the runtime is gone.
    pub fn forget_all(&self) {
        self.stuck().clear();
        self.abandoned().clear();
    }

    /// Returns whether an abandoned copy may still read or write the device memory `range`, or any if `None`.
    #[must_use]
    pub fn may_touch(&self, range: Option<DeviceRange>) -> bool {
        let abandoned = self.abandoned();
        match range {
            None => !abandoned.is_empty(),
            Some(range) => abandoned.iter().any(|used| used.overlaps(&range)),
        }
    }

    /// Marks copies from or to these ranges as abandoned.
    pub(super) fn abandon(&self, ranges: &[DeviceRange]) {
        self.abandoned().extend_from_slice(ranges);
    }

    /// The time to wait for `agent` without progress. Zero if the agent was stuck before.
    pub(super) fn patience_with(&self, agent: u64) -> Duration {
        match self.stuck().contains(&agent) {
            true => Duration::ZERO,
            false => self.patience,
        }
    }

    /// Fails if `agent` has a copy that did not end.
    pub(super) fn check(&self, agent: u64) -> Result<(), DeviceError> {
        match self.stuck().contains(&agent) {
            true => Err(self.stuck_on(agent)),
            false => Ok(()),
        }
    }

    /// Marks `agent` as stuck.
    pub(super) fn give_up(&self, agent: u64) {
        let mut stuck = self.stuck();
        if !stuck.contains(&agent) {
            stuck.push(agent);
        }
    }

    /// The error for a stuck `agent`.
    pub(super) fn stuck_on(&self, agent: u64) -> DeviceError {
        DeviceError::Stuck {
            agent,
            waited: self.patience,
        }
    }

    fn stuck(&self) -> MutexGuard<'_, Vec<u64>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<DeviceRange>> {
        self.abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Copying {
    /// Waits for ten seconds.
    fn default() -> Self {
        Self::with_patience(Duration::from_secs(10))
    }
}
