//! The reasons why a raw profile cannot be read or written.

use std::borrow::Cow;

use thiserror::Error;

use crate::format::profraw::count_kind::{CountKind, MAX_COUNT};
use crate::format::sections::Section;
use crate::support::diagnostic::Remedy;

/// The reason why a raw profile cannot be read or written.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// rocov does not support the version.
    #[error("unknown raw profile version {found}, expected {min} to {max}")]
    UnknownVersion {
        /// The version found.
        found: u64,
        /// The oldest known version.
        min: u32,
        /// The newest known version.
        max: u32,
    },
    /// The file does not start with the magic number of a raw profile.
    #[error("not a raw profile: magic {found:#018x}, expected {expected:#018x}")]
    WrongMagic {
        /// The first 8 bytes, little endian.
        found: u64,
        /// The magic number of a 64-bit little-endian raw profile.
        expected: u64,
    },
    /// It is the profile of a program whose words have another size or byte order.
    #[error(
        "raw profile of a {bits}-bit {}-endian program: rocov reads those of 64-bit little-endian programs and of GPU \
         code",
        if *.is_big_endian { "big" } else { "little" }
    )]
    OtherMachine {
        /// The size of an address in bits: 32 or 64.
        bits: u32,
        /// True for the byte order of big-endian machines.
        is_big_endian: bool,
    },
    /// The file ends before a section does.
    #[error(
        "raw profile is cut short: {part} should end at byte {needed}, but the file has {found}"
    )]
    Truncated {
        /// The part that is cut short.
        part: &'static str,
        /// The end of the part according to the header, in bytes.
        needed: u64,
        /// The size of the file in bytes.
        found: u64,
    },
    /// No writer makes binary ids of this size, and LLVM rejects them. In a rewritten file, all later parts
    /// would move.
    #[error("raw profile has {bytes} bytes of binary ids, which is not a multiple of 8")]
    BinaryIds {
        /// Their size according to the header, in bytes.
        bytes: u64,
    },
    /// A binary id ends after all of them. LLVM rejects such a profile, and one with an empty binary id.
    #[error("raw profile has a binary id of {found} bytes, expected 1 to {room}")]
    BinaryId {
        /// Its size in bytes.
        found: u64,
        /// The bytes that are there for it.
        room: u64,
    },
    /// The saved sections have another format than this version of rocov writes.
    #[error("saved sections of format {found}, expected {expected}")]
    SavedFormat {
        /// The format found.
        found: u64,
        /// The known format.
        expected: u64,
    },
    /// The profile to add to has other functions or another version, or was linked differently.
    #[error("it is a profile of other code, although its name says otherwise")]
    OtherCode,
    /// A seal does not fit the counts of a profile that is added to in place.
    #[error(
        "its counts are incomplete: the machine went down while they were being written, or another process \
         is adding to it now"
    )]
    NotWhole,
    /// A profile to add has parts that rocov does not add, or the file has several profiles.
    #[error(
        "raw profile continues after its names, at byte {end}, for {found} bytes: rocov does not add up value \
        profiles, virtual tables or several profiles in one file"
    )]
    MoreParts {
        /// The end of the names, in bytes.
        end: usize,
        /// The number of bytes after them.
        found: usize,
    },
    /// A count is of a place that the profile does not have.
    #[error("{kind} {index} of data record {record} is not in the raw profile")]
    NoPlace {
        /// The place of the record, from 0.
        record: u32,
        /// The thing that is counted.
        kind: CountKind,
        /// The place among those of its kind.
        index: u32,
    },
    /// Two profiles are of different code.
    #[error("counters cannot be added: {found} bytes to {expected}")]
    Mismatch {
        /// The bytes of counters in one profile.
        found: usize,
        /// The bytes of counters in the other.
        expected: usize,
    },
    /// A data record refers to counts that the file does not have.
    #[error("data record {index} of the raw profile is damaged: its {section} are not in the file")]
    Record {
        /// The place of the record, from 0.
        index: usize,
        /// The section of the counts.
        section: Section,
    },
    /// The values of a data record are damaged.
    #[error("data record {index} of the raw profile is damaged: {reason}")]
    Values {
        /// The place of the record, from 0.
        index: usize,
        /// The damage.
        reason: ValueProfileError,
    },
    /// A count is too large. LLVM's tools reject the profile, too.
    #[error(
        "data record {index} of the raw profile is damaged: a count of {found}, expected at most \
         {MAX_COUNT}"
    )]
    Count {
        /// The place of the record, from 0.
        index: usize,
        /// The count.
        found: u64,
    },
}

impl Remedy for ProfileError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::OtherMachine { .. } => "pass it to llvm-profdata",
            Self::UnknownVersion { .. } => "compile with clang 15 or later, or use a newer rocov",
            _ => "run the program again",
        })
    }
}

/// The reason why a value profile cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueProfileError {
    /// It ends before a part does.
    #[error("its values are cut short: they end at byte {needed} of {found}")]
    Truncated {
        /// The end of the part, in bytes from the start of the value profile.
        needed: u64,
        /// The bytes that are there.
        found: usize,
    },
    /// No writer makes value profiles of this size.
    #[error("its values take up {found} bytes, expected a multiple of 8")]
    Size {
        /// The size in bytes.
        found: u32,
    },
    /// It has more kinds of values than this version of the format, or one that is not known or there twice.
    #[error("its values have kind {found}, expected each of 0 to {max} at most once")]
    Kind {
        /// The kind, or the number of the last one.
        found: u32,
        /// The last kind of the version.
        max: u32,
    },
}
