//! The counts of a raw profile one by one, as a table holds them: each has the place of its data record.

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::count_kind::{CountKind, MAX_COUNT};
use crate::format::profraw::functions::Record;
use crate::format::profraw::{ProfileError, Sum};
use crate::format::sections::{Addition, Section};

/// A count of a data record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordCount {
    /// The place of the data record in the profile, from 0.
    pub record: u32,
    /// The thing that is counted.
    pub kind: CountKind,
    /// The place among those of its kind in the record, from 0.
    pub index: u32,
    /// The count.
    pub count: u64,
}

impl Sum {
    /// The number of data records.
    #[must_use]
    pub fn records(&self) -> usize {
        let bytes = self.profile().header.version().layout().record.bytes as usize;
        self.profile().sections.data.len() / bytes
    }

    /// The hash of the name and the hash of the structure of each data record's function, with the number of its
    /// counters.
    #[must_use]
    pub fn record_keys(&self) -> Vec<((u64, u64), u32)> {
        let layout = self.profile().header.version().layout().record;
        let keys = (0..self.records()).map(|index| {
            let record = self.record(index);
            let counters = LittleEndian::read_u32(&record.record[layout.num_counters..]);
            (record.key(), counters)
        });
        keys.collect()
    }

    /// The counts other than 0, by data record.
    ///
    /// # Errors
    /// Fails if a data record is damaged.
    pub fn counts(&self) -> Result<Vec<RecordCount>, ProfileError> {
        let layout = self.profile().header.version().layout().record;
        let mut room = self.bytes().len();
        let mut all = Vec::new();
        for index in 0..self.records() {
            let record = self.record(index);
            let counts = record.counts(&mut room)?;
            let number = u32::try_from(index).map_err(|_| record.damaged(Section::Data))?;
            let wave_size = layout
                .wave_size
                .map(|at| LittleEndian::read_u16(&record.record[at..]).into());
            let bitmap: Vec<u64> = counts.bitmap.iter().map(|byte| (*byte).into()).collect();
            for (kind, counts) in [
                (CountKind::Counter, &*counts.counters),
                (CountKind::Uniform, &*counts.uniform),
                (CountKind::Bitmap, &*bitmap),
                (CountKind::WaveSize, wave_size.as_slice()),
            ] {
                let counts = (0..).zip(counts).filter(|(_, count)| **count > 0);
                all.extend(counts.map(|(index, count)| RecordCount {
                    record: number,
                    kind,
                    index,
                    count: *count,
                }));
            }
        }
        Ok(all)
    }

    /// A profile of the code without counts.
    #[must_use]
    pub fn blank(&self) -> Self {
        let mut blank = self.clone();
        let version = *self.profile().header.version();
        for section in Section::counted() {
            let nothing = match section.adds(&version) {
                Addition::And => 0xff,
                _ => 0,
            };
            let place = self.profile().sections.get(section).clone();
            blank.bytes_mut()[place].fill(nothing);
        }
        let data = self.profile().sections.data.clone();
        let layout = version.layout().record;
        let records = layout.without_wave_sizes(&self.bytes()[data.clone()]);
        blank.bytes_mut()[data].copy_from_slice(&records);
        blank
    }

    /// Adds a count, as [`Sum::add`] adds those of a profile.
    ///
    /// # Errors
    /// Fails if the profile has no such place. It does not change then.
    pub fn add_count(&mut self, more: &RecordCount) -> Result<(), ProfileError> {
        let no_place = || ProfileError::NoPlace {
            record: more.record,
            kind: more.kind,
            index: more.index,
        };
        let version = *self.profile().header.version();
        let Some((start, len)) = self.place(more) else {
            return Err(no_place());
        };
        let place = self.bytes_mut().get_mut(start..start + len);
        let place = place.ok_or_else(no_place)?;
        match more.kind.section().map(|section| section.adds(&version)) {
            Some(Addition::Words) => {
                let sum = LittleEndian::read_u64(place).saturating_add(more.count);
                LittleEndian::write_u64(place, sum.min(MAX_COUNT));
            }
            Some(Addition::And) if more.count > 0 => place[0] = 0,
            Some(Addition::Or) => place[0] |= more.count.to_le_bytes()[0],
            None if *place == [0, 0] => place.copy_from_slice(&more.count.to_le_bytes()[..2]),
            _ => {}
        }
        Ok(())
    }

    /// The first byte of a count in the file, and its number of bytes.
    fn place(&self, count: &RecordCount) -> Option<(usize, usize)> {
        let index = count.record as usize;
        if index >= self.records() {
            return None;
        }
        let record = self.record(index);
        let version = self.profile().header.version();
        let layout = version.layout().record;
        let Some(section) = count.kind.section() else {
            let at = self.profile().sections.data.start + layout.bytes as usize * index;
            return Some((at + layout.wave_size.filter(|_| count.index == 0)?, 2));
        };
        let number = match count.kind {
            CountKind::Bitmap => layout.bitmap_bytes(record.record),
            _ => LittleEndian::read_u32(&record.record[layout.num_counters..]),
        };
        if count.index >= number {
            return None;
        }
        let (start, _) = record.range(section, number.into())?;
        let size = usize::try_from(section.element_bytes(version)).ok()?;
        let within = start.checked_add(size * count.index as usize)?;
        let place = self.profile().sections.get(section);
        (within + size <= place.len()).then(|| (place.start + within, size))
    }

    fn record(&self, index: usize) -> Record<'_> {
        let bytes = self.profile().header.version().layout().record.bytes as usize;
        let records = &self.bytes()[self.profile().sections.data.clone()];
        Record {
            profile: self.profile(),
            file: self.bytes(),
            record: &records[bytes * index..][..bytes],
            index,
        }
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
