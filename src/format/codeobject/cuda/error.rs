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
    /// A list of attributes ends too early.
    #[error(
        "{section} is cut short: the attribute at byte {at} has {needed} bytes, {available} are left"
    )]
    Attribute {
        /// The section.
        section: String,
        /// The place of the attribute in it, in bytes.
        at: usize,
        /// The size of the attribute in bytes, as far as is known.
        needed: usize,
        /// The bytes up to the end of the section.
        available: usize,
    },
    /// An attribute has an unknown format.
    #[error("{section} has an attribute of format {found} at byte {at}, expected 1 to 4")]
    Format {
        /// The section.
        section: String,
        /// The place of the attribute in it, in bytes.
        at: usize,
        /// The format found.
        found: u8,
    },
    /// A pointer reaches beyond the variable that it is in.
    #[error("the cubin's variable {name} has {size} bytes, and a pointer of 8 bytes at byte {at}")]
    Straddling {
        /// The variable.
        name: String,
        /// The place in the variable, in bytes.
        at: u64,
        /// The size of the variable in bytes.
        size: u64,
    },
    /// The version word has an unknown size.
    #[error("the cubin's version word {name} has {found} bytes, expected 8")]
    Version {
        /// The variable.
        name: String,
        /// Its size in bytes.
        found: u64,
    },
    /// The data records are of no known version.
    #[error(
        "the cubin's data records have {found} bytes each, expected 48 (LLVM 14 to 17), 64 (18 to 22) or 72 (23, 24)"
    )]
    Records {
        /// The size of the first record in bytes.
        found: u64,
    },
    /// A data record has another size than the first.
    #[error("the cubin's data record {name} has {found} bytes, expected {expected} like the first")]
    Record {
        /// The record's variable.
        name: String,
        /// Its size in bytes.
        found: u64,
        /// The size of the first record in bytes.
        expected: u64,
    },
}
