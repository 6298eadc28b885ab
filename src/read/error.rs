//! Errors of reading a load.

use thiserror::Error;

use crate::device::DeviceError;
use crate::format::bounds_table::UnknownTable;
use crate::format::profraw::ProfileError;
use crate::instrument::amdgcn::MapError;
use crate::support::memory::NoMemory;
use crate::validate::SectionsError;

/// The reason why a load's sections cannot be read, or are rejected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The device runtime failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// rocov rejects the section bounds table or the data records.
    #[error(transparent)]
    Sections(#[from] SectionsError),
    /// rocov cannot read the version.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The map of the counters that rocov has put into the code is damaged.
    #[error(transparent)]
    Map(#[from] MapError),
}

impl From<NoMemory> for ReadError {
    fn from(error: NoMemory) -> Self {
        Self::Device(error.into())
    }
}

impl From<UnknownTable> for ReadError {
    fn from(error: UnknownTable) -> Self {
        Self::Sections(error.into())
    }
}
