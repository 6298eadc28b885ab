//! Where profiles go: the user's name pattern ([`pattern`]) and label ([`label`]), files that are
//! whole or not there ([`atomic`]), and files that several loads ([`own`]) or processes ([`pool`]) add
//! to.

mod atomic;
mod label;
mod lock;
mod own;
mod pattern;
mod pool;

pub(crate) use atomic::{create_atomic, create_beside, move_beside};
pub use atomic::{write_atomic, write_if_changed};
pub use label::{LABELS, Label, LabelError};
pub(crate) use own::add_to_own;
pub use pattern::{Expansion, PatternError, ProfileName, REGISTRY};
pub use pool::add_to_pool;
pub(crate) use pool::{read, update_pooled};

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::profraw::ProfileError;

/// Why a profile could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A step of writing failed. Nothing is left half written under the final name.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The step.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has held the lock of a pooled file for too long.
    #[error("cannot lock {}: held by another process for {} seconds", path.display(), waited.as_secs())]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// The pooled file is not one that these counts can be added to. It is left as it is.
    #[error("cannot add to {}: {source}", path.display())]
    Pool {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ProfileError,
    },
}

impl OutputError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| OutputError::Io {
            action,
            path,
            source,
        }
    }
}
