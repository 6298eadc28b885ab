//! The raw profile format: what differs between versions ([`version`]), writing ([`encode`]),
//! reading ([`decode`]) and adding ([`merge`], [`pooled`]); and what becomes of a version that is not known
//! ([`saved`]).

mod decode;
mod encode;
mod merge;
mod pooled;
mod saved;
mod version;

pub use decode::{Header, RawProfile};
pub use encode::{Parts, encode};
pub use merge::{Counts, MAX_COUNT, Sum};
pub(crate) use pooled::Pooled;
pub use saved::{SavedSection, SavedSections};
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
        found: u64,
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
    /// The binary ids are not what any writer makes, and LLVM refuses: what follows would lie elsewhere
    /// in a file that is written anew.
    #[error("raw profile has {bytes} bytes of binary ids, which is no multiple of 8")]
    BinaryIds {
        /// Their size by the header, in bytes.
        bytes: u64,
    },
    /// Saved sections of another format than this library's.
    #[error("saved sections of format {found}, expected {expected}")]
    SavedFormat {
        /// The format found.
        found: u64,
        /// The one that is known.
        expected: u64,
    },
    /// A profile to add to has other functions, another version, or was linked differently.
    #[error("it is a profile of other code, although its name says otherwise")]
    OtherCode,
    /// A profile that is added to in place has sums that are not those which were written.
    #[error(
        "its counts are not whole: the machine went down while they were written, or somebody adds \
         to it just now"
    )]
    NotWhole,
    /// A profile to add to or from has parts that are not carried, or is several in one file.
    #[error(
        "raw profile goes on after its names, at byte {end}, for {found} bytes: value profiles, \
         virtual tables and several profiles in one file are not added"
    )]
    MoreParts {
        /// Where the names end, in bytes.
        end: usize,
        /// Bytes after them.
        found: usize,
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
