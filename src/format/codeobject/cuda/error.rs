//! Errors in cubins.

use thiserror::Error;

use crate::format::codeobject::cuda::{ADDRESS_64, GENERIC_64};

/// The reason why the variables of a cubin cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CubinError {
    /// A variable is not inside its section.
    #[error(
        "the cubin's variable {name} has {size} bytes at {value:#x} of {section}, which has {available} bytes"
    )]
    Outside {
        /// The variable.
        name: String,
        /// The section.
        section: String,
        /// The place in the section, in bytes.
        value: u64,
        /// The size in bytes.
        size: u64,
        /// The size of the section in bytes, as far as it is in the file.
        available: u64,
    },
    /// A pointer is of an unknown kind.
    #[error(
        "the cubin's variable {name} has a relocation of type {found} at byte {at}, expected {ADDRESS_64} (R_CUDA_64) or \
         {GENERIC_64} (R_CUDA_G64)"
    )]
    Relocation {
        /// The variable.
        name: String,
        /// The place in the variable, in bytes.
        at: u64,
        /// The type of the relocation.
        found: u32,
    },
}
