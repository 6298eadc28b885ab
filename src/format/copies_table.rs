//! The tables of copies, `__rocov_copies`: the device addresses of the copies that GPU code counts in.
//!
//! Code of rocov's compiler plugin or device header adds to a copy of a counter instead of the counter, one copy
//! for each compute unit. Each translation unit has a table, and the section has all tables of a code object.

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

/// The name of the section in an ELF.
pub const COPIES_SECTION: &str = "__rocov_copies";
/// The symbol of the bounds of the section: two words of 8 bytes, its start and stop as device addresses. Its
/// visibility is protected, so it is in `.dynsym` and the loader finds it by name.
pub const COPIES_SYMBOL: &str = "__rocov_copies_bounds";
/// The only known version of a table.
pub const COPIES_VERSION: u32 = 1;
/// The size of the bounds of the section in bytes.
pub const COPIES_BOUNDS_BYTES: u64 = 16;

/// The first bytes of each table.
pub(crate) const MAGIC: [u8; 8] = *b"rocovcps";
/// The magic, the version and the size: the part that tables of all versions have.
const HEAD_BYTES: usize = 16;
/// The head, and the start and stop of the area.
const FIXED_BYTES: usize = 32;
/// The start and stop of a range.
const RANGE_BYTES: usize = 16;
/// Tables begin at multiples of this.
const ALIGNMENT: usize = 8;
/// The most damaged tables that rocov remembers.
const MAX_DAMAGE: usize = 50;
/// The size of a copy is a multiple of this, in bytes.
pub(crate) const STRIDE_UNIT: u64 = 128;
/// The size of a copy on NVIDIA GPUs is a multiple of this, in bytes.
pub(crate) const CUDA_STRIDE_UNIT: u64 = 512;

/// The table of one translation unit: addresses, unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesTable {
    /// Start and stop of the area, which has the copies one after the other.
    pub area: (u64, u64),
    /// Start and stop of the counters that each copy has, in this order.
    pub ranges: Vec<(u64, u64)>,
}

impl CopiesTable {
    /// The distance from one copy to the next, in bytes: `counted` bytes, the size of all counters, rounded up to a
    /// multiple of `unit`.
    #[must_use]
    pub fn stride(counted: u64, unit: u64) -> Option<u64> {
        counted.checked_next_multiple_of(unit)
    }

    /// Decodes the good table of `bytes` bytes.
    fn decode(bytes: &[u8]) -> Self {
        let pair = |at: usize| {
            let word = |at: usize| LittleEndian::read_u64(&bytes[at..]);
            (word(at), word(at + 8))
        };
        Self {
            area: pair(HEAD_BYTES),
            ranges: (FIXED_BYTES..bytes.len())
                .step_by(RANGE_BYTES)
                .map(pair)
                .collect(),
        }
    }

    fn loaded_at(&self, load_delta: u64) -> Self {
        let ranges = self.ranges.iter();
        Self {
            area: loaded(self.area, load_delta),
            ranges: ranges.map(|range| loaded(*range, load_delta)).collect(),
        }
    }
}

/// The device addresses of bounds in an ELF that is loaded at `load_delta`.
fn loaded((start, stop): (u64, u64), load_delta: u64) -> (u64, u64) {
    (
        start.wrapping_add(load_delta),
        stop.wrapping_add(load_delta),
    )
}

/// Damage to the tables of a code object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopiesTableError {
    /// The bytes are not a table.
    #[error(
        "{COPIES_SECTION} has {found:#018x} at byte {at}, expected {:#018x}, the start of a table",
        LittleEndian::read_u64(&MAGIC)
    )]
    Magic {
        /// The place of the bytes in the section.
        at: usize,
        /// The first 8 of them, or fewer at the end of the section, little endian.
        found: u64,
    },
    /// The section or the next table begins within the part that all tables have.
    #[error(
        "the table at byte {at} of {COPIES_SECTION} is cut short: it has {found} bytes, expected at least {HEAD_BYTES}"
    )]
    Cut {
        /// The place of the table in the section.
        at: usize,
        /// The bytes up to the next table or the end of the section.
        found: usize,
    },
    /// rocov does not support the version of a table.
    #[error(
        "the table at byte {at} of {COPIES_SECTION} has version {found}, expected {COPIES_VERSION}"
    )]
    Version {
        /// The place of the table in the section.
        at: usize,
        /// The version found.
        found: u32,
    },
    /// A table has an impossible size.
    #[error(
        "the table at byte {at} of {COPIES_SECTION} has {found} bytes, expected {FIXED_BYTES} plus a multiple of \
        {RANGE_BYTES}, at most {room}"
    )]
    Size {
        /// The place of the table in the section.
        at: usize,
        /// The size that it states, in bytes.
        found: u32,
        /// The bytes up to the next table or the end of the section.
        room: usize,
    },
    /// The section cannot be read from the ELF.
    #[error("{COPIES_SECTION} cannot be read from the ELF: {reason}")]
    Unreadable {
        /// The error from the read.
        reason: String,
    },
    /// The bounds of the section have an unknown size.
    #[error("{COPIES_SYMBOL} has {found} bytes, expected {COPIES_BOUNDS_BYTES}")]
    Bounds {
        /// The symbol's size in bytes.
        found: u64,
    },
    /// There are more damaged tables than rocov reports.
    #[error("{COPIES_SECTION} has {more} more damaged tables")]
    More {
        /// Their number.
        more: usize,
    },
}

