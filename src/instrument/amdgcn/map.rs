//! The map of an instrumented code object: the counters of each instruction.
//!
//! Two sections that are not loaded hold it. [`ORIGINAL_SECTION`] is the code object before. [`MAP_SECTION`] has, as
//! ULEB128 numbers: the version; the ELF address of the counters, and their number; the number of those that are sums,
//! and for each the counters from the one before (from the first one, at first) to it, and the number of counters from
//! it on of which it is the sum; the number of functions; then for each function its ELF address, its size in words of
//! 4 bytes, the size in bytes of what follows, one bit for each word that starts an instruction (8 in a byte, lowest
//! first), the number of stretches, and for each stretch the words from the start of the one before (of the function,
//! at first), and the counts of its waves and its lanes. A count is a sum: its denominator, the number of its terms,
//! and for each the number of a counter and a factor (zigzag). If the denominator is 0, the count is 1 if some term is
//! not 0, and each term is the bits of the counter that its factor has, too. A function with several copies is there as
//! often: its counts are the sums of theirs.

use std::ops::Range;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use super::error::MapError;
use crate::format::blocks::trace::WORD_BYTES;
use crate::format::leb128::{uleb128, write_uleb128};

/// The section with the map.
pub const MAP_SECTION: &str = ".rocov.map";
/// The section with the code object before it was instrumented.
pub const ORIGINAL_SECTION: &str = ".rocov.original";
/// The section with the copies of functions.
pub(super) const TEXT_SECTION: &str = ".rocov.text";
/// The section with the counters.
pub(super) const COUNTERS_SECTION: &str = ".rocov.counters";
/// The sections of instrumented code.
pub(super) const SECTIONS: [&str; 4] = [
    MAP_SECTION,
    ORIGINAL_SECTION,
    TEXT_SECTION,
    COUNTERS_SECTION,
];
/// The version of the map.
pub const MAP_VERSION: u64 = 4;
/// The most lanes of a wave.
const MOST_LANES: u64 = 64;
/// The fewest bytes of a function: its address, its sizes and the number of stretches.
const LEAST_FUNCTION: usize = 4;

/// A count that follows from counters: the sum of some of them, each with a factor, divided by a denominator. If this is 0, the
/// count is 1 if a counter has a bit of its factor, and 0 otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) denominator: u64,
    pub(super) terms: Vec<(usize, i64)>,
}

/// A stretch of code, all instructions of which run equally often with the same lanes.
#[derive(Clone, Debug)]
pub(super) struct StretchCounts {
    /// Its first word, from the start of the function.
    pub(super) word: u64,
    pub(super) waves: Sum,
    pub(super) lanes: Sum,
}

/// The counts of a function.
#[derive(Clone, Debug)]
pub(super) struct FunctionCounts {
    pub(super) address: u64,
    /// Its size in words.
    pub(super) words: u64,
    /// The words that start an instruction.
    pub(super) starts: Vec<u64>,
    /// By rising word.
    pub(super) stretches: Vec<StretchCounts>,
}

/// A map that is being written. Functions come in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct MapParts {
    /// The bytes of functions, in pieces that are freed one by one.
    pieces: Vec<Vec<u8>>,
    /// The ELF address of each function, the number of its piece, and its bytes there.
    places: Vec<(u64, usize, Range<usize>)>,
    /// The counters that are sums of counters from them on, and the number of these.
    spread: Vec<(u64, u64)>,
}

impl MapParts {
    /// The bytes of a piece, but for larger functions.
    const PIECE: usize = 1 << 20;

