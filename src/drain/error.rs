//! The errors of one code object, from any stage.
//!
//! Each stage has its own error type next to its code. This type joins them, so that a drain can report which
//! code objects failed and why, and continue with the others.

use thiserror::Error;

use crate::device::DeviceError;
use crate::discover::DiscoverError;
use crate::format::codeobject::CodeObjectError;
use crate::format::profraw::ProfileError;
use crate::instrument::amdgcn::MapError;
use crate::read::ReadError;
use crate::store::OutputError;
use crate::validate::SectionsError;

/// An error of any stage.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The device runtime failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device ELF is damaged, or not for AMDGPU.
    #[error(transparent)]
    CodeObject(#[from] CodeObjectError),
    /// rocov rejects the section bounds table or the data records.
    #[error(transparent)]
    Sections(#[from] SectionsError),
    /// The profile cannot be encoded or read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The map of the counters that rocov has put into the code is damaged.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The profile cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl From<DiscoverError> for Error {
    fn from(error: DiscoverError) -> Self {
        match error {
            DiscoverError::Device(error) => error.into(),
            DiscoverError::CodeObject(error) => error.into(),
            DiscoverError::Map(error) => error.into(),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Device(error) => error.into(),
            ReadError::Sections(error) => error.into(),
            ReadError::Profile(error) => error.into(),
            ReadError::Map(error) => error.into(),
        }
    }
}

impl Error {
    /// The next step after a loss, after a colon. Nothing if the error names it.
    pub(super) fn remedy(&self) -> String {
        let step = match self {
            Self::Sections(SectionsError::Unversioned) => "",
            Self::CodeObject(_) | Self::Sections(_) => ": build the code again",
            Self::Profile(ProfileError::UnknownVersion { .. }) => {
                ": compile with clang 15 or later, or use a newer rocov"
            }
            Self::Map(_) => ": instrument it with the release of rocov that drains it",
            Self::Device(_) | Self::Profile(_) => ": run the program again",
            Self::Output(error) => return error.remedy(),
        };
        step.to_owned()
    }
}
