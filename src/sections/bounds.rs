//! From the words of a table, or an ELF's section headers, to ranges that may be copied.

use std::fmt;

use super::SectionsError;
use crate::codeobject::{ElfRange, ProfileSections};
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
    /// `__llvm_prf_bits`: MC/DC bitmaps.
    Bitmap,
    /// `__llvm_prf_ucnts`: counters of whole waves.
    Uniform,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Section::Names => "names",
            Section::Counters => "counters",
            Section::Data => "data",
            Section::Bitmap => "bitmap",
            Section::Uniform => "uniform counters",
        })
    }
}

/// Start and stop of each section as device addresses, unchecked. Both are 0 for a section that
/// is not there: the linker resolves them so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The names.
    pub names: (u64, u64),
    /// The counters.
    pub counters: (u64, u64),
    /// The data records.
    pub data: (u64, u64),
    /// The MC/DC bitmaps.
    pub bitmap: (u64, u64),
    /// The uniform counters.
    pub uniform: (u64, u64),
}

impl Bounds {
    /// The bounds by an ELF's section headers, for a load at `load_delta`.
    #[must_use]
    pub fn of_elf(sections: &ProfileSections, load_delta: u64) -> Bounds {
        let pair = |range: Option<ElfRange>| {
            range.map_or((0, 0), |range| {
                let start = range.address.wrapping_add(load_delta);
                (start, start.wrapping_add(range.size))
            })
        };
        Bounds {
            names: pair(sections.names),
            counters: pair(sections.counters),
            data: pair(sections.data),
            bitmap: pair(sections.bitmap),
            uniform: pair(sections.uniform),
        }
    }

    /// Start and stop of every section.
    #[must_use]
    pub fn all(&self) -> [(u64, u64); 5] {
        [
            self.names,
            self.counters,
            self.data,
            self.bitmap,
            self.uniform,
        ]
    }

    /// Where a table has a section elsewhere than these bounds of the ELF: the first such.
    #[must_use]
    pub fn disagreement(&self, table: &Bounds) -> Option<SectionsError> {
        let sections = [
            (Section::Names, self.names, table.names),
            (Section::Counters, self.counters, table.counters),
            (Section::Data, self.data, table.data),
        ];
        // An empty section may be null in one and have an address in the other.
        let empty = |bounds: (u64, u64)| bounds.0 == bounds.1;
        sections
            .into_iter()
            .find(|(_, elf, table)| elf != table && !(empty(*elf) && empty(*table)))
            .map(|(section, elf, table)| SectionsError::Disagreement {
                section,
                table,
                elf,
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
    /// The MC/DC bitmaps.
    pub bitmap: DeviceRange,
    /// The uniform counters.
    pub uniform: DeviceRange,
}

impl SectionRanges {
    /// Checks the bounds of a code object that occupies `segment` and counts by `version`; where
    /// that is not known (`None`), sizes of elements are not checked.
    ///
    /// # Errors
    /// Names the first section that is refused, its range and the limit.
    pub fn check(
        bounds: &Bounds,
        segment: DeviceRange,
        version: Option<&Version>,
    ) -> Result<SectionRanges, SectionsError> {
        let record = version.map_or(1, |it| it.layout().record.bytes);
        let counter = version.map_or(1, Version::counter_bytes);
        let uniform = version.map_or(1, |_| Version::UNIFORM_COUNTER_BYTES);
        let ranges = SectionRanges {
            names: one(Section::Names, bounds.names, segment, 1)?,
            counters: one(Section::Counters, bounds.counters, segment, counter)?,
            data: one(Section::Data, bounds.data, segment, record)?,
            bitmap: one(Section::Bitmap, bounds.bitmap, segment, 1)?,
            uniform: one(Section::Uniform, bounds.uniform, segment, uniform)?,
        };
        ranges.check_overlap()?;
        Ok(ranges)
    }

    /// Checks that the version word at `address` can be read.
    ///
    /// # Errors
    /// Fails where its 8 bytes are not inside `segment`.
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

    /// The sections with their names, in the order of a profile file.
    #[must_use]
    pub fn all(&self) -> [(Section, DeviceRange); 5] {
        [
            (Section::Data, self.data),
            (Section::Counters, self.counters),
            (Section::Bitmap, self.bitmap),
            (Section::Uniform, self.uniform),
            (Section::Names, self.names),
        ]
    }

    fn check_overlap(&self) -> Result<(), SectionsError> {
        let sections = self.all();
        let order = DeviceRange::in_order(&sections.map(|(_, range)| range));
        for pair in order.windows(2) {
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