    pub(super) fn add(&mut self, function: &FunctionCounts) {
        let mut body = vec![0; function.words.div_ceil(8) as usize];
        for word in &function.starts {
            body[(word / 8) as usize] |= 1 << (word % 8);
        }
        write_uleb128(&mut body, function.stretches.len() as u64);
        let mut last = 0;
        for stretch in &function.stretches {
            write_uleb128(&mut body, stretch.word - last);
            last = stretch.word;
            for sum in [&stretch.waves, &stretch.lanes] {
                write_uleb128(&mut body, sum.denominator);
                write_uleb128(&mut body, sum.terms.len() as u64);
                for (counter, factor) in &sum.terms {
                    write_uleb128(&mut body, *counter as u64);
                    write_uleb128(&mut body, ((factor << 1) ^ (factor >> 63)).cast_unsigned());
                }
            }
        }
        let mut head = Vec::new();
        for number in [function.address, function.words, body.len() as u64] {
            write_uleb128(&mut head, number);
        }
        let size = head.len() + body.len();
        let room = |piece: &Vec<u8>| piece.capacity() - piece.len();
        if self.pieces.last().map_or(0, room) < size {
            let capacity = size.max(Self::PIECE);
            self.pieces.push(Vec::with_capacity(capacity));
        }
        let number = self.pieces.len() - 1;
        let piece = &mut self.pieces[number];
        let start = piece.len();
        piece.extend(head);
        piece.extend(body);
        let place = (function.address, number, start..start + size);
        self.places.push(place);
    }

    /// Notes that a counter is the sum of this number of counters from it on.
    pub(super) fn add_sum(&mut self, counter: u64, count: u64) {
        self.spread.push((counter, count));
    }

    /// Writes the map of so many counters at an ELF address.
    pub(super) fn write(mut self, out: &mut Vec<u8>, address: u64, counters: u64) {
        for number in [MAP_VERSION, address, counters, self.spread.len() as u64] {
            write_uleb128(out, number);
        }
        self.spread.sort_unstable();
        let mut last = 0;
        for (counter, count) in &self.spread {
            write_uleb128(out, counter - last);
            write_uleb128(out, *count);
            last = *counter;
        }
        write_uleb128(out, self.places.len() as u64);
        self.places.sort_by_key(|(address, ..)| *address);
        let mut lasts = vec![0; self.pieces.len()];
        for (index, (_, piece, _)) in self.places.iter().enumerate() {
            lasts[*piece] = index;
        }
        for (index, (_, piece, range)) in self.places.into_iter().enumerate() {
            out.extend_from_slice(&self.pieces[piece][range]);
            if lasts[piece] == index {
                self.pieces[piece] = Vec::new();
            }
        }
    }

    /// The most bytes of the map, but for those of the fixed part of its head.
    pub(super) fn len(&self) -> usize {
        /// A number has at most ten bytes.
        const SUM: usize = 2 * 10;
        let functions: usize = self.pieces.iter().map(Vec::len).sum();
        functions + SUM * self.spread.len()
    }
}

/// The numbers of a map, one after the other.
#[derive(Clone, Copy, Debug)]
struct Numbers<'data> {
    all: &'data [u8],
    at: usize,
}

impl<'data> Numbers<'data> {
    fn next(&mut self) -> Result<u64, MapError> {
        let rest = self.all.get(self.at..).unwrap_or_default();
        let (number, len) = uleb128(rest).ok_or(self.damaged())?;
        self.at += len;
        Ok(number)
    }

    fn bytes(&mut self, len: u64) -> Result<&'data [u8], MapError> {
        let range = usize::try_from(len)
            .ok()
            .and_then(|len| Some(self.at..self.at.checked_add(len)?));
        let bytes = range.and_then(|range| self.all.get(range));
        let bytes = bytes.ok_or(self.damaged())?;
        self.at += bytes.len();
        Ok(bytes)
    }

    fn damaged(&self) -> MapError {
        MapError::Damaged { at: self.at }
    }
}

/// The place of a function's counts in the map.
#[derive(Clone, Copy, Debug)]
struct Place<'data> {
    address: u64,
    words: u64,
    body: &'data [u8],
}

/// The map of an instrumented code object.
#[derive(Clone, Debug)]
pub struct CounterMap<'data> {
    original: &'data [u8],
    address: u64,
    counters: u64,
    /// The counters that are sums of counters from them on, by rising number, and the number of these.
    spread: Vec<(u64, u64)>,
    /// By rising address.
    functions: Vec<Place<'data>>,
}

