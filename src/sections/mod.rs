//! Validation: where the profile sections are in device memory, and whether to believe it.
//!
//! [`table`] reads the section bounds table, [`bounds`] checks the ranges against what is loaded,
//! [`records`] checks the data records against the counters that were copied, [`names`] the names.

mod bounds;
mod names;
mod records;
mod table;

pub use bounds::{Bounds, MAX_SECTION_BYTES, Section, SectionRanges};
pub use names::NamesChecker;
pub use records::{CheckedRecords, MAX_DEFECTS, RecordDefect, check_records};
pub use table::{BoundsTable, Layout, OWN_VERSION_SYMBOL, TABLE_SYMBOL, VERSION_SYMBOL};

use thiserror::Error;

use crate::device::DeviceRange;

/// Why the profile sections of a code object are refused.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionsError {
    /// The table's size is that of no known layout.
    #[error(
        "{TABLE_SYMBOL} has {found} bytes, expected {} or {}",
        Layout::Seven.bytes(),
        Layout::Nine.bytes()
    )]
    UnknownTable {
        /// The symbol's size in bytes.
        found: u64,
    },
    /// More tables than the code of one program has.
    #[error("more than {max} different {TABLE_SYMBOL}; the rest is not looked at")]
    ManyTables {
        /// How many are looked at.
        max: usize,
    },
    /// A section ends before it starts.
    #[error("the {section} section ends before it starts: {start:#x}..{stop:#x}")]
    Reversed {
        /// The section.
        section: Section,
        /// Its start as the table has it.
        start: u64,
        /// Its stop as the table has it.
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
        /// Size of one element in bytes.
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
        "{TABLE_SYMBOL} has the {section} section at {:#x}..{:#x}, the ELF's section headers at \
         {:#x}..{:#x}; the headers are used",
        table.0, table.1, elf.0, elf.1
    )]
    Disagreement {
        /// The section.
        section: Section,
        /// Start and stop by the table.
        table: (u64, u64),
        /// Start and stop by the headers.
        elf: (u64, u64),
    },
    /// A list of names that readers could not unpack.
    #[error("the list of names at byte {at} of the names section {reason}")]
    Names {
        /// Where the list starts.
        at: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nothing says which version the sections are of.
    #[error(
        "no version word: neither a table nor {VERSION_SYMBOL} nor a clang version in .comment; \
         compile with -include rocov_device.h"
    )]
    Unversioned,
    /// There is no address to read the version word from.
    #[error("the version word's address {found:#x} is not inside the loaded segment {segment}")]
    NoVersion {
        /// The address in the table.
        found: u64,
        /// The code object's segment.
        segment: DeviceRange,
    },
}
