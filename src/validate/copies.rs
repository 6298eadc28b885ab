//! Turns the tables of copies into areas that are safe to copy and to sum.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use crate::device::DeviceRange;
use crate::format::copies_table::{CopiesTable, CopiesTableError, CopiesTables, Probes};
use crate::format::sections::Section;
use crate::support::diagnostic::Remedy;
use crate::validate::{MAX_SECTION_BYTES, SectionRanges};

/// The size of a counter that has copies, in bytes.
const COUNTER_BYTES: u64 = 8;
/// The sections whose counters may have copies.
const COPIED: [Section; 2] = [Section::Counters, Section::Uniform];

/// The reason why rocov cannot sum the copies of a table: the profile lacks their counts.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopiesError {
    /// The table is damaged, or of an unknown version.
    #[error(transparent)]
    Table(#[from] CopiesTableError),
    /// The bounds of the tables, an area or a range of counters end before they start.
    #[error("{what} end before they start: {start:#x}..{stop:#x}")]
    Reversed {
        /// The name of the part.
        what: &'static str,
        /// Its start.
        start: u64,
        /// Its stop.
        stop: u64,
    },
    /// The tables or an area are larger than any real ones.
    #[error("{what} at {found} have {} bytes, at most {MAX_SECTION_BYTES} are allowed", found.len)]
    TooLarge {
        /// The name of the part.
        what: &'static str,
        /// Its range.
        found: DeviceRange,
    },
    /// The tables or an area are not inside the memory that the code object occupies.
    #[error("{what} at {found} are not inside the loaded segment {segment}")]
    Outside {
        /// The name of the part.
        what: &'static str,
        /// Its range.
        found: DeviceRange,
        /// The code object's segment.
        segment: DeviceRange,
    },
    /// An area shares memory with a section.
    #[error("the copies at {found} overlap the {section} section {range}")]
    OverlapsSection {
        /// The area.
        found: DeviceRange,
        /// The section.
        section: Section,
        /// The section's range.
        range: DeviceRange,
    },
    /// Two areas share memory.
    #[error("the copies at {found} overlap the copies at {other}")]
    OverlapsArea {
        /// The area.
        found: DeviceRange,
        /// An area of an earlier table.
        other: DeviceRange,
    },
    /// An area has no room for a copy.
    #[error("the copies at {found} have {} bytes, expected at least one copy of {stride}", found.len)]
    TooSmall {
        /// The area.
        found: DeviceRange,
        /// The size of a copy in bytes.
        stride: u64,
    },
    /// A range is not inside a section of counters.
    #[error(
        "the copied counters at {found} are neither inside the counters section {counters} nor inside the uniform \
         counters section {uniform}"
    )]
    NotCounters {
        /// The range.
        found: DeviceRange,
        /// The counters section.
        counters: DeviceRange,
        /// The uniform counters section.
        uniform: DeviceRange,
    },
    /// A range begins or ends within a counter.
    #[error(
        "the copied counters at {found} are bytes {start} to {stop} of the {section} section, expected multiples of \
         {COUNTER_BYTES}"
    )]
    Ragged {
        /// The range.
        found: DeviceRange,
        /// The section.
        section: Section,
        /// The first byte in the section.
        start: usize,
        /// The byte after the last.
        stop: usize,
    },
    /// The code object has single-byte counters, which have no copies.
    #[error("the copied counters at {found} have 1 byte each, expected {COUNTER_BYTES}")]
    SingleByte {
        /// The range.
        found: DeviceRange,
    },
}

impl Remedy for CopiesError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Table(CopiesTableError::Version { .. }) => {
                "update rocov, which reads versions 1 and 2"
            }
            _ => "build it again",
        })
    }
}

/// An area of copies whose table is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesArea {
    /// The memory of the copies. It is not empty.
    pub memory: DeviceRange,
    /// The size of a copy in bytes, with its padding. At most the size of the memory.
    pub stride: usize,
    /// The counters that each copy has, in this order: the section, and the bytes in it.
    pub ranges: Vec<(Section, Range<usize>)>,
    /// The probes that each copy has instead. Then there is one range, and each of its counters is a sum of probes.
    pub probes: Option<Arc<Probes>>,
}

/// The areas of a code object, and the reasons why others are left out.
#[derive(Debug, Default)]
pub struct CheckedCopies {
    /// The good areas. They do not overlap.
    pub areas: Vec<CopiesArea>,
    /// The errors of the others.
    pub errors: Vec<CopiesError>,
}

impl CheckedCopies {
    /// The copies of a code object whose tables cannot be found for this reason.
    #[must_use]
    pub(crate) fn unknown(error: CopiesError) -> Self {
        Self {
            areas: Vec::new(),
            errors: vec![error],
        }
    }

