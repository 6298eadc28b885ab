//! The table of copies, `__rocov_copies`: where each compute unit has its copy of a code object's counters.
//!
//! The compiler plugin and the device header (from clang 23 on) make code count in copies, so that waves do
//! not meet at one address. The count of a counter is that in its section plus those in all copies, modulo
//! 2^64. Each translation unit has a table; the linker puts them one after the other. A table has an area of
//! copies and ranges of counters. A copy holds the counters of all ranges, 8 bytes each, in the order of the
//! table. It is padded to whole cache lines. docs/src/internals/copies.md has the layout.

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

/// The section with the tables.
pub const COPIES_SECTION: &str = "__rocov_copies";
/// The symbol by which the loader finds the section: 16 bytes, its start and stop.
pub const COPIES_SYMBOL: &str = "__rocov_copies_bounds";

/// The version that rocov reads.
pub const COPIES_VERSION: u32 = 1;
/// The size of a counter in bytes.
pub const WORD_BYTES: u64 = 8;

const MAGIC: &[u8; 8] = b"rocovcps";
/// Magic, version, size, and the start and stop of the area.
const HEADER_BYTES: usize = 32;
/// Start and stop of a range.
const RANGE_BYTES: usize = 16;
/// Copies start at multiples of it.
const LINE_BYTES: u64 = 128;

/// The error for tables of copies that rocov cannot read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum UnknownCopies {
    /// The version is not known.
    #[error("the table of copies has version {found}, rocov knows version {COPIES_VERSION}")]
    Version {
        /// The version in the table.
        found: u32,
    },
    /// There is something else.
    #[error(
        "there is no table of copies at byte {at} of {COPIES_SECTION}: it starts with {found:#x}"
    )]
    Magic {
        /// The place in the section.
        at: usize,
        /// The first 8 bytes, little endian.
        found: u64,
    },
    /// The size makes no sense.
    #[error(
        "the table of copies at byte {at} of {COPIES_SECTION} says that it has {found} bytes: \
         {left} are left, and {HEADER_BYTES} and a multiple of {RANGE_BYTES} are allowed"
    )]
    Size {
        /// The place in the section.
        at: usize,
        /// The size in the table.
        found: usize,
        /// The bytes from there to the end of the section.
        left: usize,
    },
}

/// A table of copies. Its addresses are unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesTable {
    /// Start and stop of the area.
    pub area: (u64, u64),
    /// Start and stop of each range of counters. Ranges may repeat and overlap.
    pub ranges: Vec<(u64, u64)>,
}

impl CopiesTable {
    /// The table for a load at `load_delta`, if this one has the addresses of the ELF.
    #[must_use]
    pub fn loaded(&self, load_delta: u64) -> Self {
        let moved = |(start, stop): (u64, u64)| {
            (
                start.wrapping_add(load_delta),
                stop.wrapping_add(load_delta),
            )
        };
        Self {
            area: moved(self.area),
            ranges: self.ranges.iter().copied().map(moved).collect(),
        }
    }

    /// The bytes from one copy to the next.
    #[must_use]
    pub fn stride(&self) -> u64 {
        let sizes = self
            .ranges
            .iter()
            .map(|(start, stop)| stop.wrapping_sub(*start));
        let size = sizes.fold(0, u64::saturating_add);
        size.checked_next_multiple_of(LINE_BYTES)
            .unwrap_or(u64::MAX)
    }
}

/// The tables of a code object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiesTables {
    /// The tables that rocov can read, each area once.
    pub tables: Vec<CopiesTable>,
    /// The first error in the others.
    pub unknown: Option<UnknownCopies>,
}

impl CopiesTables {
    /// Decodes the contents of the section. A table of an unknown version costs only itself.
    #[must_use]
    pub fn decode(section: &[u8]) -> Self {
        let mut found = Self::default();
        let mut at = 0;
        while at < section.len() {
            match table(section, at) {
                Ok((bytes, table)) => {
                    at += bytes;
                    match table {
                        // Every unit has the device header's table, with the same area.
                        Ok(table) if found.tables.iter().any(|it| it.area == table.area) => {}
                        Ok(table) => found.tables.push(table),
                        Err(error) => {
                            found.unknown.get_or_insert(error);
                        }
                    }
                }
                Err(error) => {
                    found.unknown.get_or_insert(error);
                    break;
                }
            }
        }
        found
    }

    /// Returns whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.unknown.is_none()
    }

    /// The tables for a load at `load_delta`.
    #[must_use]
    pub fn loaded(&self, load_delta: u64) -> Self {
        Self {
            tables: self.tables.iter().map(|it| it.loaded(load_delta)).collect(),
            unknown: self.unknown,
        }
    }
}