impl<'data> CounterMap<'data> {
    /// The map of a code object. `None` if it is not instrumented.
    ///
    /// # Errors
    /// Fails if the map is damaged, or if another release wrote it.
    pub fn find(elf: &'data [u8]) -> Result<Option<Self>, MapError> {
        let Some(map) = section(elf, MAP_SECTION) else {
            return Ok(None);
        };
        let original = section(elf, ORIGINAL_SECTION).ok_or(MapError::NoOriginal {
            section: ORIGINAL_SECTION,
        })?;
        Self::new(original, map).map(Some)
    }

    /// The map in the contents of [`ORIGINAL_SECTION`] and [`MAP_SECTION`].
    ///
    /// # Errors
    /// Fails if the map is damaged, or if another release wrote it.
    pub fn new(original: &'data [u8], map: &'data [u8]) -> Result<Self, MapError> {
        let mut numbers = Numbers { all: map, at: 0 };
        let version = numbers.next()?;
        if version != MAP_VERSION {
            return Err(MapError::Version {
                found: version,
                expected: MAP_VERSION,
            });
        }
        let (address, counters) = (numbers.next()?, numbers.next()?);
        let sums = numbers.next()?;
        let mut spread = Vec::new();
        // The end of the counters of the last sum.
        let mut last = None;
        for _ in 0..sums {
            let before = last.map_or(0, |(counter, _)| counter);
            let counter = numbers.next()?.checked_add(before);
            let count = numbers.next()?;
            let end = counter.and_then(|counter| counter.checked_add(count));
            let is_behind = |counter: &u64| last.is_none_or(|(_, end)| *counter >= end);
            let counter = counter.filter(is_behind);
            let (Some(counter), Some(end), 1..=MOST_LANES) = (counter, end, count) else {
                return Err(numbers.damaged());
            };
            if end > counters {
                return Err(numbers.damaged());
            }
            last = Some((counter, end));
            spread.push((counter, count));
        }
        let count = numbers.next()?;
        let most = map.len() / LEAST_FUNCTION;
        let count = usize::try_from(count).ok().filter(|count| *count <= most);
        let count = count.ok_or(numbers.damaged())?;
        let mut functions = Vec::with_capacity(count);
        for _ in 0..count {
            let (address, words, size) = (numbers.next()?, numbers.next()?, numbers.next()?);
            let body = numbers.bytes(size)?;
            // Each word has a bit.
            let end = words.checked_mul(WORD_BYTES);
            let end = end.and_then(|size| address.checked_add(size));
            if end.is_none() || words.div_ceil(8) > size {
                return Err(numbers.damaged());
            }
            functions.push(Place {
                address,
                words,
                body,
            });
        }
        functions.sort_unstable_by_key(|place| place.address);
        Ok(Self {
            original,
            address,
            counters,
            spread,
            functions,
        })
    }

    /// The code object before it was instrumented.
    #[must_use]
    pub fn original(&self) -> &'data [u8] {
        self.original
    }

    /// The ELF address of the counters, and their number. Each has 8 bytes.
    #[must_use]
    pub fn counters(&self) -> (u64, u64) {
        (self.address, self.counters)
    }

    /// The ELF addresses of the functions with counters, by rising address.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        let copies = self
            .functions
            .chunk_by(|one, other| one.address == other.address);
        copies.map(|copies| copies[0].address)
    }

    /// The executed instructions, by the values of the counters. Missing values are 0.
    #[must_use]
    pub fn executed<'map>(&'map self, values: &'map [u64]) -> ExecutedCode<'map> {
        ExecutedCode { map: self, values }
    }
}

/// The executed instructions of an instrumented code object.
#[derive(Clone, Copy, Debug)]
pub struct ExecutedCode<'map> {
    map: &'map CounterMap<'map>,
    values: &'map [u64],
}

