//! The memory of a cubin's profile data as a linker would lay it out, with addresses of our own: for readers of code
//! objects that are not loaded. The driver's addresses have nothing to do with these.

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use crate::format::bounds_table::{OWN_VERSION_SYMBOL, VERSION_SYMBOL};
use crate::format::codeobject::cuda::CubinError;
use crate::format::codeobject::cuda::profile::{CubinProfile, Record};
use crate::format::codeobject::cuda::symbols::{Pointer, Variable, Variables};
use crate::format::codeobject::elf::{CodeObject, CodeObjectError, ElfRange, ProfileSections};
use crate::format::codeobject::segments::MAX_BYTES;
use crate::format::profraw::Version;
use crate::format::sections::PerSection;
use crate::support::memory::room;

/// The address of the first section, so that none is at 0.
const START: u64 = 0x1000;
/// The alignment of sections in bytes.
const ALIGNMENT: u64 = 8;
/// The versions of raw profiles that clang may have compiled for.
const VERSIONS: std::ops::RangeInclusive<u64> = 8..=11;

/// The places of a cubin's profile data.
#[derive(Debug)]
pub(in crate::format::codeobject) struct Layout {
    profile: CubinProfile,
    /// The sections. Each has the variables of the profile in their order.
    pub(in crate::format::codeobject) sections: ProfileSections,
    /// The version word.
    version: ElfRange,
    word: u64,
    end: u64,
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The layout of a cubin that counts. `None` for every other code object, and for a cubin that has profile
    /// sections already.
    ///
    /// # Errors
    /// Fails if symbols, relocations or records are damaged.
    pub(in crate::format::codeobject) fn layout(&self) -> Result<Option<Layout>, CodeObjectError> {
        if !self.lacks_sections() {
            return Ok(None);
        }
        let profile = self.cubin_profile()?;
        match profile.is_instrumented() {
            true => Ok(Some(Layout::of(profile)?)),
            false => Ok(None),
        }
    }
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The place of the version word of a cubin that counts: as the compiler's, and as that of rocov's device header if
    /// the cubin has the header.
    pub(in crate::format::codeobject) fn version_word(
        &self,
        name: &[u8],
    ) -> Result<Option<ElfRange>, CodeObjectError> {
        let is_there = name == VERSION_SYMBOL.as_bytes()
            || name == OWN_VERSION_SYMBOL.as_bytes()
                && Variables::of(self)?
                    .named(&[OWN_VERSION_SYMBOL])
                    .next()
                    .is_some();
        let layout = self.layout()?.filter(|_| is_there);
        Ok(layout.map(|it| it.version))
    }
}

impl Layout {
    fn of(profile: CubinProfile) -> Result<Self, CodeObjectError> {
        let word = version(&profile)?;
        let mut end = START;
        let mut place = |sizes: &mut dyn Iterator<Item = u64>| {
            let address = end.checked_next_multiple_of(ALIGNMENT)?;
            let size = sizes.fold(0, u64::saturating_add);
            end = address.checked_add(size).filter(|end| *end <= MAX_BYTES)?;
            Some(ElfRange { address, size })
        };
        let mut section = |sizes: &mut dyn Iterator<Item = u64>| {
            place(sizes).ok_or(CodeObjectError::Oversized { max: MAX_BYTES })
        };
        let data = section(&mut profile.records.iter().map(|it| it.bytes.len() as u64))?;
        let counters = section(&mut profile.counters.iter().map(|it| it.size))?;
        let bitmap = section(&mut profile.bitmaps.iter().map(|it| it.size))?;
        let names = section(&mut [profile.names.len() as u64].into_iter())?;
        let version = section(&mut [8].into_iter())?;
        Ok(Self {
            sections: PerSection {
                data: Some(data),
                counters: Some(counters),
                bitmap: (bitmap.size > 0).then_some(bitmap),
                uniform: None,
                names: Some(names),
            },
            profile,
            version,
            word,
            end,
        })
    }

