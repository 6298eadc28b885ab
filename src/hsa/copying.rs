//! How long copies are waited for, and what is known of those that did not end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::{DeviceError, DeviceRange};

/// What a process knows of its copies: one for all its devices.
///
/// A copy that does not end cannot be called back. The host memory stays allocated and locked, and nobody
/// reads it. The device memory must not be freed either, which [`Copying::may_touch`] is asked about. The
/// agent is not copied from or to any more, as every copy behind that one would have to be waited for
/// again.
#[derive(Debug)]
pub struct Copying {
    patience: Duration,
    /// Handles of agents with a copy that did not end.
    stuck: Mutex<Vec<u64>>,
    /// Device memory that copies may read or write at any time: they were given up.
    abandoned: Mutex<Vec<DeviceRange>>,
}

impl Copying {
    /// The shortest that is waited: who does not wait for kernels still wants copies.
    const LEAST: Duration = Duration::from_secs(1);

    /// Copies are waited for as long as something comes in this time, which is at least a second.
    /// The largest section takes some 10 milliseconds of a PCIe 4 link; the rest is for what the
    /// program itself has under way.
    #[must_use]
    pub fn with_patience(patience: Duration) -> Copying {
        Copying {
            patience: patience.max(Copying::LEAST),
            stuck: Mutex::default(),
            abandoned: Mutex::default(),
        }
    }

    /// The runtime is gone, and what was stuck in it.
    pub fn forget_all(&self) {
        self.stuck().clear();
        self.abandoned().clear();
    }

    /// Returns whether a copy that was given up may still read or write device memory: that of `range`, or any.
    #[must_use]
    pub fn may_touch(&self, range: Option<DeviceRange>) -> bool {
        let abandoned = self.abandoned();
        match range {
            None => !abandoned.is_empty(),
            Some(range) => abandoned.iter().any(|it| it.overlaps(&range)),
        }
    }

    /// Copies from or to these ranges are given up.
    pub(super) fn abandon(&self, ranges: &[DeviceRange]) {
        self.abandoned().extend_from_slice(ranges);
    }

    /// How long `agent` is waited for, with nothing coming: not again where it was once.
    pub(super) fn patience_with(&self, agent: u64) -> Duration {
        match self.stuck().contains(&agent) {
            true => Duration::ZERO,
            false => self.patience,
        }
    }

    /// Fails where `agent` has a copy that did not end.
    pub(super) fn check(&self, agent: u64) -> Result<(), DeviceError> {
        match self.stuck().contains(&agent) {
            true => Err(self.stuck_on(agent)),
            false => Ok(()),
        }
    }

    /// `agent` has one now.
    pub(super) fn give_up(&self, agent: u64) {
        let mut stuck = self.stuck();
        if !stuck.contains(&agent) {
            stuck.push(agent);
        }
    }

    /// What is said of `agent` then.
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
    /// With ten seconds.
    fn default() -> Copying {
        Copying::with_patience(Duration::from_secs(10))
    }
}
