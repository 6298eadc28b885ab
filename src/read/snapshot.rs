//! A snapshot of a load's sections: read, validated and in host memory.

use byteorder::{ByteOrder, LittleEndian};

use crate::device::{Device, DeviceRange, Symbol};
use crate::discover::Load;
use crate::format::bounds_table::{Bounds, BoundsTable, TableLayout};
use crate::format::profraw::{ProfileError, SavedSection, SavedSections, Version};
use crate::format::sections::{Addition, PerSection, Section};
use crate::read::copied_memory::{CopiedMemory, second_look};
use crate::read::error::ReadError;
use crate::support::memory::{room, zeroed};
use crate::validate::{
    CheckedRecords, NamesChecker, SectionRanges, SectionsError, check_records, disagreement,
};

/// The copied sections of a load.
#[derive(Debug)]
pub(crate) enum Snapshot<'a> {
    /// Sections of a known version.
    Known(KnownSnapshot<'a>),
    /// Sections that no reader accepts, and the reason. They are raw, with their device addresses.
    Unreadable(SavedSections, ReadError),
}

/// Sections that rocov can read.
#[derive(Debug)]
pub(crate) struct KnownSnapshot<'a> {
    pub(crate) version: Version,
    pub(crate) records: CheckedRecords,
    /// The sections, as copied.
    pub(crate) sections: PerSection<&'a [u8]>,
    /// The ELF address of the names.
    pub(crate) names_address: u64,
}

/// The places of a load's sections, and the errors found on the way.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) bounds: Vec<Bounds>,
    /// The address of the version word.
    version: Option<u64>,
    pub(crate) doubts: Vec<ReadError>,
}

impl Located {
    /// The most different tables that rocov reads, with those that cannot be read. A linker resolves the
    /// symbols of all units to the same places.
    const MAX_TABLES: usize = 100;

    /// Finds the sections with the ELF's section headers and the tables. The headers take precedence: kernels
    /// can write to the table's memory. Without an ELF, every table with new bounds counts. Translation units
    /// that were linked together have equal tables.
    pub(crate) fn of(memory: &mut CopiedMemory<'_>, load: &Load) -> Self {
        let (tables, mut doubts) = match &load.blanked {
            Some(tables) => (tables.clone(), Vec::new()),
            None => Self::tables(memory, load),
        };
        let symbol = load.version.map(|symbol| symbol.address);
        let version = symbol.or_else(|| tables.first().map(|table| table.version));
        let bounds = match &load.elf {
            None => tables.iter().map(|table| table.bounds).collect(),
            Some(elf) => {
                let bounds = Bounds::of_elf(&elf.sections, load.load_delta);
                // A table that could not be read is no evidence. If there is a larger problem, the read of
                // the sections will fail.
                doubts.retain(|doubt| !matches!(doubt, ReadError::Device(_)));
                let disagreements = tables
                    .iter()
                    .filter_map(|table| disagreement(&bounds, &table.bounds));
                doubts.extend(disagreements.map(ReadError::from));
                vec![bounds]
            }
        };
        for bounds in &bounds {
            second_look(memory, load, bounds, version);
        }
        Self {
            bounds,
            version,
            doubts,
        }
    }

    /// The tables with different bounds, and the errors of the others.
    pub(crate) fn tables(
        memory: &mut CopiedMemory<'_>,
        load: &Load,
    ) -> (Vec<BoundsTable>, Vec<ReadError>) {
        let mut doubts = Vec::new();
        let mut tables: Vec<BoundsTable> = Vec::new();
        for table in &load.tables {
            if tables.len() + doubts.len() == Self::MAX_TABLES {
                let max = Self::MAX_TABLES;
                doubts.push(SectionsError::ManyTables { max }.into());
                break;
            }
            match read_table(memory, *table) {
                Ok(table) if tables.iter().any(|known| known.bounds == table.bounds) => {}
                Ok(table) => tables.push(table),
                Err(error) => doubts.push(error),
            }
        }
        (tables, doubts)
    }

    /// The version word: the device's own, or else that of the clang that the ELF names.
    pub(crate) fn version_word(
        &self,
        memory: &mut CopiedMemory<'_>,
        load: &Load,
    ) -> Result<u64, ReadError> {
        if let Some(start) = self.version {
            SectionRanges::check_version(start, load.segment)?;
            let [word] = memory.get([DeviceRange { start, len: 8 }])?;
            return Ok(LittleEndian::read_u64(word));
        }
        let clang = load.elf.as_ref().and_then(|elf| elf.clang);
        let version = clang
            .and_then(Version::of_clang)
            .ok_or(SectionsError::Unversioned)?;
        Ok(version.word())
    }
}

