//! One look at a load's sections: read, validated and in host memory.

use byteorder::{ByteOrder, LittleEndian};

use super::copies::{Copies, second_look};
use super::counted::Counted;
use crate::device::{Device, DeviceError, DeviceRange, Symbol, room, zeroed};
use crate::error::Error;
use crate::load::Load;
use crate::profraw::{ProfileError, SavedSection, SavedSections, Version};
use crate::sections::{
    Bounds, BoundsTable, CheckedRecords, Layout, NamesChecker, Section, SectionRanges,
    SectionsError, check_records,
};

/// What was copied from a load.
#[derive(Debug)]
pub(super) enum Snapshot<'a> {
    /// Sections of a version that is known.
    Known(KnownSnapshot<'a>),
    /// Sections that no reader would take, and why: as they are, with their device addresses.
    Unreadable(SavedSections, Error),
}

/// Sections that were understood.
#[derive(Debug)]
pub(super) struct KnownSnapshot<'a> {
    pub(super) version: Version,
    pub(super) records: CheckedRecords,
    pub(super) counted: Counted<'a>,
    pub(super) names: &'a [u8],
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
    /// Different tables that are looked at, with those that cannot be read. A linker resolves the symbols
    /// of all units to the same places.
    const MAX_TABLES: usize = 100;

    /// Asks the ELF's section headers and the tables. The headers win: the table is in memory
    /// that kernels can write to. Without an ELF every table counts that has other bounds than
    /// those before it; the tables of translation units that were linked together are all alike.
    pub(super) fn of(copies: &mut Copies<'_>, load: &Load) -> Located {
        let (tables, mut doubts) = match &load.blanked {
            Some(tables) => (tables.clone(), Vec::new()),
            None => Self::tables(copies, load),
        };
        let symbol = load.version.map(|symbol| symbol.address);
        let version = symbol.or_else(|| tables.first().map(|table| table.version));
        let bounds = match &load.elf {
            None => tables.iter().map(|table| table.bounds).collect(),
            Some(elf) => {
                let bounds = Bounds::of_elf(&elf.sections, load.load_delta);
                // A table that could not be read says nothing; if more than that is wrong, reading
                // the sections will tell.
                doubts.retain(|doubt| !matches!(doubt, Error::Device(_)));
                let disagreements = tables
                    .iter()
                    .filter_map(|table| bounds.disagreement(&table.bounds));
                doubts.extend(disagreements.map(Error::from));
                vec![bounds]
            }
        };
        for bounds in &bounds {
            second_look(copies, load, bounds, version);
        }
        Located {
            bounds,
            version,
            doubts,
        }
    }

    /// Tables with different bounds, and what stands in the way of reading others.
    pub(super) fn tables(copies: &mut Copies<'_>, load: &Load) -> (Vec<BoundsTable>, Vec<Error>) {
        let mut doubts = Vec::new();
        let mut tables: Vec<BoundsTable> = Vec::new();
        for table in &load.tables {
            if tables.len() + doubts.len() == Self::MAX_TABLES {
                let max = Self::MAX_TABLES;
                doubts.push(SectionsError::ManyTables { max }.into());
                break;
            }
            match read_table(copies, *table) {
                Ok(table) if tables.iter().any(|known| known.bounds == table.bounds) => {}
                Ok(table) => tables.push(table),
                Err(error) => doubts.push(error),
            }
        }
        (tables, doubts)
    }

    /// The version word: the device's own, else that of the clang that the ELF names.
    pub(super) fn version_word(&self, copies: &mut Copies<'_>, load: &Load) -> Result<u64, Error> {
        if let Some(start) = self.version {
            SectionRanges::check_version(start, load.segment)?;
            let [word] = copies.get([DeviceRange { start, len: 8 }])?;
            return Ok(LittleEndian::read_u64(word));
        }
        let clang = load.elf.as_ref().and_then(|elf| elf.clang);
        let version = clang
            .and_then(Version::of_clang)
            .ok_or(SectionsError::Unversioned)?;
        Ok(version.word())
    }
}

