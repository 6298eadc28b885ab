//! The reasons why a coverage mapping cannot be read.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::format::codeobject::coverage_mapping::source_place::SourcePlace;
use crate::support::diagnostic::Remedy;

/// The versions that rocov reads, as the format numbers them: one less than LLVM's names.
pub(super) const VERSIONS: RangeInclusive<u32> = 3..=6;
/// The largest size in bytes of a compressed file list: enough for a hundred thousand names.
pub(super) const MAX_LIST: u64 = 16 << 20;
/// The largest size in bytes of a path with its directory. Linux opens no longer path (`PATH_MAX`).
pub(super) const MAX_PATH: usize = 4096;
/// The largest size in bytes of all paths of a code object: enough for a million.
pub(super) const MAX_PATHS: usize = 128 << 20;
/// The largest number of expansions around the files and regions of a function, added up: a thousand regions
/// within a thousand others, four times.
pub(super) const MAX_NESTING: usize = 1 << 22;

/// The error for a damaged coverage mapping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// A length goes beyond the section or the file list.
    #[error("damaged coverage mapping: {found} bytes at byte {at} of {section}, which has {len}")]
    Cut {
        /// The section.
        section: &'static str,
        /// The offset of the first byte.
        at: usize,
        /// The number of bytes that the length announces.
        found: u64,
        /// The number of bytes that there are.
        len: usize,
    },
    /// A variable-length number is cut short or does not end.
    #[error(
        "damaged coverage mapping: no number at byte {at} of {section}, expected one up to 2^63"
    )]
    Number {
        /// The section.
        section: &'static str,
        /// The offset from the start of the list or of the record's mapping.
        at: usize,
    },
    /// A file list would take too much memory.
    #[error(
        "damaged coverage mapping: a list of files of {found} bytes, expected at most {MAX_LIST}"
    )]
    Large {
        /// The declared size.
        found: u64,
    },
    /// A file list cannot be inflated.
    #[error(
        "damaged coverage mapping: a list of files that should inflate to {expected} bytes: {reason}"
    )]
    Inflate {
        /// The declared size.
        expected: u64,
        /// The decoder's message.
        reason: String,
    },
    /// A path is longer than any file's.
    #[error("damaged coverage mapping: a path of {found} bytes, expected at most {MAX_PATH}")]
    Path {
        /// The size in bytes, with the directory.
        found: usize,
    },
    /// A function names a file that the list does not have.
    #[error("damaged coverage mapping: a function in file {found} of a list of {len}")]
    File {
        /// The place of the file, from 0.
        found: u64,
        /// The number of files in the list.
        len: usize,
    },
    /// rocov does not support the version of the file lists.
    #[error(
        "unknown coverage mapping version {found}, expected {} to {}",
        VERSIONS.start(),
        VERSIONS.end()
    )]
    Version {
        /// The version, as the format numbers it.
        found: u32,
    },
    /// A function refers to a list of files that is not there.
    #[error("damaged coverage mapping: no list of files has the hash {found:#018x} of a function")]
    List {
        /// The hash.
        found: u64,
    },
    /// The paths of the files would take too much memory.
    #[error("damaged coverage mapping: paths of more than {MAX_PATHS} bytes")]
    Paths,
    /// An expansion lies within itself, or expansions lie within too many others.
    #[error(
        "damaged coverage mapping: an expansion within itself, or more than {MAX_NESTING} expansions \
         around the regions of a function"
    )]
    Nesting,
    /// A number is too large.
    #[error("damaged coverage mapping: {what} {found}, expected less than {limit}")]
    Limit {
        /// The meaning of the number.
        what: &'static str,
        /// The number.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A region is of an unknown kind.
    #[error("damaged coverage mapping: a region of kind {found}, expected 0, 2, 4, 5 or 6")]
    Kind {
        /// The kind.
        found: u32,
    },
    /// A region ends before it starts.
    #[error(
        "damaged coverage mapping: a region from {}:{} to {}:{}, which ends before it starts",
        start.line,
        start.column,
        end.line,
        end.column
    )]
    Backwards {
        /// The start.
        start: SourcePlace,
        /// The end.
        end: SourcePlace,
    },
    /// A condition of an MC/DC decision has no number.
    #[error("damaged coverage mapping: a condition with number 0, expected 1 or more")]
    Condition,
}

impl Remedy for CoverageError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed("build it again")
    }
}
