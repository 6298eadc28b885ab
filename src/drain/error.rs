//! The errors of one code object, from any stage.
//!
//! Each stage has its own error type next to its code. This type joins them, so that a drain can report which
//! code objects failed and why, and continue with the others.

use std::borrow::Cow;

use thiserror::Error;

use crate::device::DeviceError;
use crate::discover::DiscoverError;
use crate::format::codeobject::CodeObjectError;
use crate::format::profraw::ProfileError;
use crate::instrument::amdgcn::MapError;
use crate::read::ReadError;
use crate::store::OutputError;
use crate::support::diagnostic::Remedy;
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

impl Remedy for Error {
    fn remedy(&self) -> Cow<'static, str> {
        match self {
            Self::Device(error) => error.remedy(),
            Self::CodeObject(error) => error.remedy(),
            Self::Sections(error) => error.remedy(),
            Self::Profile(error) => error.remedy(),
            Self::Map(error) => error.remedy(),
            Self::Output(error) => error.remedy(),
        }
    }
}
