//! What the environment asks for.

use std::path::PathBuf;
use std::time::Duration;

use crate::config;

/// What there is to do from outside.
#[derive(Debug)]
pub(super) struct Asked {
    /// Where the socket is to be.
    pub(super) directory: Option<PathBuf>,
    /// The time between snapshots.
    pub(super) every: Option<Duration>,
    /// The number of the signal that asks for a snapshot.
    pub(super) signal: Option<i32>,
}

impl Asked {
    pub(super) fn by_environment() -> Asked {
        Asked {
            directory: config::control_directory(),
            every: config::snapshot_every(),
            signal: config::snapshot_signal(),
        }
    }

    pub(super) fn is_something(&self) -> bool {
        self.directory.is_some() || self.every.is_some() || self.signal.is_some()
    }
}