/// The tables of a code object. It has copies if there are any, good or damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesTables {
    /// The good tables, in their order.
    pub tables: Vec<CopiesTable>,
    /// The damage: 50 errors at most, and the number of the others.
    pub damage: Vec<CopiesTableError>,
    /// The size of each copy is a multiple of this, in bytes.
    pub unit: u64,
}

impl Default for CopiesTables {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            damage: Vec::new(),
            unit: STRIDE_UNIT,
        }
    }
}

impl CopiesTables {
    /// Decodes the tables from the bytes of the section. A table begins wherever its magic is, so damage to a table
    /// costs no other.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let aligned = (0..bytes.len()).step_by(ALIGNMENT);
        let mut starts: Vec<usize> = aligned.filter(|at| is_table(&bytes[*at..])).collect();
        if starts.first() != Some(&0) && !bytes.is_empty() {
            starts.insert(0, 0);
        }
        let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
        let (mut found, mut more) = (Self::default(), 0);
        for (at, end) in starts.iter().copied().zip(ends) {
            let piece = &bytes[at..end];
            let size = size(piece, at);
            let rest = match size {
                Ok(size) => {
                    found.tables.push(CopiesTable::decode(&piece[..size]));
                    foreign(&piece[size..], at + size)
                }
                Err(error) => Some(error),
            };
            match rest {
                Some(error) if found.damage.len() < MAX_DAMAGE => found.damage.push(error),
                rest => more += usize::from(rest.is_some()),
            }
        }
        if more > 0 {
            found.damage.push(CopiesTableError::More { more });
        }
        found
    }

    /// The tables of a code object that cannot be read for this reason.
    #[must_use]
    pub fn unreadable(error: CopiesTableError) -> Self {
        Self {
            damage: vec![error],
            ..Self::default()
        }
    }

    /// Returns whether the code object has no copies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.damage.is_empty()
    }

    /// Start and stop of the areas as device addresses, for a load at `load_delta` of the ELF that these are from.
    pub(crate) fn areas_at(&self, load_delta: u64) -> impl Iterator<Item = (u64, u64)> {
        let tables = self.tables.iter();
        tables.map(move |table| loaded(table.area, load_delta))
    }

    /// The tables with device addresses, for a load at `load_delta` of the ELF that these are from.
    #[must_use]
    pub fn loaded_at(&self, load_delta: u64) -> Self {
        let tables = self.tables.iter();
        Self {
            tables: tables.map(|table| table.loaded_at(load_delta)).collect(),
            damage: self.damage.clone(),
            unit: self.unit,
        }
    }
}

/// Returns whether a table begins at the start of `bytes`.
fn is_table(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The error for `bytes` between two tables, at byte `at` of the section. `None` if there are no bytes.
fn foreign(bytes: &[u8], at: usize) -> Option<CopiesTableError> {
    let len = bytes.len().min(MAGIC.len());
    (len > 0).then(|| CopiesTableError::Magic {
        at,
        found: LittleEndian::read_uint(bytes, len),
    })
}

/// The size of the table at the start of `bytes`, which is at byte `at` of the section. `bytes` end where the next
/// table begins.
fn size(bytes: &[u8], at: usize) -> Result<usize, CopiesTableError> {
    if let (false, Some(error)) = (is_table(bytes), foreign(bytes, at)) {
        return Err(error);
    }
    let room = bytes.len();
    if room < HEAD_BYTES {
        return Err(CopiesTableError::Cut { at, found: room });
    }
    let version = LittleEndian::read_u32(&bytes[MAGIC.len()..]);
    if version != COPIES_VERSION {
        return Err(CopiesTableError::Version { at, found: version });
    }
    let found = LittleEndian::read_u32(&bytes[MAGIC.len() + 4..]);
    let size = found as usize;
    match size.checked_sub(FIXED_BYTES) {
        Some(ranges) if ranges % RANGE_BYTES == 0 && size <= room => Ok(size),
        _ => Err(CopiesTableError::Size { at, found, room }),
    }
}

#[cfg(test)]
#[path = "copies_table_tests.rs"]
mod tests;
