//! Validation of the data that a device has about its profile sections.
//!
//! [`SectionRanges`] checks bounds against the memory that a code object occupies, [`check_records`] checks
//! data records against the copied counters, [`CheckedCopies`] checks the copies of counters, and [`NamesChecker`]
//! checks the names.

mod bounds;
mod copies;
mod names;
mod records;

pub use bounds::{MAX_SECTION_BYTES, SectionRanges, disagreement};
pub(crate) use copies::bounded;
pub use copies::{CheckedCopies, CopiesArea, CopiesError};
pub use names::{NamesChecker, for_each_name, names_by_hash};
pub use records::{CheckedRecords, MAX_DEFECTS, RecordDefect, check_records};

use std::borrow::Cow;

use thiserror::Error;

use crate::device::DeviceRange;
use crate::format::bounds_table::{TABLE_SYMBOL, UnknownTable, VERSION_SYMBOL};
use crate::format::sections::Section;
use crate::support::diagnostic::Remedy;

/// The reason why rocov rejects the profile sections of a code object.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionsError {
    /// The table's size fits no known layout.
    #[error(transparent)]
    UnknownTable(#[from] UnknownTable),
    /// There are more tables than the code of one program has.
    #[error("more than {max} different {TABLE_SYMBOL}; rocov ignores the rest")]
    ManyTables {
        /// The number of tables that rocov reads.
        max: usize,
    },
    /// A section ends before it starts.
    #[error("the {section} section ends before it starts: {start:#x}..{stop:#x}")]
    Reversed {
        /// The section.
        section: Section,
        /// Its start in the table.
        start: u64,
        /// Its stop in the table.
        stop: u64,
    },
    /// A section is larger than any real one.
    #[error("the {section} section has {found} bytes, at most {MAX_SECTION_BYTES} are allowed")]
    TooLarge {
        /// The section.
        section: Section,
        /// Its size in bytes.
        found: u64,
    },
    /// A section is not inside the memory that the code object occupies.
    #[error("the {section} section {found} is not inside the loaded segment {segment}")]
    Outside {
        /// The section.
        section: Section,
        /// Its range.
        found: DeviceRange,
        /// The code object's segment.
        segment: DeviceRange,
    },
    /// A section's size is not a whole number of its elements.
    #[error("the {section} section has {found} bytes, not a multiple of {element}")]
    Ragged {
        /// The section.
        section: Section,
        /// Its size in bytes.
        found: u64,
        /// The size of one element in bytes.
        element: u64,
    },
    /// Two sections share memory.
    #[error("the {first} section {first_range} overlaps the {second} section {second_range}")]
    Overlap {
        /// One section.
        first: Section,
        /// Its range.
        first_range: DeviceRange,
        /// The other.
        second: Section,
        /// Its range.
        second_range: DeviceRange,
    },
    /// The table and the ELF's section headers have a section in different places.
    #[error(
        "{TABLE_SYMBOL} places the {section} section at {:#x}..{:#x}, but the ELF's section headers place it at \
        {:#x}..{:#x}; rocov uses the headers",
        table.0, table.1, elf.0, elf.1
    )]
    Disagreement {
        /// The section.
        section: Section,
        /// Start and stop in the table.
        table: (u64, u64),
        /// Start and stop in the headers.
        elf: (u64, u64),
    },
    /// Readers could not unpack a list of names.
    #[error("the list of names at byte {at} of the names section {reason}")]
    Names {
        /// The offset of the list.
        at: usize,
        /// The error in the list.
        reason: &'static str,
    },
    /// Nothing shows the version of the sections.
    #[error(
        "no version word: neither a table nor {VERSION_SYMBOL} nor a clang version in .comment"
    )]
    Unversioned,
    /// The address of the version word is outside of the segment.
    #[error("the version word's address {found:#x} is not inside the loaded segment {segment}")]
    NoVersion {
        /// The address in the table.
        found: u64,
        /// The code object's segment.
        segment: DeviceRange,
    },
}

impl Remedy for SectionsError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Unversioned => "compile with -include rocov_device.h",
            _ => "build it again",
        })
    }
}
