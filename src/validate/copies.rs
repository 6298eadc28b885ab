//! Checks tables of copies against the sections of the code object.

use thiserror::Error;

use crate::device::DeviceRange;
use crate::format::copies_table::{CopiesTable, WORD_BYTES};
use crate::format::profraw::Version;
use crate::format::sections::{Addition, Section};
use crate::validate::SectionRanges;
use crate::validate::bounds::MAX_SECTION_BYTES;

/// The reason why rocov rejects a table of copies.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopiesDefect {
    /// The area ends before it starts.
    #[error("the area of copies ends before it starts: {start:#x}..{stop:#x}")]
    Reversed {
        /// The start.
        start: u64,
        /// The stop.
        stop: u64,
    },
    /// The area is larger than any real one.
    #[error("the area of copies has {found} bytes, at most {MAX_SECTION_BYTES} are allowed")]
    TooLarge {
        /// The size in bytes.
        found: u64,
    },
    /// The area is not inside the memory that the code object occupies.
    #[error("the area of copies {found} is not inside the loaded segment {segment}")]
    Outside {
        /// The area.
        found: DeviceRange,
        /// The code object's segment.
        segment: DeviceRange,
    },
    /// The area shares memory with a section.
    #[error("the area of copies {area} overlaps the {section} section {range}")]
    Overlap {
        /// The area.
        area: DeviceRange,
        /// The section.
        section: Section,
        /// Its range.
        range: DeviceRange,
    },
    /// A range is not inside a section of counters, or not of whole counters.
    #[error(
        "the copied counters {start:#x}..{stop:#x} are not whole counters of the section {counters}"
    )]
    Counters {
        /// The start.
        start: u64,
        /// The stop.
        stop: u64,
        /// The section of counters.
        counters: DeviceRange,
    },
    /// The counters have one byte each.
    #[error("there are copies of single-byte counters: only counters of 8 bytes have copies")]
    SingleBytes,
}

/// A checked table: its area and its ranges are inside their code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCopies {
    /// The device memory of all copies.
    pub area: DeviceRange,
    /// The bytes from one copy to the next.
    pub stride: u64,
    /// The counters of a copy: the section, the first byte there, and the number of bytes.
    pub ranges: Vec<(Section, u64, u64)>,
}

impl CheckedCopies {
    /// Checks `table`, with device addresses, against the sections of a load of `segment`.
    ///
    /// # Errors
    /// Fails if anything is wrong. The error names the value and the limit.
    pub fn check(
        table: &CopiesTable,
        segment: DeviceRange,
        sections: &SectionRanges,
        version: &Version,
    ) -> Result<Self, CopiesDefect> {
        let (start, stop) = table.area;
        let len = stop.checked_sub(start);
        let len = len.ok_or(CopiesDefect::Reversed { start, stop })?;
        if len > MAX_SECTION_BYTES {
            return Err(CopiesDefect::TooLarge { found: len });
        }
        let area = DeviceRange { start, len };
        if len > 0 && !segment.contains(&area) {
            let found = area;
            return Err(CopiesDefect::Outside { found, segment });
        }
        for (section, &range) in sections.iter() {
            let is_apart = area.end() <= Some(range.start) || range.end() <= Some(area.start);
            if len > 0 && range.len > 0 && !is_apart {
                return Err(CopiesDefect::Overlap {
                    area,
                    section,
                    range,
                });
            }
        }
        let ranges = table.ranges.iter().filter(|(start, stop)| start != stop);
        let ranges = ranges.map(|&range| place(range, sections, version));
        Ok(Self {
            area,
            stride: table.stride(),
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }
}

/// The place of a range in its section.
fn place(
    (start, stop): (u64, u64),
    sections: &SectionRanges,
    version: &Version,
) -> Result<(Section, u64, u64), CopiesDefect> {
    let range = DeviceRange {
        start,
        len: stop.wrapping_sub(start),
    };
    for section in [Section::Counters, Section::Uniform] {
        let whole = *sections.get(section);
        let offset = start.wrapping_sub(whole.start);
        if start < stop && whole.contains(&range) {
            if section.adds(version) != Addition::Words {
                return Err(CopiesDefect::SingleBytes);
            }
            if offset % WORD_BYTES == 0 && range.len % WORD_BYTES == 0 {
                return Ok((section, offset, range.len));
            }
        }
    }
    Err(CopiesDefect::Counters {
        start,
        stop,
        counters: sections.counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::bounds_table::Bounds;

    const SEGMENT: DeviceRange = DeviceRange {
        start: 0x1000,
        len: 0x9000,
    };

    fn checked(area: (u64, u64), range: (u64, u64)) -> Result<CheckedCopies, CopiesDefect> {
        checked_in(10, area, range)
    }

    fn checked_in(
        word: u64,
        area: (u64, u64),
        range: (u64, u64),
    ) -> Result<CheckedCopies, CopiesDefect> {
        let version = Version::of_word(word).unwrap();
        let bounds = Bounds {
            counters: (0x2000, 0x2040),
            ..Bounds::default()
        };
        let sections = SectionRanges::check(&bounds, SEGMENT, Some(&version)).unwrap();
        let ranges = vec![range];
        CheckedCopies::check(&CopiesTable { area, ranges }, SEGMENT, &sections, &version)
    }

    #[test]
    fn ranges_get_their_places() {
        let copies = checked((0x3000, 0x3400), (0x2008, 0x2020)).unwrap();
        assert_eq!(copies.ranges, [(Section::Counters, 8, 24)]);
        assert_eq!((copies.area.start, copies.area.len), (0x3000, 0x400));
        assert_eq!(
            checked((0x3000, 0x3000), (0x2008, 0x2008)).unwrap().ranges,
            []
        );
    }

    #[test]
    fn bad_areas_and_ranges_are_named() {
        let fine = ((0x3000, 0x3400), (0x2000, 0x2040));
        for (area, range, message) in [
            (
                (0x3400, 0x3000),
                fine.1,
                "the area of copies ends before it starts: 0x3400..0x3000",
            ),
            (
                (0x3000, 0x2000_0000),
                fine.1,
                "the area of copies has 536858624 bytes, at most 268435456 are allowed",
            ),
            (
                (0x9f00, 0xa100),
                fine.1,
                "the area of copies 0x9f00..0xa100 is not inside the loaded segment 0x1000..0xa000",
            ),
            (
                (0x203f, 0x3000),
                fine.1,
                "the area of copies 0x203f..0x3000 overlaps the counters section 0x2000..0x2040",
            ),
            (
                fine.0,
                (0x2000, 0x2048),
                "the copied counters 0x2000..0x2048 are not whole counters of the section \
                 0x2000..0x2040",
            ),
            (
                fine.0,
                (0x2004, 0x200c),
                "the copied counters 0x2004..0x200c are not whole counters of the section \
                 0x2000..0x2040",
            ),
            (
                fine.0,
                (0x2010, 0x2008),
                "the copied counters 0x2010..0x2008 are not whole counters of the section \
                 0x2000..0x2040",
            ),
        ] {
            assert_eq!(checked(area, range).unwrap_err().to_string(), message);
        }
        let single_bytes = 10 | 1 << 60;
        assert_eq!(
            checked_in(single_bytes, fine.0, fine.1),
            Err(CopiesDefect::SingleBytes)
        );
    }
}
