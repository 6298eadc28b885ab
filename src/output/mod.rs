//! Where profiles go: the user's name pattern ([`pattern`]) and label ([`label`]), where that puts
//! everything ([`layout`]), files that are whole or not there ([`atomic`]) and what is left of those where a process was killed ([`leftovers`]),
//! and files that several loads ([`own`]) or processes ([`pool`]) add to, where these are files ([`regular`]).

mod atomic;
mod interrupted;
mod label;
pub mod layout;
mod leftovers;
mod lock;
mod own;
mod pattern;
mod pool;
mod regular;

pub(crate) use atomic::{create_atomic, create_beside, move_beside};
pub use atomic::{write_atomic, write_if_changed};
pub use label::{LABELS, Label, LabelError};
pub(crate) use leftovers::sweep_once;
pub use leftovers::{PARTIAL, hold, partial_prefix, sweep};
pub(crate) use own::add_to_own;
pub use pattern::{Expansion, PatternError, ProfileName, is_of_zeros};
pub use pool::add_to_pool;
pub(crate) use pool::update_pooled;
pub(crate) use regular::read;

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
    #[error("cannot lock {}: held by another process{}", path.display(), after(waited))]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long was waited: not at all where a lock before was waited for in vain.
        waited: Duration,
    },
    /// What is in the place of a file to add to is something else. It is left as it is, and not followed.
    #[error("cannot add to {}: it is {found}, not a regular file", path.display())]
    NotRegular {
        /// The place.
        path: PathBuf,
        /// What is there.
        found: &'static str,
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

fn after(waited: &Duration) -> String {
    match waited.is_zero() {
        true => ", as is one that was waited for before".into(),
        false => format!(" for {} seconds", waited.as_secs()),
    }
}
