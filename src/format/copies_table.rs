//! The tables of copies, `__rocov_copies`: the device addresses of the copies that GPU code counts in.
//!
//! Code of rocov's compiler plugin or device header adds to a copy of a counter instead of the counter, one copy
//! for each compute unit. Each translation unit has a table, and the section has all tables of a code object.
//!
//! A copy in version 1 has a word for each counter. In version 2, which rocov writes into PTX, it has probes: each counter
//! is the sum of some of them.

use std::sync::Arc;

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

/// The name of the section in an ELF.
pub const COPIES_SECTION: &str = "__rocov_copies";
/// The symbol of the bounds of the section: two words of 8 bytes, its start and stop as device addresses. Its
/// visibility is protected, so it is in `.dynsym` and the loader finds it by name.
pub const COPIES_SYMBOL: &str = "__rocov_copies_bounds";
/// The version of a table whose copies have all counters.
pub const COPIES_VERSION: u32 = 1;
/// The version of a table whose copies have probes.
pub const PROBES_VERSION: u32 = 2;
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
/// The fixed part, a range, and the number of probes. The terms of the counters follow.
const PROBES_FIXED_BYTES: usize = FIXED_BYTES + RANGE_BYTES + 8;
/// The size of a term.
const TERM_BYTES: usize = 4;
/// The size of a counter, and of a probe.
const WORD_BYTES: u64 = 8;
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
    /// The probes of each copy, if it has those instead of the counters. Then there is one range.
    pub probes: Option<Arc<Probes>>,
}

/// The probes of a copy, and the counters that are sums of them.
///
/// Each counter has a list of probes. It is a sum without subtractions, so it never goes down while kernels run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probes {
    /// The number of probes. Each has 8 bytes.
    pub count: u64,
    /// The lists of all counters, one after the other, as [`Probes::encoded`] writes them.
    terms: Vec<u32>,
}

/// Stands for the number of a probe in the only term of a counter that no probe adds to.
const NO_PROBE: u32 = u32::MAX >> 1;

impl Probes {
    /// The terms of a counter, as a table has them: twice the number of a probe, and 1 more if another one follows.
    pub(crate) fn encoded(probes: impl IntoIterator<Item = usize>) -> Vec<u32> {
        let mut terms: Vec<u32> = probes
            .into_iter()
            .map(|probe| u32::try_from(probe).unwrap_or(NO_PROBE) << 1 | 1)
            .collect();
        match terms.last_mut() {
            Some(last) => *last -= 1,
            None => terms.push(NO_PROBE << 1),
        }
        terms
    }

    /// Calls `add` with the number of each counter and each of its probes.
    pub(crate) fn each(&self, mut add: impl FnMut(usize, usize)) {
        let mut counter = 0;
        for term in &self.terms {
            let probe = term >> 1;
            if probe != NO_PROBE {
                add(counter, probe as usize);
            }
            counter += usize::from(term & 1 == 0);
        }
    }

    /// Decodes the probes of a table at byte `at`, for so many counters. `bytes` begin with the number of probes.
    fn decode(bytes: &[u8], counters: u64, at: usize) -> Result<Self, CopiesTableError> {
        let count = LittleEndian::read_u64(bytes);
        let words = bytes[WORD_BYTES as usize..].chunks_exact(TERM_BYTES);
        let mut words = words.map(LittleEndian::read_u32);
        let mut terms = Vec::new();
        let mut ended = 0;
        while ended < counters
            && let Some(term) = words.next()
        {
            let probe = term >> 1;
            let is_none = term == NO_PROBE << 1;
            if !is_none && u64::from(probe) >= count {
                return Err(CopiesTableError::Probe {
                    at,
                    found: probe,
                    count,
                });
            }
            ended += u64::from(term & 1 == 0);
            terms.push(term);
        }
        // Padding has at most one word.
        let found = ended
            + words
                .skip(1)
                .map(|term| u64::from(term & 1 == 0))
                .sum::<u64>();
        match found == counters {
            true => Ok(Self { count, terms }),
            false => Err(CopiesTableError::Terms {
                at,
                found,
                counters,
            }),
        }
    }
}