/// The size of the table at byte `at`, and the table if its version is known.
fn table(
    section: &[u8],
    at: usize,
) -> Result<(usize, Result<CopiesTable, UnknownCopies>), UnknownCopies> {
    let bytes = &section[at..];
    let left = bytes.len();
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        let found = left;
        return Err(UnknownCopies::Size { at, found, left });
    };
    if !header.starts_with(MAGIC) {
        let found = LittleEndian::read_u64(header);
        return Err(UnknownCopies::Magic { at, found });
    }
    let size = LittleEndian::read_u32(&header[12..]) as usize;
    let is_sane = size >= HEADER_BYTES && size <= left && (size - HEADER_BYTES) % RANGE_BYTES == 0;
    if !is_sane {
        let found = size;
        return Err(UnknownCopies::Size { at, found, left });
    }
    let found = LittleEndian::read_u32(&header[8..]);
    if found != COPIES_VERSION {
        return Ok((size, Err(UnknownCopies::Version { found })));
    }
    let pair = |bytes: &[u8]| {
        (
            LittleEndian::read_u64(bytes),
            LittleEndian::read_u64(&bytes[8..]),
        )
    };
    let ranges = bytes[HEADER_BYTES..size].chunks_exact(RANGE_BYTES);
    let table = CopiesTable {
        area: pair(&header[16..]),
        ranges: ranges.map(pair).collect(),
    };
    Ok((size, Ok(table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(version: u32, size: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn tables_follow_each_other() {
        let mut section = bytes(1, 48, &[0x1000, 0x9000, 0x200, 0x218]);
        section.extend(bytes(1, 64, &[0xa000, 0xb000, 0x300, 0x308, 0x200, 0x210]));
        let found = CopiesTables::decode(&section);
        assert_eq!(found.unknown, None);
        let [first, second] = &found.tables[..] else {
            panic!("{found:?}");
        };
        assert_eq!(first.area, (0x1000, 0x9000));
        assert_eq!(first.ranges, [(0x200, 0x218)]);
        assert_eq!(first.stride(), 128);
        assert_eq!(second.ranges, [(0x300, 0x308), (0x200, 0x210)]);
        assert_eq!(second.loaded(0x10).area, (0xa010, 0xb010));
    }

    #[test]
    fn strides_are_whole_lines() {
        let stride = |bytes: u64| {
            let ranges = vec![(0, bytes)];
            CopiesTable {
                area: (0, 0),
                ranges,
            }
            .stride()
        };
        assert_eq!([8, 128, 136].map(stride), [128, 128, 256]);
    }

    #[test]
    fn an_area_is_one_table() {
        let section = bytes(1, 48, &[0x1000, 0x9000, 0x200, 0x218]).repeat(3);
        assert_eq!(CopiesTables::decode(&section).tables.len(), 1);
    }

    #[test]
    fn an_unknown_version_costs_only_itself() {
        let mut section = bytes(2, 40 + 8, &[1, 2, 3, 4]);
        section.extend(bytes(1, 32, &[0x1000, 0x9000]));
        let found = CopiesTables::decode(&section);
        assert_eq!(found.tables.len(), 1);
        assert_eq!(
            found.unknown.unwrap().to_string(),
            "the table of copies has version 2, rocov knows version 1"
        );
    }

    #[test]
    fn damage_ends_the_list() {
        let whole = bytes(1, 32, &[0x1000, 0x9000]);
        for (section, message) in [
            (
                [whole.clone(), vec![7; 40]].concat(),
                "there is no table of copies at byte 32 of __rocov_copies: it starts with \
                 0x707070707070707",
            ),
            (
                bytes(1, 33, &[1, 2, 3]),
                "the table of copies at byte 0 of __rocov_copies says that it has 33 bytes: 40 are \
                 left, and 32 and a multiple of 16 are allowed",
            ),
            (
                bytes(1, 64, &[1, 2, 3, 4]),
                "the table of copies at byte 0 of __rocov_copies says that it has 64 bytes: 48 are \
                 left, and 32 and a multiple of 16 are allowed",
            ),
            (
                whole[..31].to_vec(),
                "the table of copies at byte 0 of __rocov_copies says that it has 31 bytes: 31 are \
                 left, and 32 and a multiple of 16 are allowed",
            ),
        ] {
            let found = CopiesTables::decode(&section);
            assert_eq!(found.unknown.unwrap().to_string(), message);
        }
        assert!(CopiesTables::decode(&[]).is_empty());
    }
}
