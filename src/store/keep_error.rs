//! The reasons why a file next to the profiles is not kept.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::device::DeviceError;
use crate::format::codeobject::Identity;
use crate::format::registry::DocumentError;
use crate::store::{OutputError, advice};
use crate::support::diagnostic::Remedy;

/// The error for files next to the profiles that could not be kept. It costs no counts.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeepError {
    /// rocov cannot write the registry.
    #[error("cannot write the registry: {0}")]
    NotWritten(#[from] OutputError),
    /// rocov cannot add to the pool, so the registry is in a file of this process's own.
    #[error("cannot add to {}: {source}; the registry is in {}", pool.display(), place.display())]
    Beside {
        /// The pool, which does not change.
        pool: PathBuf,
        /// The reason.
        source: DocumentError,
        /// The file with the registry.
        place: PathBuf,
    },
    /// The pool's place has no regular file, so the registry is in a file of this process's own.
    #[error("{source}; the registry is in {}", place.display())]
    Elsewhere {
        /// The error with the kind of file found.
        source: OutputError,
        /// The file with the registry.
        place: PathBuf,
    },
    /// rocov cannot write to the directory of all files next to the profiles.
    #[error(
        "cannot write to {}: {source}; device ELFs and the kernel registry are not kept",
        place.display()
    )]
    NoPlace {
        /// The directory of all files that are not profiles.
        place: PathBuf,
        /// The error from the system.
        source: io::Error,
    },
    /// rocov cannot read or write a device ELF.
    #[error("the device ELF of code object {identity} is not kept: {source}")]
    NotKept {
        /// The code object.
        identity: Identity,
        /// The failed step.
        source: KeptElfError,
    },
    /// rocov cannot write the PTX that a device ELF was made from.
    #[error(
        "the PTX of code object {identity} is not kept: {source}; reports will not show its lines"
    )]
    SourceNotKept {
        /// The code object.
        identity: Identity,
        /// The failed step.
        source: OutputError,
    },
    /// Another ELF replaced a device ELF while rocov was keeping it.
    #[error("the device ELF of code object {identity} is not kept: another file has its name")]
    Changed {
        /// The code object.
        identity: Identity,
    },
    /// There is no room for a device ELF, and perhaps none for later ones.
    #[error(
        "the device ELF of code object {identity} is not kept: with its {size} bytes, the kept ELFs would exceed \
        {max} bytes"
    )]
    Full {
        /// The code object.
        identity: Identity,
        /// The size of its ELF in bytes.
        size: u64,
        /// The limit in bytes for all ELFs together.
        max: u64,
    },
}

impl Remedy for KeepError {
    fn remedy(&self) -> Cow<'static, str> {
        const OBJECT: &str = "pass the file that ran to `rocov report --object`";
        match self {
            Self::NotWritten(error) => error.remedy(),
            Self::SourceNotKept { source, .. } => source.remedy(),
            Self::Beside { pool, .. } => format!("move {} away", pool.display()).into(),
            Self::Elsewhere { source, .. } => source.step().into(),
            Self::NoPlace { source, .. } => format!(
                "{}, or pass the files that ran to `rocov report --object`",
                advice(source)
            )
            .into(),
            Self::NotKept { .. } | Self::Changed { .. } => Cow::Borrowed(OBJECT),
            Self::Full { .. } => Cow::Borrowed("raise ROCOV_OBJECTS_MAX (reported once)"),
        }
    }
}

/// The reason why the bytes of a device ELF cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeptElfError {
    /// The device runtime failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A file operation failed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl KeepError {
    /// Returns whether a later attempt may succeed, which the next drain makes: a system call has failed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::NoPlace { .. }
                | Self::NotWritten(OutputError::Io { .. })
                | Self::SourceNotKept { .. }
                | Self::NotKept {
                    source: KeptElfError::Output(OutputError::Io { .. }),
                    ..
                }
        )
    }

    /// Turns every error about `place` into one, if the system lets nothing be written there. So rocov
    /// reports it once, and not for each file.
    pub(super) fn at(self, place: &Path) -> Self {
        let no_place = |source| {
            let place = place.to_owned();
            Self::NoPlace { place, source }
        };
        match self {
            Self::NotWritten(OutputError::Io { source, .. })
            | Self::SourceNotKept {
                source: OutputError::Io { source, .. },
                ..
            }
            | Self::NotKept {
                source: KeptElfError::Output(OutputError::Io { source, .. }),
                ..
            } if is_refusal(&source) => no_place(source),
            error => error,
        }
    }
}

/// Returns whether the system denies writes to a place, to everybody or to this user.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory
    )
}
