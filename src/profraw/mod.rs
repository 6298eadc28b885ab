//! The raw profile format: what differs between versions ([`version`]), writing ([`encode`]),
//! reading ([`decode`]) and adding ([`merge`]).

mod decode;
mod encode;
mod merge;
mod version;

pub use decode::{Header, RawProfile};
pub use encode::{Parts, encode};
pub use merge::{MAX_COUNT, add_counters};
pub use version::{Layout, RecordLayout, Version, Word};

use thiserror::Error;

/// Why a raw profile cannot be read or written.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// The version is not one that this library knows.
    #[error("raw profile version {found} is not known, expected {min} to {max}")]
    UnknownVersion {
        /// The version found.
        found: u32,
        /// The oldest that is known.
        min: u32,
        /// The newest that is known.
        max: u32,
    },
    /// The file does not start as a raw profile does.
    #[error("not a raw profile: magic {found:#018x}, expected {expected:#018x}")]
    WrongMagic {
        /// The first 8 bytes, little endian.
        found: u64,
        /// What a 64-bit little-endian raw profile has there.
        expected: u64,
    },
    /// The file ends before a section does.
    #[error("raw profile is cut short: {part} ends at byte {needed}, the file has {found}")]
    Truncated {
        /// The part that is cut.
        part: &'static str,
        /// Where it ends by the header, in bytes.
        needed: u64,
        /// The file's size in bytes.
        found: u64,
    },
    /// Two profiles are not of the same code.
    #[error("counters cannot be added: {found} bytes to {expected}")]
    Mismatch {
        /// Bytes of counters in one.
        found: usize,
        /// Bytes of counters in the other.
        expected: usize,
    },
}
