//! Errors of discovery.

use thiserror::Error;

use crate::device::DeviceError;
use crate::format::codeobject::CodeObjectError;

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
}
