//! One look at a load's sections: read, validated and in host memory.

use byteorder::{ByteOrder, LittleEndian};

use crate::device::{Device, DeviceRange, Symbol};
use crate::error::Error;
use crate::load::Load;
use crate::profraw::{Counts, ProfileError, SavedSection, SavedSections, Version};
use crate::sections::{
    Bounds, BoundsTable, CheckedRecords, Layout, Section, SectionRanges, SectionsError,
    check_records,
};

/// Sections that lie closer than this, in bytes, are copied in one: a copy costs tens of
/// microseconds whatever its length, and that is what a few pages of waste cost.
const MAX_GAP: u64 = 64 << 10;

/// What was copied from a load.
#[derive(Debug)]
pub(super) enum Snapshot {
    /// Sections of a version that is known.
    Known(KnownSnapshot),
    /// Sections of a version that is not: as they are, with their device addresses.
    Unknown(SavedSections),
}

/// Sections that were understood.
#[derive(Debug)]
pub(super) struct KnownSnapshot {
    pub(super) version: Version,
    pub(super) records: CheckedRecords,
    pub(super) counts: Counts,
    pub(super) names: Vec<u8>,
    /// Address of the names in the ELF.
    pub(super) names_address: u64,
}

/// Where a load's sections are, and what stands in the way of believing all that says so.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) bounds: Vec<Bounds>,
    /// Address of the version word.
    version: Option<u64>,
    pub(super) doubts: Vec<Error>,
}

impl Located {
    /// Asks the ELF's section headers and the tables. The headers win: the table is in memory
    /// that kernels can write to. Without an ELF every table counts that has other bounds than
    /// those before it; the tables of translation units that were linked together are all alike.
    pub(super) fn of(device: &dyn Device, load: &Load) -> Located {
        let mut doubts = Vec::new();
        let mut tables: Vec<BoundsTable> = Vec::new();
        for table in &load.tables {
            match read_table(device, *table) {
                Ok(table) if tables.iter().any(|known| known.bounds == table.bounds) => {}
                Ok(table) => tables.push(table),
                Err(error) => doubts.push(error),
            }
        }
        let symbol = load.version.map(|symbol| symbol.address);
        let version = symbol.or_else(|| tables.first().map(|table| table.version));
        let Some(elf) = &load.elf else {
            let bounds = tables.iter().map(|table| table.bounds).collect();
            return Located {
                bounds,
                version,
                doubts,
            };
        };
        let bounds = Bounds::of_elf(&elf.sections, load.load_delta);
        // A table that could not be read says nothing; if more than that is wrong, reading the
        // sections will tell.
        doubts.retain(|doubt| !matches!(doubt, Error::Device(_)));
        let disagreements = tables
            .iter()
            .filter_map(|table| bounds.disagreement(&table.bounds));
        doubts.extend(disagreements.map(Error::from));
        Located {
            bounds: vec![bounds],
            version,
            doubts,
        }
    }

    /// The version word: the device's own, else that of the clang that the ELF names.
    pub(super) fn version_word(&self, device: &dyn Device, load: &Load) -> Result<u64, Error> {
        if let Some(address) = self.version {
            SectionRanges::check_version(address, load.segment)?;
            let mut word = [0; 8];
            device.read(address, &mut word)?;
            return Ok(LittleEndian::read_u64(&word));
        }
        let clang = load.elf.as_ref().and_then(|elf| elf.clang);
        let version = clang
            .and_then(Version::of_clang)
            .ok_or(SectionsError::Unversioned)?;
        Ok(version.word())
    }
}

fn read_table(device: &dyn Device, table: Symbol) -> Result<BoundsTable, Error> {
    let mut bytes = vec![0; Layout::of_size(table.size)?.bytes()];
    device.read(table.address, &mut bytes)?;
    Ok(BoundsTable::decode(&bytes)?)
}

impl Snapshot {
    /// Reads and checks the sections of `load` at `bounds`.
    pub(super) fn take(
        device: &dyn Device,
        load: &Load,
        bounds: &Bounds,
        word: u64,
    ) -> Result<Snapshot, Error> {
        let version = match Version::of_word(word) {
            Ok(version) => version,
            // What an older one looked like is known, and this is not it: damage.
            Err(error @ ProfileError::UnknownVersion { found, max, .. }) if found <= max => {
                return Err(error.into());
            }
            Err(_) => {
                let ranges = SectionRanges::check(bounds, load.segment, None)?;
                let contents = read_sections(device, ranges.all().map(|(_, range)| range))?;
                let sections = ranges.all().into_iter().zip(contents);
                let saved =
                    |((section, range), bytes): ((Section, DeviceRange), Vec<u8>)| SavedSection {
                        name: section.to_string(),
                        address: range.start,
                        bytes,
                    };
                let sections = sections.map(saved).collect();
                let load_delta = load.load_delta;
                return Ok(Snapshot::Unknown(SavedSections {
                    word,
                    load_delta,
                    sections,
                }));
            }
        };
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        let [records, counters, bitmap, uniform, names] =
            read_sections(device, ranges.all().map(|(_, range)| range))?;
        Ok(Snapshot::Known(KnownSnapshot {
            version,
            records: check_records(&records, &ranges, &version),
            counts: Counts {
                counters,
                bitmap,
                uniform,
            },
            names,
            names_address: ranges.names.start.wrapping_sub(load.load_delta),
        }))
    }
}

/// Writes over what `load` has counted: zeros, or "not reached" for single-byte counters.
pub(super) fn zero(device: &dyn Device, load: &Load) -> Result<(), Error> {
    let located = Located::of(device, load);
    let version = Version::of_word(located.version_word(device, load)?)?;
    for bounds in &located.bounds {
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        let unreached = if version.is_single_byte() { 0xff } else { 0 };
        let counted = [
            (ranges.counters, unreached),
            (ranges.bitmap, 0),
            (ranges.uniform, 0),
        ];
        for (range, byte) in counted.into_iter().filter(|(range, _)| range.len > 0) {
            device.write(range.start, &vec![byte; range.len as usize])?;
        }
    }
    Ok(())
}

/// Copies the sections, those that lie together at once.
fn read_sections<const N: usize>(
    device: &dyn Device,
    sections: [DeviceRange; N],
) -> Result<[Vec<u8>; N], Error> {
    let mut order: Vec<usize> = (0..N).filter(|index| sections[*index].len > 0).collect();
    order.sort_unstable_by_key(|index| sections[*index].start);
    let mut contents = [const { Vec::new() }; N];
    let mut rest = order.as_slice();
    while let Some((&first, _)) = rest.split_first() {
        let together = rest
            .windows(2)
            .take_while(|pair| near(sections[pair[0]], sections[pair[1]]));
        let (span, after) = rest.split_at(1 + together.count());
        let start = sections[first].start;
        let last = sections[span[span.len() - 1]];
        let mut bytes = vec![0; (last.start + last.len - start) as usize];
        device.read(start, &mut bytes)?;
        for &index in span {
            let at = (sections[index].start - start) as usize;
            contents[index] = bytes[at..at + sections[index].len as usize].to_vec();
        }
        rest = after;
    }
    Ok(contents)
}

/// Whether `second`, which starts after `first` ends, is worth the same copy.
fn near(first: DeviceRange, second: DeviceRange) -> bool {
    second.start - (first.start + first.len) <= MAX_GAP
}