impl ExecutedCode<'_> {
    /// Writes two counts for each word of code from the ELF address `start` on: the waves that executed the instruction that
    /// starts there, and the lanes that were active. They stay as they are where no instruction with counters starts.
    ///
    /// # Errors
    /// Fails if the map of a function is damaged.
    pub fn count(&self, start: u64, counts: &mut [u64]) -> Result<(), MapError> {
        let end = start.saturating_add(counts.len() as u64 / 2 * WORD_BYTES);
        let mut address = None;
        for place in &self.map.functions {
            let last = place.address + place.words * WORD_BYTES;
            if place.address < end && start < last {
                let is_first = address.replace(place.address) != Some(place.address);
                self.count_copy(place, is_first, start, counts)?;
            }
        }
        Ok(())
    }

    /// Writes the counts of the first copy of a function, or adds those of another one.
    fn count_copy(
        &self,
        place: &Place<'_>,
        is_first: bool,
        start: u64,
        counts: &mut [u64],
    ) -> Result<(), MapError> {
        let mut numbers = Numbers {
            all: place.body,
            at: 0,
        };
        let starts = numbers.bytes(place.words.div_ceil(8))?;
        let stretches = numbers.next()?;
        let mut word = 0_u64;
        let mut current = [0; 2];
        let mut next = 0;
        let mut write = |until: u64, values: [u64; 2], next: &mut u64| {
            for word in *next..until.min(place.words) {
                if starts[(word / 8) as usize] >> (word % 8) & 1 == 0 {
                    continue;
                }
                let address = place.address + word * WORD_BYTES;
                let index = address.checked_sub(start).map(|from| from / WORD_BYTES * 2);
                let pair =
                    index.and_then(|index| counts.get_mut(index as usize..)?.first_chunk_mut());
                match pair {
                    Some(pair) if is_first => *pair = values,
                    Some([waves, lanes]) => {
                        *waves = waves.saturating_add(values[0]);
                        *lanes = lanes.saturating_add(values[1]);
                    }
                    None => {}
                }
            }
            *next = until.max(*next);
        };
        for _ in 0..stretches {
            word = word.saturating_add(numbers.next()?);
            write(word, current, &mut next);
            current = [self.sum(&mut numbers)?, self.sum(&mut numbers)?];
        }
        write(place.words, current, &mut next);
        Ok(())
    }

    /// The value of a counter.
    fn value(&self, counter: u64) -> u64 {
        let spread = &self.map.spread;
        let sum = spread.binary_search_by_key(&counter, |(first, _)| *first);
        let count = sum.map_or(1, |place| spread[place].1);
        let values = self.values.get(counter as usize..).unwrap_or_default();
        let values = values.iter().take(count as usize);
        values.fold(0, |sum, value| sum.wrapping_add(*value))
    }

    /// The next count.
    fn sum(&self, numbers: &mut Numbers<'_>) -> Result<u64, MapError> {
        let denominator = numbers.next()?;
        let terms = numbers.next()?;
        let (mut sum, mut has_bits) = (0_i128, false);
        for _ in 0..terms {
            let (counter, factor) = (numbers.next()?, numbers.next()?);
            let factor = (factor >> 1).cast_signed() ^ -(factor & 1).cast_signed();
            let value = self.value(counter);
            has_bits |= value & factor.cast_unsigned() != 0;
            sum = sum.wrapping_add(i128::from(value).wrapping_mul(factor.into()));
        }
        if denominator == 0 {
            return Ok(has_bits.into());
        }
        // Waves that have not ended yet may be missing on one side only.
        Ok((sum / i128::from(denominator)).max(0) as u64)
    }
}

/// The bytes of a section.
fn section<'data>(elf: &'data [u8], name: &str) -> Option<&'data [u8]> {
    let header = FileHeader64::<LittleEndian>::parse(elf).ok()?;
    let sections = header.sections(LittleEndian, elf).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, name.as_bytes())?;
    section.data(LittleEndian, elf).ok()
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
