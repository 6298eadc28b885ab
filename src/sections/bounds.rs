//! From a table's words to ranges that may be copied.

use std::fmt;

use super::{BoundsTable, SectionsError};
use crate::device::DeviceRange;
use crate::profraw::Version;

/// The largest section that is believed, in bytes: compiler-rt's own limit. A bigger one is a
/// damaged table, and copying it would take the program's memory.
pub const MAX_SECTION_BYTES: u64 = 256 << 20;

/// A profile section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section {
    /// `__llvm_prf_names`: compressed function names.
    Names,
    /// `__llvm_prf_cnts`: the counters.
    Counters,
    /// `__llvm_prf_data`: one record per function.
    Data,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Section::Names => "names",
            Section::Counters => "counters",
            Section::Data => "data",
        })
    }
}

/// The checked sections of one loaded code object. Each is in order, of a size that can be, and
/// inside the code object's own segment; no two overlap. Empty ones are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRanges {
    /// The names.
    pub names: DeviceRange,
    /// The counters.
    pub counters: DeviceRange,
    /// The data records.
    pub data: DeviceRange,
}

impl SectionRanges {
    /// Checks the table of a code object that occupies `segment` and counts by `version`.
    ///
    /// # Errors
    /// Names the first section that is refused, its range and the limit.
    pub fn check(
        table: &BoundsTable,
        segment: DeviceRange,
        version: &Version,
    ) -> Result<SectionRanges, SectionsError> {
        let ranges = SectionRanges {
            names: one(Section::Names, table.names, segment, 1)?,
            counters: one(
                Section::Counters,
                table.counters,
                segment,
                version.counter_bytes(),
            )?,
            data: one(
                Section::Data,
                table.data,
                segment,
                version.layout().record.bytes,
            )?,
        };
        ranges.check_overlap()?;
        Ok(ranges)
    }

    /// Checks that the version word at `address` can be read.
    ///
    /// # Errors
    /// Fails where its 8 bytes are not inside `segment`.
    pub fn check_version(address: u64, segment: DeviceRange) -> Result<(), SectionsError> {
        if segment.contains(&DeviceRange {
            start: address,
            len: 8,
        }) {
            return Ok(());
        }
        Err(SectionsError::NoVersion {
            found: address,
            segment,
        })
    }

    fn check_overlap(&self) -> Result<(), SectionsError> {
        let mut sections = [
            (Section::Names, self.names),
            (Section::Counters, self.counters),
            (Section::Data, self.data),
        ];
        sections.sort_by_key(|(_, range)| (range.start, range.len));
        for pair in sections.windows(2) {
            let [(first, first_range), (second, second_range)] = [pair[0], pair[1]];
            let overlap = first_range.end().is_none_or(|end| end > second_range.start);
            if overlap && second_range.len > 0 {
                return Err(SectionsError::Overlap {
                    first,
                    first_range,
                    second,
                    second_range,
                });
            }
        }
        Ok(())
    }
}

/// Checks one section, whose elements have `element` bytes.
fn one(
    section: Section,
    (start, stop): (u64, u64),
    segment: DeviceRange,
    element: u64,
) -> Result<DeviceRange, SectionsError> {
    let Some(len) = stop.checked_sub(start) else {
        return Err(SectionsError::Reversed {
            section,
            start,
            stop,
        });
    };
    if len > MAX_SECTION_BYTES {
        return Err(SectionsError::TooLarge {
            section,
            found: len,
        });
    }
    if len % element != 0 {
        return Err(SectionsError::Ragged {
            section,
            found: len,
            element,
        });
    }
    let range = DeviceRange { start, len };
    // The linker resolves start and stop of a section that is not there to null: empty, and
    // nothing to copy.
    if len > 0 && !segment.contains(&range) {
        return Err(SectionsError::Outside {
            section,
            found: range,
            segment,
        });
    }
    Ok(range)
}