impl CopiesTable {
    /// The distance from one copy to the next, in bytes: `counted` bytes, the size of all counters, rounded up to a
    /// multiple of `unit`.
    #[must_use]
    pub fn stride(counted: u64, unit: u64) -> Option<u64> {
        counted.checked_next_multiple_of(unit)
    }

    /// Decodes the table of `bytes` bytes at byte `at` of the section, whose version and size are good.
    fn decode(bytes: &[u8], at: usize) -> Result<Self, CopiesTableError> {
        let pair = |at: usize| {
            let word = |at: usize| LittleEndian::read_u64(&bytes[at..]);
            (word(at), word(at + 8))
        };
        let has_probes = version(bytes) == PROBES_VERSION;
        let end = match has_probes {
            true => FIXED_BYTES + RANGE_BYTES,
            false => bytes.len(),
        };
        let ranges: Vec<(u64, u64)> = (FIXED_BYTES..end).step_by(RANGE_BYTES).map(pair).collect();
        let probes = match (has_probes, ranges.first()) {
            (true, Some((start, stop))) => {
                let counters = stop.saturating_sub(*start) / WORD_BYTES;
                Some(Arc::new(Probes::decode(&bytes[end..], counters, at)?))
            }
            _ => None,
        };
        Ok(Self {
            area: pair(HEAD_BYTES),
            ranges,
            probes,
        })
    }

    fn loaded_at(&self, load_delta: u64) -> Self {
        let ranges = self.ranges.iter();
        Self {
            area: loaded(self.area, load_delta),
            ranges: ranges.map(|range| loaded(*range, load_delta)).collect(),
            probes: self.probes.clone(),
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
        "the table at byte {at} of {COPIES_SECTION} has version {found}, expected {COPIES_VERSION} or {PROBES_VERSION}"
    )]
    Version {
        /// The place of the table in the section.
        at: usize,
        /// The version found.
        found: u32,
    },
    /// A table has an impossible size.
    #[error(
        "the table at byte {at} of {COPIES_SECTION} has {found} bytes, expected {least} plus a multiple of {unit}, at \
        most {room}"
    )]
    Size {
        /// The place of the table in the section.
        at: usize,
        /// The size that it states, in bytes.
        found: u32,
        /// The least size of a table of its version, in bytes.
        least: usize,
        /// The size of each further part, in bytes.
        unit: usize,
        /// The bytes up to the next table or the end of the section.
        room: usize,
    },
    /// A counter is a sum of a probe that a copy does not have.
    #[error(
        "the table at byte {at} of {COPIES_SECTION} has a term with probe {found}, expected less than {count}"
    )]
    Probe {
        /// The place of the table in the section.
        at: usize,
        /// The number of the probe.
        found: u32,
        /// The number of probes of a copy.
        count: u64,
    },
    /// There are fewer or more terms than the counters have.
    #[error(
        "the table at byte {at} of {COPIES_SECTION} ends after the terms of {found}, expected {counters} counters"
    )]
    Terms {
        /// The place of the table in the section.
        at: usize,
        /// The number of counters with terms.
        found: u64,
        /// The number of counters of its range.
        counters: u64,
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
            let table = size(piece, at)
                .and_then(|size| Ok((size, CopiesTable::decode(&piece[..size], at)?)));
            let rest = match table {
                Ok((size, table)) => {
                    found.tables.push(table);
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
    let (least, unit) = match version(bytes) {
        COPIES_VERSION => (FIXED_BYTES, RANGE_BYTES),
        PROBES_VERSION => (PROBES_FIXED_BYTES, ALIGNMENT),
        found => return Err(CopiesTableError::Version { at, found }),
    };
    let found = LittleEndian::read_u32(&bytes[MAGIC.len() + 4..]);
    let size = found as usize;
    match size.checked_sub(least) {
        Some(rest) if rest % unit == 0 && size <= room => Ok(size),
        _ => Err(CopiesTableError::Size {
            at,
            found,
            least,
            unit,
            room,
        }),
    }
}

/// The version of the table at the start of `bytes`, which have at least its head.
fn version(bytes: &[u8]) -> u32 {
    LittleEndian::read_u32(&bytes[MAGIC.len()..])
}

#[cfg(test)]
#[path = "copies_table_tests.rs"]
mod tests;
