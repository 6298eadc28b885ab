//! The settings of the environment for requests from outside.

use std::path::PathBuf;
use std::time::Duration;

use crate::guest::settings;

/// The requests that the thread has to expect.
#[derive(Debug)]
pub(super) struct Settings {
    /// The directory of the socket.
    pub(super) directory: Option<PathBuf>,
    /// The time between snapshots.
    pub(super) every: Option<Duration>,
    /// The number of the signal that asks for a snapshot.
    pub(super) signal: Option<i32>,
}

impl Settings {
    /// Reads the environment.
    pub(super) fn from_environment() -> Self {
        Self {
            directory: settings::control_directory(),
            every: settings::snapshot_every(),
            signal: settings::snapshot_signal(),
        }
    }

    /// Returns whether there is work for a thread.
    pub(super) fn need_a_thread(&self) -> bool {
        self.directory.is_some() || self.every.is_some() || self.signal.is_some()
    }
}