fn read_table(memory: &mut CopiedMemory<'_>, table: Symbol) -> Result<BoundsTable, ReadError> {
    let range = DeviceRange {
        start: table.address,
        len: TableLayout::of_size(table.size)?.bytes() as u64,
    };
    let [bytes] = memory.get([range])?;
    Ok(BoundsTable::decode(bytes)?)
}

impl<'a> Snapshot<'a> {
    /// Reads and checks the sections of `load` at `bounds`.
    pub(crate) fn take(
        memory: &'a mut CopiedMemory<'_>,
        load: &Load,
        bounds: &Bounds,
        word: u64,
        checker: &mut NamesChecker,
    ) -> Result<Self, ReadError> {
        let version = match Version::of_word(word) {
            Ok(version) => version,
            // Older versions are known, and this is not one of them: the word is damaged.
            Err(error @ ProfileError::UnknownVersion { found, max, .. }) if found <= max.into() => {
                return Err(error.into());
            }
            Err(error) => {
                let ranges = SectionRanges::check(bounds, load.segment, None)?;
                let contents = copy(memory, &ranges)?;
                check_room(&contents)?;
                let saved = save(load, word, &ranges, contents);
                return Ok(Snapshot::Unreadable(saved, error.into()));
            }
        };
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        let contents = copy(memory, &ranges)?;
        check_room(&contents)?;
        if let Err(error) = checker.check(contents.names) {
            let saved = save(load, word, &ranges, contents);
            return Ok(Snapshot::Unreadable(saved, error.into()));
        }
        Ok(Snapshot::Known(KnownSnapshot {
            version,
            records: check_records(contents.data, contents.counters, &ranges, &version),
            sections: contents,
            names_address: ranges.names.start.wrapping_sub(load.load_delta),
        }))
    }
}

fn copy<'a>(
    memory: &'a mut CopiedMemory<'_>,
    ranges: &SectionRanges,
) -> Result<PerSection<&'a [u8]>, ReadError> {
    let [data, counters, bitmap, uniform, names] =
        memory.get(Section::ALL.map(|section| *ranges.get(section)))?;
    Ok(PerSection {
        data,
        counters,
        bitmap,
        uniform,
        names,
    })
}

/// The raw sections of `load`.
fn save(
    load: &Load,
    word: u64,
    ranges: &SectionRanges,
    contents: PerSection<&[u8]>,
) -> SavedSections {
    let sections = ranges.iter();
    let saved = |(section, range): (Section, &DeviceRange)| SavedSection {
        name: section.to_string(),
        address: range.start,
        bytes: contents.get(section).to_vec(),
    };
    SavedSections {
        word,
        load_delta: load.load_delta,
        sections: sections.map(saved).collect(),
    }
}

/// Checks that there is memory for the later steps with these sections: the sorted records, the file, its sum
/// with another file, and the remembered counts. Together they take at most four times the size of the
/// sections. rocov remembers only as many bad records as it can report. If a later step still runs out of
/// memory, the process ends, as usual in Rust.
fn check_room(sections: &PerSection<&[u8]>) -> Result<(), ReadError> {
    let total: usize = sections.iter().map(|(_, section)| section.len()).sum();
    Ok(room(4 * total as u64).map(drop)?)
}

/// Overwrites the counts of `load`: with zeros, or with "not reached" for single-byte counters.
pub(crate) fn zero(device: &dyn Device, load: &Load) -> Result<(), ReadError> {
    let mut memory = CopiedMemory::none(device);
    let located = Located::of(&mut memory, load);
    let version = Version::of_word(located.version_word(&mut memory, load)?)?;
    for bounds in &located.bounds {
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        for section in Section::counted() {
            let range = *ranges.get(section);
            if range.len == 0 {
                continue;
            }
            let byte = match section.adds(&version) {
                Addition::And => 0xff,
                _ => 0,
            };
            let mut bytes = zeroed(range.len)?;
            bytes.fill(byte);
            device.write(range.start, &bytes)?;
        }
    }
    Ok(())
}
