//! Device memory that was copied so far.
//!
//! A copy costs tens of microseconds whatever its length. So rocov reads a load in one copy if its sections
//! lie close together, and copies no byte twice.

use std::borrow::Cow;

use crate::device::{Device, DeviceError, DeviceRange};
use crate::discover::Load;
use crate::format::bounds_table::Bounds;
use crate::support::memory::zeroed;
use crate::validate::MAX_SECTION_BYTES;

/// Ranges that are closer than this, in bytes, are copied in one. The bytes between them take some 10
/// microseconds at the 25 GB/s of a PCIe 4 link, less than another copy.
const MAX_GAP: u64 = 256 << 10;

/// Parts that lie closer than this, in bytes, are read as one: each part takes the system some loads, too.
const MAX_GAP_OF_PARTS: u64 = 64;

/// Areas with copies of counters may lie this far from the sections, in bytes. The load's other copy would have to
/// wait for the first, which takes longer.
const MAX_GAP_TO_AREAS: u64 = 1 << 20;

/// The most bytes of areas that are in host memory at a time, except a larger one by itself.
const MAX_AREAS_BYTES: u64 = MAX_SECTION_BYTES;

/// The copied parts of a device's memory. It copies more on demand.
pub(crate) struct CopiedMemory<'a> {
    device: &'a dyn Device,
    spans: Vec<Span<'a>>,
}

struct Span<'a> {
    start: u64,
    bytes: Cow<'a, [u8]>,
}

impl Span<'_> {
    fn get(&self, range: DeviceRange) -> Option<&[u8]> {
        let at = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..at.checked_add(range.len as usize)?)
    }
}

impl<'a> CopiedMemory<'a> {
    /// Starts without a copy.
    pub(crate) fn none(device: &'a dyn Device) -> Self {
        CopiedMemory {
            device,
            spans: Vec::new(),
        }
    }

    /// Starts with `bytes`, which are those from `start` on.
    pub(crate) fn new(device: &'a dyn Device, start: u64, bytes: &'a [u8]) -> Self {
        let bytes = bytes.into();
        CopiedMemory {
            device,
            spans: vec![Span { start, bytes }],
        }
    }

    /// Starts with `bytes`, which are those of `parts`, one behind the other.
    pub(crate) fn from_parts(
        device: &'a dyn Device,
        parts: &[DeviceRange],
        mut bytes: &'a [u8],
    ) -> Self {
        let spans = parts.iter().map(|part| {
            let (own, others) = bytes.split_at(part.len as usize);
            bytes = others;
            Span {
                start: part.start,
                bytes: own.into(),
            }
        });
        CopiedMemory {
            device,
            spans: spans.collect(),
        }
    }

    /// The device whose memory it is.
    pub(crate) fn device(&self) -> &'a dyn Device {
        self.device
    }

    /// The bytes of `ranges`. Copies those that are missing.
    pub(crate) fn get<const N: usize>(
        &mut self,
        ranges: [DeviceRange; N],
    ) -> Result<[&[u8]; N], DeviceError> {
        self.complete(&ranges)?;
        Ok(ranges.map(|range| self.at(range).expect("it was copied")))
    }

    /// The bytes of `range`. If they were not copied so far, copies them and does not keep them.
    pub(crate) fn read(&self, range: DeviceRange) -> Result<Cow<'_, [u8]>, DeviceError> {
        if let Some(bytes) = self.at(range) {
            return Ok(bytes.into());
        }
        let mut bytes = zeroed(range.len)?;
        self.device.read(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    /// Copies the missing ones of these ranges.
    pub(crate) fn complete(&mut self, ranges: &[DeviceRange]) -> Result<(), DeviceError> {
        let missing = ranges.iter().filter(|range| self.at(**range).is_none());
        for range in together(&missing.copied().collect::<Vec<_>>(), MAX_GAP) {
            let mut bytes = zeroed(range.len)?;
            self.device.read(range.start, &mut bytes)?;
            self.spans.push(Span {
                start: range.start,
                bytes: bytes.into(),
            });
        }
        Ok(())
    }

    fn at(&self, range: DeviceRange) -> Option<&[u8]> {
        if range.len == 0 {
            return Some(&[]);
        }
        self.spans.iter().find_map(|span| span.get(range))
    }
}

