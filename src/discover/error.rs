//! Errors of discovery.

use thiserror::Error;

use crate::device::DeviceError;
use crate::format::codeobject::CodeObjectError;
use crate::instrument::amdgcn::MapError;

/// The reason why a loaded code object cannot be examined.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// The device runtime failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device ELF is damaged.
    #[error(transparent)]
    CodeObject(#[from] CodeObjectError),
    /// The map of the counters that rocov has put into the code is damaged.
    #[error(transparent)]
    Map(#[from] MapError),
}
