//! Files: the user's name pattern ([`ProfileName`]) and labels ([`Label`]), the names in a data directory
//! ([`layout`]), atomic writes, and profiles that several loads or processes add to.

mod atomic;
mod cache;
mod device_elfs;
mod instrument_cache;
mod interrupted;
mod keep_error;
mod keeper;
mod label;
pub mod layout;
mod lock;
mod partial_files;
mod pool;
mod process_profile;
mod process_word;
mod profile_name;
mod profile_place;
mod registry_document;
mod registry_file;
mod regular_file;

pub(crate) use atomic::{create_at_or_beside, create_atomic, create_beside};
pub use atomic::{write_atomic, write_if_changed, write_own};
pub use cache::{CacheEntry, shrink};
pub use instrument_cache::{CacheFolder, InstrumentCache};
pub use keep_error::{KeepError, KeptElfError};
pub use keeper::Keeper;
pub use label::{LABELS, Label, LabelError};
pub(crate) use partial_files::sweep_once;
pub use partial_files::{PARTIAL, hold, partial_prefix, sweep};
pub use pool::add_to_pool;
pub(crate) use pool::update_pooled;
pub(crate) use process_profile::add_to_own;
pub use process_word::{ProcessWord, ProcessWordError};
pub use profile_name::{Expansion, PatternError, ProfileName, ProfileNameParts, is_of_zeros};
pub use registry_document::Process;
pub(crate) use registry_document::code_object as describe_code_object;
pub use registry_file::{RegistryChange, RegistryError, change_or_make_registry, change_registry};
pub(crate) use regular_file::read;
pub use regular_file::{is_own, open_input, read_input, read_own};

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use thiserror::Error;

use crate::format::profraw::ProfileError;
use crate::support::diagnostic::Remedy;

/// The reason why a profile could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A step of writing failed. No half-written file is left under the final name.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The step.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error from the system.
        source: io::Error,
    },
    /// Another process has held the lock of a pooled file for too long.
    #[error("cannot lock {}: held by another process{}", path.display(), after(waited))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The time of the wait. Zero if another lock was stuck before.
        waited: Duration,
    },
    /// The place of a file to add to has something else. rocov neither changes nor follows it.
    #[error("cannot add to {}: it is {found}, not a regular file", path.display())]
    NotRegular {
        /// The place.
        path: PathBuf,
        /// The kind of file found.
        found: &'static str,
    },
    /// The pooled file cannot take these counts. It does not change.
    #[error("cannot add to {}: {source}", path.display())]
    Pool {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        source: ProfileError,
    },
}

impl Remedy for OutputError {
    fn remedy(&self) -> Cow<'static, str> {
        format!("{}, and run the program again", self.step()).into()
    }
}

impl OutputError {
    /// The step that lets the next run write there.
    pub(crate) fn step(&self) -> String {
        match self {
            Self::Io { source, .. } => advice(source).to_owned(),
            Self::Locked { .. } => "end the process that holds the lock".to_owned(),
            Self::NotRegular { path, .. } | Self::Pool { path, .. } => {
                format!("move {} away", path.display())
            }
        }
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Returns the next step after an error of the system, if it is the same for files that are read and for those that
/// are written.
#[must_use]
pub fn system_step(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room",
        io::ErrorKind::FileTooLarge if error.raw_os_error().is_some() => {
            "raise the file size limit (ulimit -f)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "choose a place that is not read-only",
        io::ErrorKind::InvalidFilename => "choose shorter names",
        io::ErrorKind::StaleNetworkFileHandle => "mount the file system again",
        io::ErrorKind::OutOfMemory => "give the program more memory",
        _ => match Errno::from_raw_os_error(error.raw_os_error()?) {
            Errno::MFILE => "raise the limit on open files (ulimit -n)",
            Errno::NFILE => "raise the system's limit on open files (fs.file-max)",
            Errno::NOLCK => "choose a file system that supports locks",
            _ => return None,
        },
    })
}

/// The step that lets the next run write a file, after an error of the system about it.
#[must_use]
pub fn advice(error: &io::Error) -> &'static str {
    if let Some(step) = system_step(error) {
        return step;
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => "make the place writable",
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::FileTooLarge => "move the existing file away",
        _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            "look for disk errors in `dmesg`, and choose another place"
        }
        _ => "choose another place",
    }
}

fn after(waited: &Duration) -> String {
    match waited.is_zero() {
        true => "; rocov did not wait, because another lock is stuck".into(),
        false => format!(" for {} seconds", waited.as_secs()),
    }
}
