//! Counters of which each compute unit has a copy: their sums.

use byteorder::{ByteOrder, LittleEndian};

use crate::device::DeviceRange;
use crate::discover::Load;
use crate::format::copies_table::{CopiesTables, WORD_BYTES};
use crate::format::profraw::Version;
use crate::format::sections::PerSection;
use crate::read::copies::Copies;
use crate::read::error::ReadError;
use crate::validate::{CheckedCopies, MAX_SECTION_BYTES, SectionRanges, SectionsError};

/// The copies of a load's counters.
#[derive(Debug, Default)]
pub(crate) struct PerUnit {
    checked: Vec<CheckedCopies>,
    /// The errors in the others. Their counts are missing.
    pub(crate) missing: Vec<ReadError>,
}

impl PerUnit {
    /// Finds the copies of the counters in `sections`.
    pub(crate) fn of(
        copies: &mut Copies<'_>,
        load: &Load,
        sections: &SectionRanges,
        version: &Version,
    ) -> Self {
        let mut found = Self::default();
        let CopiesTables { tables, unknown } = match tables(copies, load) {
            Ok(tables) => tables,
            Err(error) => {
                found.missing.push(error);
                return found;
            }
        };
        found
            .missing
            .extend(unknown.map(|error| SectionsError::UnknownCopies(error).into()));
        for table in &tables {
            match CheckedCopies::check(table, load.segment, sections, version) {
                Ok(checked) => found.checked.push(checked),
                Err(defect) => found.missing.push(SectionsError::Copies(defect).into()),
            }
        }
        found
    }

    /// The device memory of all copies.
    pub(crate) fn areas(&self) -> impl Iterator<Item = DeviceRange> {
        self.checked.iter().map(|it| it.area)
    }

    /// The sums of `counters` and all copies of them. `None` if there are no copies.
    ///
    /// # Errors
    /// Fails if an area or the counters cannot be copied from the device.
    pub(crate) fn sums<'a>(
        &self,
        copies: &mut Copies<'a>,
        counters: impl FnOnce(&mut Copies<'a>) -> Result<PerSection<Vec<u8>>, ReadError>,
    ) -> Result<Option<PerSection<Vec<u8>>>, ReadError> {
        if self.checked.is_empty() {
            return Ok(None);
        }
        let mut sections = counters(copies)?;
        for unit in &self.checked {
            let [area] = copies.get([unit.area])?;
            let mut words: Vec<u64> = Vec::new();
            // The stride is 0 if there are no counters.
            let stride = usize::try_from(unit.stride.max(1)).unwrap_or(usize::MAX);
            for copy in area.chunks_exact(stride) {
                let copy = copy
                    .chunks_exact(WORD_BYTES as usize)
                    .map(LittleEndian::read_u64);
                if words.is_empty() {
                    words.extend(copy);
                } else {
                    let sums = words.iter_mut().zip(copy);
                    sums.for_each(|(sum, word)| *sum = sum.wrapping_add(word));
                }
            }
            let mut words = words.into_iter();
            for &(section, start, len) in &unit.ranges {
                let (start, len) = (start as usize, len as usize);
                let counters = &mut sections.get_mut(section)[start..start + len];
                for (counter, word) in counters
                    .chunks_exact_mut(WORD_BYTES as usize)
                    .zip(words.by_ref())
                {
                    let sum = LittleEndian::read_u64(counter).wrapping_add(word);
                    LittleEndian::write_u64(counter, sum);
                }
            }
        }
        Ok(Some(sections))
    }
}

/// The tables of `load`, with device addresses: those in its ELF, or else those on the device.
fn tables(copies: &mut Copies<'_>, load: &Load) -> Result<CopiesTables, ReadError> {
    if let Some(elf) = &load.elf {
        return Ok(elf.copies.loaded(load.load_delta));
    }
    let Some(symbol) = load.copies else {
        return Ok(CopiesTables::default());
    };
    let bounds = DeviceRange {
        start: symbol.address,
        len: 2 * WORD_BYTES,
    };
    let [words] = copies.get([inside(bounds, load)?])?;
    let start = LittleEndian::read_u64(words);
    let stop = LittleEndian::read_u64(&words[WORD_BYTES as usize..]);
    let len = stop.wrapping_sub(start);
    let section = inside(DeviceRange { start, len }, load)?;
    let [contents] = copies.get([section])?;
    Ok(CopiesTables::decode(contents))
}

fn inside(range: DeviceRange, load: &Load) -> Result<DeviceRange, ReadError> {
    if range.len <= MAX_SECTION_BYTES && load.segment.contains(&range) {
        return Ok(range);
    }
    Err(SectionsError::CopiesOutside {
        found: range,
        segment: load.segment,
    }
    .into())
}