    /// Checks the tables of a code object that occupies `segment` and has sections at `sections`. Its counters have
    /// 8 bytes each, or 1 if `is_single_byte`. Each bad table costs only itself.
    #[must_use]
    pub fn check(
        tables: &CopiesTables,
        sections: &SectionRanges,
        segment: DeviceRange,
        is_single_byte: bool,
    ) -> Self {
        let place = Place {
            sections,
            segment,
            is_single_byte,
            unit: tables.unit,
        };
        let mut checked = Self {
            areas: Vec::with_capacity(tables.tables.len()),
            errors: tables
                .damage
                .iter()
                .cloned()
                .map(CopiesError::from)
                .collect(),
        };
        // The areas so far, by start.
        let mut areas = BTreeMap::new();
        for table in &tables.tables {
            // Tables whose areas have one start are one table.
            if areas.contains_key(&table.area.0) {
                continue;
            }
            let area = place.check(table).and_then(|area| {
                let Some(area) = area else { return Ok(None) };
                match neighbour(&areas, area.memory) {
                    Some(other) => Err(CopiesError::OverlapsArea {
                        found: area.memory,
                        other,
                    }),
                    None => Ok(Some(area)),
                }
            });
            match area {
                Ok(area) => checked.areas.extend(area.inspect(|area| {
                    areas.insert(area.memory.start, area.memory);
                })),
                Err(error) => checked.errors.push(error),
            }
        }
        checked
    }
}

/// The area among `areas` that shares memory with `found`.
fn neighbour(areas: &BTreeMap<u64, DeviceRange>, found: DeviceRange) -> Option<DeviceRange> {
    let before = areas.range(..=found.start).next_back();
    let after = areas.range(found.start..).next();
    let mut near = before.into_iter().chain(after).map(|(_, area)| *area);
    near.find(|area| area.overlaps(&found))
}

/// The code object of the tables.
struct Place<'a> {
    sections: &'a SectionRanges,
    segment: DeviceRange,
    is_single_byte: bool,
    /// The size of each copy is a multiple of this, in bytes.
    unit: u64,
}

impl Place<'_> {
    /// The area of a table. `None` if it has no copies, or the copies have no counters.
    fn check(&self, table: &CopiesTable) -> Result<Option<CopiesArea>, CopiesError> {
        let memory = bounded("the copies", table.area, self.segment)?;
        if memory.len == 0 {
            return Ok(None);
        }
        let mut sections = self.sections.iter();
        if let Some((section, range)) = sections.find(|(_, range)| range.overlaps(&memory)) {
            return Err(CopiesError::OverlapsSection {
                found: memory,
                section,
                range: *range,
            });
        }
        let mut ranges = Vec::with_capacity(table.ranges.len());
        let mut counted = 0_u64;
        for bounds in &table.ranges {
            let range = range("the copied counters", *bounds)?;
            if range.len > 0 {
                ranges.push(self.counters(range)?);
                counted = counted.saturating_add(range.len);
            }
        }
        if let Some(probes) = &table.probes {
            counted = probes.count.saturating_mul(COUNTER_BYTES);
        }
        let too_small = |stride| CopiesError::TooSmall {
            found: memory,
            stride,
        };
        match CopiesTable::stride(counted, self.unit) {
            Some(0) => Ok(None),
            Some(stride) if stride <= memory.len => Ok(Some(CopiesArea {
                memory,
                stride: stride as usize,
                ranges,
                probes: table.probes.clone(),
            })),
            stride => Err(too_small(stride.unwrap_or(counted))),
        }
    }

    /// The place of counters in their section.
    fn counters(&self, found: DeviceRange) -> Result<(Section, Range<usize>), CopiesError> {
        let has = |section: &Section| self.sections.get(*section).contains(&found);
        let Some(section) = COPIED.into_iter().find(has) else {
            return Err(CopiesError::NotCounters {
                found,
                counters: self.sections.counters,
                uniform: self.sections.uniform,
            });
        };
        if section == Section::Counters && self.is_single_byte {
            return Err(CopiesError::SingleByte { found });
        }
        let start = found.start - self.sections.get(section).start;
        let stop = start + found.len;
        let place = start as usize..stop as usize;
        if !(start.is_multiple_of(COUNTER_BYTES) && found.len.is_multiple_of(COUNTER_BYTES)) {
            return Err(CopiesError::Ragged {
                found,
                section,
                start: place.start,
                stop: place.end,
            });
        }
        Ok((section, place))
    }
}

/// The range of these bounds, which must be inside `segment` and have an allowed size.
///
/// # Errors
/// Fails if it is not. The error calls the range `what`.
pub(crate) fn bounded(
    what: &'static str,
    bounds: (u64, u64),
    segment: DeviceRange,
) -> Result<DeviceRange, CopiesError> {
    let found = range(what, bounds)?;
    if found.len > MAX_SECTION_BYTES {
        return Err(CopiesError::TooLarge { what, found });
    }
    if found.len > 0 && !segment.contains(&found) {
        return Err(CopiesError::Outside {
            what,
            found,
            segment,
        });
    }
    Ok(found)
}

fn range(what: &'static str, (start, stop): (u64, u64)) -> Result<DeviceRange, CopiesError> {
    let reversed = CopiesError::Reversed { what, start, stop };
    let len = stop.checked_sub(start).ok_or(reversed)?;
    Ok(DeviceRange { start, len })
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
