//! What can go wrong with one code object, whatever the stage.
//!
//! Each stage has its own error type beside its code; this one joins them, so that a drain can
//! say which of its code objects it could not bring home and why, and go on with the others.

use thiserror::Error;

use crate::codeobject::CodeObjectError;
use crate::device::DeviceError;
use crate::output::OutputError;
use crate::profraw::ProfileError;
use crate::sections::SectionsError;

/// An error of any stage.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The device runtime failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device ELF is not what it should be.
    #[error(transparent)]
    CodeObject(#[from] CodeObjectError),
    /// The section bounds table or the data records are refused.
    #[error(transparent)]
    Sections(#[from] SectionsError),
    /// The profile cannot be encoded or read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The profile cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}