fn read_table(copies: &mut Copies<'_>, table: Symbol) -> Result<BoundsTable, Error> {
    let range = DeviceRange {
        start: table.address,
        len: Layout::of_size(table.size)?.bytes() as u64,
    };
    let [bytes] = copies.get([range])?;
    Ok(BoundsTable::decode(bytes)?)
}

impl<'a> Snapshot<'a> {
    /// Reads and checks the sections of `load` at `bounds`.
    pub(super) fn take(
        copies: &'a mut Copies<'_>,
        load: &Load,
        bounds: &Bounds,
        word: u64,
        checker: &mut NamesChecker,
    ) -> Result<Self, Error> {
        let version = match Version::of_word(word) {
            Ok(version) => version,
            // What an older one looked like is known, and this is not it: damage.
            Err(error @ ProfileError::UnknownVersion { found, max, .. }) if found <= max.into() => {
                return Err(error.into());
            }
            Err(error) => {
                let ranges = SectionRanges::check(bounds, load.segment, None)?;
                let contents = copies.get(ranges.all().map(|(_, range)| range))?;
                check_room(&contents)?;
                let saved = save(load, word, &ranges, contents);
                return Ok(Snapshot::Unreadable(saved, error.into()));
            }
        };
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        let contents = copies.get(ranges.all().map(|(_, range)| range))?;
        check_room(&contents)?;
        let [records, counters, bitmap, uniform, names] = contents;
        if let Err(error) = checker.check(names) {
            let saved = save(load, word, &ranges, contents);
            return Ok(Snapshot::Unreadable(saved, error.into()));
        }
        Ok(Snapshot::Known(KnownSnapshot {
            version,
            records: check_records(records, counters, &ranges, &version),
            counted: Counted {
                counters,
                bitmap,
                uniform,
            },
            names,
            names_address: ranges.names.start.wrapping_sub(load.load_delta),
        }))
    }
}

/// The sections of `load` as they are.
fn save(load: &Load, word: u64, ranges: &SectionRanges, contents: [&[u8]; 5]) -> SavedSections {
    let sections = ranges.all().into_iter().zip(contents);
    let saved = |((section, range), bytes): ((Section, DeviceRange), &[u8])| SavedSection {
        name: section.to_string(),
        address: range.start,
        bytes: bytes.to_vec(),
    };
    SavedSections {
        word,
        load_delta: load.load_delta,
        sections: sections.map(saved).collect(),
    }
}

/// Checks that there is memory for what is made of these sections: records that are sorted, a file
/// that is put together and added to another, counts that are remembered. Together they take no more
/// than four times as much; of bad records no more is remembered than can be said. Where one of these steps finds none all the same, the process ends, as
/// Rust has it.
fn check_room(sections: &[&[u8]]) -> Result<(), DeviceError> {
    let total: usize = sections.iter().map(|section| section.len()).sum();
    room(4 * total as u64).map(drop)
}

/// Writes over what `load` has counted: zeros, or "not reached" for single-byte counters.
pub(super) fn zero(device: &dyn Device, load: &Load) -> Result<(), Error> {
    let mut copies = Copies::none(device);
    let located = Located::of(&mut copies, load);
    let version = Version::of_word(located.version_word(&mut copies, load)?)?;
    for bounds in &located.bounds {
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        let unreached = if version.is_single_byte() { 0xff } else { 0 };
        let counted = [
            (ranges.counters, unreached),
            (ranges.bitmap, 0),
            (ranges.uniform, 0),
        ];
        for (range, byte) in counted.into_iter().filter(|(range, _)| range.len > 0) {
            let mut bytes = zeroed(range.len)?;
            bytes.fill(byte);
            device.write(range.start, &bytes)?;
        }
    }
    Ok(())
}
