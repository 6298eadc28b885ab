//! Turns the words of a table, or an ELF's section headers, into ranges that are safe to copy.

use std::ops::Deref;

use crate::device::DeviceRange;
use crate::format::bounds_table::Bounds;
use crate::format::profraw::Version;
use crate::format::sections::{PerSection, Section};
use crate::validate::SectionsError;

/// The size in bytes of the largest section that rocov accepts: compiler-rt's own limit. A larger section
/// means a damaged table, and a copy of it would take the program's memory.
pub const MAX_SECTION_BYTES: u64 = 256 << 20;

/// The first section with different bounds in a table and in the ELF.
#[must_use]
pub fn disagreement(elf: &Bounds, table: &Bounds) -> Option<SectionsError> {
    // An empty section may be null in one and have an address in the other.
    let empty = |bounds: (u64, u64)| bounds.0 == bounds.1;
    // Every table has these sections.
    let sections = [Section::Names, Section::Counters, Section::Data];
    let both = sections.map(|section| (section, *elf.get(section), *table.get(section)));
    both.into_iter()
        .find(|(_, elf, table)| elf != table && !(empty(*elf) && empty(*table)))
        .map(|(section, elf, table)| SectionsError::Disagreement {
            section,
            table,
            elf,
        })
}

/// The checked sections of one loaded code object. Each has its bounds in order, has an allowed size, and
/// lies inside the code object's own segment. No two overlap. A section may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRanges(pub(super) PerSection<DeviceRange>);

impl Deref for SectionRanges {
    type Target = PerSection<DeviceRange>;

    fn deref(&self) -> &PerSection<DeviceRange> {
        &self.0
    }
}

impl SectionRanges {
    /// Checks the bounds of counters of 8 bytes that a code object has in addition to its sections.
    ///
    /// # Errors
    /// Fails if they are outside of `segment`, too large, or no whole counters.
    pub(crate) fn check_counters(
        bounds: (u64, u64),
        segment: DeviceRange,
    ) -> Result<DeviceRange, SectionsError> {
        one(Section::Counters, bounds, segment, 8)
    }

    /// Checks the bounds of a code object that occupies `segment` and has raw version `version`. If the
    /// version is unknown (`None`), the sizes of elements are not checked.
    ///
    /// # Errors
    /// Fails if a section is bad. The error names the range of the first one, and the limit.
    pub fn check(
        bounds: &Bounds,
        segment: DeviceRange,
        version: Option<&Version>,
    ) -> Result<Self, SectionsError> {
        let ranges = PerSection::try_from_fn(|section| {
            let element = version.map_or(1, |version| section.element_bytes(version));
            one(section, *bounds.get(section), segment, element)
        })?;
        let ranges = Self(ranges);
        ranges.check_overlap()?;
        Ok(ranges)
    }

    /// Checks that the version word at `address` can be read.
    ///
    /// # Errors
    /// Fails if its 8 bytes are not inside `segment`.
    pub fn check_version(address: u64, segment: DeviceRange) -> Result<(), SectionsError> {
        let word = DeviceRange {
            start: address,
            len: 8,
        };
        if segment.contains(&word) {
            return Ok(());
        }
        Err(SectionsError::NoVersion {
            found: address,
            segment,
        })
    }

    fn check_overlap(&self) -> Result<(), SectionsError> {
        let sections: Vec<_> = self.iter().map(|(name, range)| (name, *range)).collect();
        let ranges: Vec<_> = sections.iter().map(|(_, range)| *range).collect();
        for pair in DeviceRange::in_order(&ranges).windows(2) {
            let [(first, first_range), (second, second_range)] =
                [sections[pair[0]], sections[pair[1]]];
            if first_range.end().is_none_or(|end| end > second_range.start) {
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
    if len > 0 && !segment.contains(&range) {
        return Err(SectionsError::Outside {
            section,
            found: range,
            segment,
        });
    }
    Ok(range)
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