    /// The memory from address 0 on, before any kernel has run.
    ///
    /// # Errors
    /// Fails if there is no memory for it, or a record points at no counters of the cubin.
    pub(in crate::format::codeobject) fn memory<'data, R: ReadRef<'data>>(
        &self,
        code_object: &CodeObject<'data, R>,
    ) -> Result<Vec<u8>, CodeObjectError> {
        room(self.end).map_err(|_| CodeObjectError::NoMemory { bytes: self.end })?;
        let mut memory = vec![0; self.end as usize];
        let mut write = |address: u64, bytes: &[u8]| {
            memory[address as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        let PerSection {
            data,
            counters,
            bitmap,
            names,
            ..
        } = self.sections.map(|range| range.map_or(0, |it| it.address));
        write(names, &self.profile.names);
        write(self.version.address, &self.word.to_le_bytes());
        let counters = Places::of(&self.profile.counters, counters);
        let bitmaps = Places::of(&self.profile.bitmaps, bitmap);
        for places in [&counters, &bitmaps] {
            for (variable, address) in &places.0 {
                if let Some(contents) = code_object.contents_of(variable)? {
                    write(*address, contents);
                }
            }
        }
        let mut at = data;
        for record in &self.profile.records {
            write(at, &linked(record, at, &counters, &bitmaps)?);
            at += record.bytes.len() as u64;
        }
        Ok(memory)
    }
}

/// The addresses of variables.
struct Places<'a>(Vec<(&'a Variable, u64)>);

impl<'a> Places<'a> {
    fn of(variables: &'a [Variable], start: u64) -> Self {
        let mut next = start;
        let places = variables.iter().map(|variable| {
            let address = next;
            next += variable.size;
            (variable, address)
        });
        let mut places: Vec<_> = places.collect();
        places.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        Self(places)
    }

    fn address(&self, pointer: &Pointer) -> Option<u64> {
        let found = self
            .0
            .binary_search_by(|(variable, _)| variable.name.cmp(&pointer.variable));
        let (variable, address) = self.0[found.ok()?];
        (pointer.offset <= variable.size).then_some(address + pointer.offset)
    }
}

/// The bytes of a record at an address, with its pointers as distances from that, as in other code objects.
fn linked(
    record: &Record,
    address: u64,
    counters: &Places<'_>,
    bitmaps: &Places<'_>,
) -> Result<Vec<u8>, CubinError> {
    let dangling = || CubinError::Dangling {
        name: record.variable.name.clone(),
    };
    let mut bytes = record.bytes.clone();
    let pointers = [(&record.counters, counters), (&record.bitmap, bitmaps)];
    for (pointer, places) in pointers {
        let Some(pointer) = pointer else { continue };
        let target = places.address(pointer).ok_or_else(dangling)?;
        let at = usize::try_from(pointer.at).map_err(|_| dangling())?;
        let place = bytes.get_mut(at..).and_then(|it| it.get_mut(..8));
        LittleEndian::write_u64(place.ok_or_else(dangling)?, target.wrapping_sub(address));
    }
    match record.counters {
        Some(_) => Ok(bytes),
        None => Err(dangling()),
    }
}

/// The version word of the compiler, or the newest one whose records are like these.
fn version(profile: &CubinProfile) -> Result<u64, CubinError> {
    if let Some(word) = profile.version {
        return Ok(word);
    }
    let records = || profile.records.iter();
    let fits = |version: &Version| {
        let size = version.layout().record.bytes;
        records().all(|record| record.bytes.len() as u64 == size)
    };
    // Versions 9 and 10 have records of one size, and the sizes of bitmaps at different places of them.
    let has_bitmaps = |version: &Version| {
        let layout = &version.layout().record;
        records().any(|record| layout.bitmap_bytes(&record.bytes) > 0)
    };
    let versions = VERSIONS.filter_map(|word| Version::of_word(word).ok());
    let fitting = versions.filter(fits);
    let version = fitting.max_by_key(|version| (has_bitmaps(version), version.word()));
    let version = version.ok_or_else(|| CubinError::Records {
        found: profile.records.first().map_or(0, |it| it.bytes.len()),
    })?;
    Ok(version.word())
}