/// The first look at a load.
pub(crate) struct FirstLook {
    /// The range to copy: its counters, and the parts near them whose place is known before a read. If the ELF cannot be
    /// read, only the tables.
    pub(crate) range: DeviceRange,
    /// The parts of the range that are needed, in their order.
    pub(crate) parts: Vec<DeviceRange>,
}

/// The memory of `load` to read first.
pub(crate) fn first_look(load: &Load) -> FirstLook {
    let symbols = load.tables.iter().chain(&load.copies);
    let symbols = symbols.map(|symbol| DeviceRange {
        start: symbol.address,
        len: symbol.size,
    });
    let mut ranges: Vec<DeviceRange> = symbols.collect();
    let mut most_wanted = ranges.first().copied();
    let mut max_gap = MAX_GAP;
    ranges.extend(load.version_word());
    if let Some(counters) = load.inserted_range() {
        most_wanted = Some(counters);
        ranges.push(counters);
    } else if let Some(elf) = &load.elf {
        let bounds = Bounds::from_elf(&elf.sections, load.load_delta);
        most_wanted = Some(range_of(bounds.counters));
        ranges.extend(bounds.iter().map(|(_, bounds)| range_of(*bounds)));
        if load.has_copies() {
            max_gap = MAX_GAP_TO_AREAS;
            ranges.extend(areas(load));
        }
    }
    ranges.retain(|range| is_sane(*range, load));
    let found = most_wanted.and_then(|wanted| {
        together(&ranges, max_gap)
            .into_iter()
            .find(|span| wanted.len > 0 && span.contains(&wanted))
    });
    let range = found.unwrap_or(DeviceRange {
        start: load.segment.start,
        len: 0,
    });
    ranges.retain(|part| part.len > 0 && range.contains(part));
    FirstLook {
        range,
        parts: together(&ranges, MAX_GAP_OF_PARTS),
    }
}

/// Copies at once the ranges of `bounds` and `version` and the areas from the ELF, as far as they lie in the load.
/// Validation and errors come later, when each range is used.
pub(crate) fn second_look(
    memory: &mut CopiedMemory<'_>,
    load: &Load,
    bounds: &Bounds,
    version: Option<u64>,
) {
    let word = version.map(|word| (word, word.saturating_add(8)));
    let sections = bounds.iter().map(|(_, bounds)| *bounds);
    let mut wanted: Vec<DeviceRange> = sections.chain(word).map(range_of).collect();
    wanted.extend(areas(load));
    wanted.retain(|range| is_sane(*range, load));
    let _ = memory.complete(&wanted);
}

/// The areas to copy with the sections, if the ELF shows where they are. None if together they are too large: they are
/// copied one after the other then.
fn areas(load: &Load) -> Vec<DeviceRange> {
    let elf = load.elf.iter();
    let areas = elf.flat_map(|elf| elf.copies.areas_at(load.load_delta));
    let mut areas: Vec<_> = areas.map(range_of).collect();
    areas.retain(|area| is_sane(*area, load));
    // The units of one area each have a table of it.
    areas.sort_unstable_by_key(|area| (area.start, area.len));
    areas.dedup();
    let total = areas
        .iter()
        .fold(0, |sum: u64, area| sum.saturating_add(area.len));
    if total > MAX_AREAS_BYTES {
        areas.clear();
    }
    areas
}

fn range_of((start, stop): (u64, u64)) -> DeviceRange {
    DeviceRange {
        start,
        len: stop.saturating_sub(start),
    }
}

fn is_sane(range: DeviceRange, load: &Load) -> bool {
    range.len <= MAX_SECTION_BYTES && load.segment.contains(&range)
}

/// The fewest copies that cover all of `ranges`: ranges that are at most `max_gap` bytes apart share one.
fn together(ranges: &[DeviceRange], max_gap: u64) -> Vec<DeviceRange> {
    let mut spans: Vec<DeviceRange> = Vec::new();
    for range in DeviceRange::in_order(ranges)
        .into_iter()
        .map(|place| ranges[place])
    {
        match spans.last_mut() {
            Some(last) if range.start - last.start <= last.len.saturating_add(max_gap) => {
                let len = (range.start - last.start).saturating_add(range.len);
                last.len = last.len.max(len);
            }
            _ => spans.push(range),
        }
    }
    spans
}
