//! The counts of each function of a raw profile.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::count_kind::MAX_COUNT;
use crate::format::profraw::layout::Meaning;
use crate::format::profraw::read::RawProfile;
use crate::format::profraw::value_profile::ValueProfile;
use crate::format::profraw::{ProfileError, Sum};
use crate::format::sections::Section;

/// The counts of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// The counters. A single-byte counter is 1 if its block was reached, else 0.
    pub counters: Vec<u64>,
    /// The uniform counters, one for each counter; empty if the profile has none.
    pub uniform: Vec<u64>,
    /// The MC/DC bitmap.
    pub bitmap: Vec<u8>,
    /// The values at its sites: of host code only.
    pub values: ValueProfile,
}

/// The counts of functions, by the hash of the name and the hash of the structure.
pub type CountsByFunction = BTreeMap<(u64, u64), FunctionCounts>;

impl FunctionCounts {
    /// Returns whether the function never ran.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.counters.iter().all(|count| *count == 0) && self.bitmap.iter().all(|byte| *byte == 0)
    }

    /// Adds the counts of another run of the function, as [`Counts::add`](super::Counts::add) does. But
    /// counters of single bytes add up, as in llvm-profdata. The sum has uniform counters if both have them.
    ///
    /// # Errors
    /// Fails if the sizes of the two differ. `self` does not change then.
    pub fn add(&mut self, more: &Self) -> Result<(), ProfileError> {
        let have_uniform = !self.uniform.is_empty() && !more.uniform.is_empty();
        let bytes = |counts: &Self| {
            [
                8 * counts.counters.len(),
                8 * usize::from(have_uniform) * counts.uniform.len(),
                counts.bitmap.len(),
            ]
        };
        let mut bytes = bytes(more).into_iter().zip(bytes(self));
        if let Some((found, expected)) = bytes.find(|(found, expected)| found != expected) {
            return Err(ProfileError::Mismatch { found, expected });
        }
        if !have_uniform {
            self.uniform.clear();
        }
        let counters = self.counters.iter_mut().zip(&more.counters);
        let uniform = self.uniform.iter_mut().zip(&more.uniform);
        for (sum, more) in counters.chain(uniform) {
            *sum = sum.saturating_add(*more);
        }
        for (sum, more) in self.bitmap.iter_mut().zip(&more.bitmap) {
            *sum |= more;
        }
        self.values.add(&more.values);
        Ok(())
    }
}

impl Sum {
    /// The counts of each function. Adds the counts of data records for one function.
    ///
    /// # Errors
    /// Fails if a data record is damaged.
    pub fn functions(&self) -> Result<CountsByFunction, ProfileError> {
        read(self.profile(), self.bytes(), |_, _| {
            Ok(ValueProfile::default())
        })
    }
}

/// The counts of each function in `file`, with the values that `values` gives for each place and data record, one
/// after the other.
///
/// # Errors
/// Fails if a data record is damaged, or if `values` fails.
pub(super) fn read(
    profile: &RawProfile,
    file: &[u8],
    mut values: impl FnMut(usize, &[u8]) -> Result<ValueProfile, ProfileError>,
) -> Result<CountsByFunction, ProfileError> {
    let bytes = profile.header.version().layout().record.bytes as usize;
    let records = file[profile.sections.data.clone()].chunks_exact(bytes);
    let mut functions = CountsByFunction::new();
    // Records that share counts would take more memory than the file.
    let mut room = file.len();
    for (index, record) in records.enumerate() {
        let read = Record {
            profile,
            file,
            record,
            index,
        };
        let mut counts = read.counts(&mut room)?;
        counts.values = values(index, record)?;
        match functions.entry(read.key()) {
            Entry::Vacant(place) => _ = place.insert(counts),
            Entry::Occupied(mut known) => known.get_mut().add(&counts)?,
        }
    }
    Ok(functions)
}

/// A data record.
pub(super) struct Record<'a> {
    pub(super) profile: &'a RawProfile,
    pub(super) file: &'a [u8],
    pub(super) record: &'a [u8],
    /// Its place among the records.
    pub(super) index: usize,
}

impl<'a> Record<'a> {
    fn word(&self, at: usize) -> u64 {
        LittleEndian::read_u64(&self.record[at..])
    }

    /// The hash of the name and the hash of the structure.
    pub(super) fn key(&self) -> (u64, u64) {
        (self.word(0), self.word(8))
    }

    pub(super) fn counts(&self, room: &mut usize) -> Result<FunctionCounts, ProfileError> {
        let version = self.profile.header.version();
        let layout = version.layout().record;
        let number = LittleEndian::read_u32(&self.record[layout.num_counters..]).into();
        let words = |bytes: &[u8]| bytes.chunks_exact(8).map(LittleEndian::read_u64).collect();
        if number == 0 {
            return Err(self.damaged(Section::Counters));
        }
        let counters = self.part(Section::Counters, number, room)?;
        let counters: Vec<u64> = match version.is_single_byte() {
            // 0 means reached.
            true => counters.iter().map(|byte| u64::from(*byte == 0)).collect(),
            false => words(counters),
        };
        if let Some(found) = counters.iter().find(|count| **count > MAX_COUNT) {
            return Err(ProfileError::Count {
                index: self.index,
                found: *found,
            });
        }
        let has_uniform = !self.profile.sections.uniform.is_empty();
        let uniform = match has_uniform {
            true => words(self.part(Section::Uniform, number, room)?),
            false => Vec::new(),
        };
        let bytes = layout.bitmap_bytes(self.record).into();
        let bitmap = self.part(Section::Bitmap, bytes, room)?.to_vec();
        Ok(FunctionCounts {
            counters,
            uniform,
            bitmap,
            values: ValueProfile::default(),
        })
    }

    /// The part of a section with this number of elements that belongs to the record. Takes its size in bytes
    /// from `room`.
    fn part(
        &self,
        section: Section,
        number: u64,
        room: &mut usize,
    ) -> Result<&'a [u8], ProfileError> {
        if number == 0 {
            return Ok(&[]);
        }
        let part = self.range(section, number).and_then(|(start, len)| {
            let section = &self.file[self.profile.sections.get(section).clone()];
            *room = room.checked_sub(len)?;
            section.get(start..start.checked_add(len)?)
        });
        part.ok_or_else(|| self.damaged(section))
    }

    pub(super) fn damaged(&self, section: Section) -> ProfileError {
        ProfileError::Record {
            index: self.index,
            section,
        }
    }

    /// The first byte and the number of bytes of such a part in its section.
    pub(super) fn range(&self, section: Section, number: u64) -> Option<(usize, usize)> {
        let version = self.profile.header.version();
        let layout = version.layout();
        let from_record = self.word(layout.record.pointer(section)?);
        let delta = layout.place_of(Meaning::Delta(section))?;
        let delta = self.profile.header.word(layout.header[delta]);
        // From the record to its part, and from the first record to the section.
        let before = layout.record.bytes * self.index as u64;
        let start = from_record.wrapping_add(before).wrapping_sub(delta);
        let len = number.checked_mul(section.element_bytes(version))?;
        Some((usize::try_from(start).ok()?, usize::try_from(len).ok()?))
    }
}

#[cfg(test)]
#[path = "functions_tests.rs"]
mod tests;
