//! A snapshot of a load's sections: read, validated and in host memory.

use std::borrow::Cow;

use byteorder::{ByteOrder, LittleEndian};

use crate::device::{Device, DeviceError, DeviceRange, Symbol};
use crate::discover::Load;
use crate::format::bounds_table::{Bounds, BoundsTable, TableLayout};
use crate::format::copies_table::{COPIES_BOUNDS_BYTES, CopiesTableError, CopiesTables};
use crate::format::profraw::{ProfileError, SavedSection, SavedSections, Version};
use crate::format::sections::{Addition, PerSection, Section};
use crate::read::copied_memory::{CopiedMemory, second_look};
use crate::read::counter_copies::add_copies;
use crate::read::error::ReadError;
use crate::read::inserted;
use crate::support::memory::{room, zeroed};
use crate::validate::{
    CheckedCopies, CheckedRecords, CopiesError, NamesChecker, SectionRanges, SectionsError,
    bounded, check_records, disagreement,
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
    /// The sections, as copied, with the sums of the copies in the counters.
    pub(crate) sections: PerSection<Cow<'a, [u8]>>,
    /// The bytes of the copies.
    pub(crate) copies: u64,
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
    pub(crate) fn take(memory: &mut CopiedMemory<'_>, load: &Load) -> Self {
        let (tables, mut doubts) = match &load.blanked {
            Some(tables) => (tables.clone(), Vec::new()),
            None => Self::tables(memory, load),
        };
        let symbol = load.version.map(|symbol| symbol.address);
        let version = symbol.or_else(|| tables.first().map(|table| table.version));
        let bounds = match &load.elf {
            None => tables.iter().map(|table| table.bounds).collect(),
            Some(elf) => {
                let bounds = Bounds::from_elf(&elf.sections, load.load_delta);
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
        Self {
            bounds,
            version,
            doubts,
        }
    }

    /// Copies the sections, the version word and the copies of counters at once, as far as they are missing. Errors come
    /// later, when each part is used.
    pub(crate) fn copy(&self, memory: &mut CopiedMemory<'_>, load: &Load) {
        for bounds in &self.bounds {
            second_look(memory, load, bounds, self.version);
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
            .and_then(Version::from_clang)
            .ok_or(SectionsError::Unversioned)?;
        Ok(version.word())
    }
}

fn read_table(memory: &mut CopiedMemory<'_>, table: Symbol) -> Result<BoundsTable, ReadError> {
    let range = DeviceRange {
        start: table.address,
        len: TableLayout::from_size(table.size)?.bytes() as u64,
    };
    let [bytes] = memory.get([range])?;
    Ok(BoundsTable::decode(bytes)?)
}

/// Finds and checks the copies of `load`, which has sections at `ranges` and this version word. Without an ELF, reads
/// their tables from the device.
fn find_copies(
    memory: &CopiedMemory<'_>,
    load: &Load,
    ranges: &SectionRanges,
    word: u64,
) -> Result<CheckedCopies, DeviceError> {
    let tables = match (&load.elf, load.copies) {
        (Some(elf), _) => elf.copies.loaded_at(load.load_delta),
        (None, None) => CopiesTables::default(),
        (None, Some(bounds)) if bounds.size != COPIES_BOUNDS_BYTES => {
            let found = bounds.size;
            CopiesTables::unreadable(CopiesTableError::Bounds { found })
        }
        (None, Some(Symbol { address, size })) => {
            let bounds = memory.read(DeviceRange {
                start: address,
                len: size,
            })?;
            let word = |at: usize| LittleEndian::read_u64(&bounds[at..]);
            match bounded("the tables of copies", (word(0), word(8)), load.segment) {
                Ok(range) => CopiesTables::decode(&memory.read(range)?),
                Err(error) => return Ok(CheckedCopies::unknown(error)),
            }
        }
    };
    let is_single_byte = Version::counts_bytes(word);
    Ok(CheckedCopies::check(
        &tables,
        ranges,
        load.segment,
        is_single_byte,
    ))
}

impl<'a> Snapshot<'a> {
    /// Reads and checks the sections of `load` at `bounds`, and sums the copies of its counters. Also returns the
    /// reasons why counts of copies are missing.
    pub(crate) fn take(
        memory: &'a mut CopiedMemory<'_>,
        load: &Load,
        bounds: &Bounds,
        word: u64,
        checker: &mut NamesChecker,
    ) -> Result<(Self, Vec<CopiesError>), ReadError> {
        let version = match Version::from_word(word) {
            // Older versions are known, and this is not one of them: the word is damaged.
            Err(error @ ProfileError::UnknownVersion { found, max, .. }) if found <= max.into() => {
                return Err(error.into());
            }
            version => version,
        };
        let ranges = SectionRanges::check(bounds, load.segment, version.as_ref().ok())?;
        memory.complete(&Section::ALL.map(|section| *ranges.get(section)))?;
        let memory = &*memory;
        let mut sections = PerSection::try_from_fn(|section| memory.read(*ranges.get(section)))?;
        check_room(&sections)?;
        let CheckedCopies { areas, errors } = find_copies(memory, load, &ranges, word)?;
        for area in &areas {
            add_copies(&mut sections, area, &memory.read(area.memory)?)?;
        }
        let copies = areas.iter().map(|area| area.memory.len).sum();
        let accepted = version.map_err(ReadError::from).and_then(|version| {
            checker.check(&sections.names)?;
            Ok(version)
        });
        let snapshot = match accepted {
            Ok(version) => {
                let records = check_records(&sections.data, &sections.counters, &ranges, &version);
                if !records.have_uniform {
                    sections.uniform = Cow::default();
                }
                Snapshot::Known(KnownSnapshot {
                    version,
                    records,
                    sections,
                    copies,
                    names_address: ranges.names.start.wrapping_sub(load.load_delta),
                })
            }
            Err(error) => Snapshot::Unreadable(save(load, word, &ranges, &sections), error),
        };
        Ok((snapshot, errors))
    }
}

/// The raw sections of `load`.
fn save(
    load: &Load,
    word: u64,
    ranges: &SectionRanges,
    contents: &PerSection<Cow<'_, [u8]>>,
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
fn check_room(sections: &PerSection<Cow<'_, [u8]>>) -> Result<(), ReadError> {
    let total: usize = sections.iter().map(|(_, section)| section.len()).sum();
    Ok(room(4 * total as u64).map(drop)?)
}

/// Overwrites the counts of `load` and their copies: with zeros, or with "not reached" for single-byte counters.
pub(crate) fn zero(device: &dyn Device, load: &Load) -> Result<(), ReadError> {
    if let Some(executions) = device.executions() {
        executions.forget(load.segment);
    }
    inserted::zero(device, load)?;
    if !load.is_instrumented() {
        return Ok(());
    }
    let mut memory = CopiedMemory::none(device);
    let located = Located::take(&mut memory, load);
    let version = Version::from_word(located.version_word(&mut memory, load)?)?;
    for bounds in &located.bounds {
        let ranges = SectionRanges::check(bounds, load.segment, Some(&version))?;
        let copies = find_copies(&memory, load, &ranges, version.word())?;
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
        for area in copies.areas {
            device.write(area.memory.start, &zeroed(area.memory.len)?)?;
        }
    }
    Ok(())
}
