//! Device memory, as far as it was copied.
//!
//! A copy costs tens of microseconds whatever its length, so that a load is read in one where its
//! sections lie together, and no byte of it twice.

use std::borrow::Cow;

use crate::device::{Device, DeviceError, DeviceRange, zeroed};
use crate::load::Load;
use crate::sections::{Bounds, MAX_SECTION_BYTES};

/// Ranges that lie closer than this, in bytes, are copied in one: what is between takes some 10
/// microseconds at the 25 GB/s of a PCIe 4 link, less than a copy of its own.
const MAX_GAP: u64 = 256 << 10;

/// What was copied of a device's memory, and what more is needed.
pub(super) struct Copies<'a> {
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

impl<'a> Copies<'a> {
    /// Nothing is copied yet.
    pub(super) fn none(device: &'a dyn Device) -> Self {
        Copies {
            device,
            spans: Vec::new(),
        }
    }

    /// `bytes` are those from `start` on.
    pub(super) fn of(device: &'a dyn Device, start: u64, bytes: &'a [u8]) -> Self {
        let bytes = bytes.into();
        Copies {
            device,
            spans: vec![Span { start, bytes }],
        }
    }

    /// The bytes of `ranges`, of which those are copied that are not there yet.
    pub(super) fn get<const N: usize>(
        &mut self,
        ranges: [DeviceRange; N],
    ) -> Result<[&[u8]; N], DeviceError> {
        self.complete(&ranges)?;
        Ok(ranges.map(|range| self.at(range).expect("it was copied")))
    }

    /// Copies what is missing of these ranges.
    fn complete(&mut self, ranges: &[DeviceRange]) -> Result<(), DeviceError> {
        let missing = ranges.iter().filter(|range| self.at(**range).is_none());
        for range in together(&missing.copied().collect::<Vec<_>>()) {
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

/// What to copy of `load` first: its counters, and with them what lies near of all that is known of
/// it before anything is read. Where the ELF is out of reach that is the table alone.
pub(super) fn first_look(load: &Load) -> DeviceRange {
    let tables = load.tables.iter().map(|table| DeviceRange {
        start: table.address,
        len: table.size,
    });
    let mut ranges: Vec<DeviceRange> = tables.collect();
    let mut most_wanted = ranges.first().copied();
    ranges.extend(load.version_word());
    if let Some(elf) = &load.elf {
        let bounds = Bounds::of_elf(&elf.sections, load.load_delta);
        most_wanted = Some(range_of(bounds.counters));
        ranges.extend(bounds.all().map(range_of));
    }
    ranges.retain(|range| is_sane(*range, load));
    let found = most_wanted.and_then(|wanted| {
        together(&ranges)
            .into_iter()
            .find(|span| wanted.len > 0 && span.contains(&wanted))
    });
    found.unwrap_or(DeviceRange {
        start: load.segment.start,
        len: 0,
    })
}

/// Copies at once what `bounds` and `version` lead to, where that is in the load at all. Whether it
/// may be believed, and what cannot be copied, shows when each is looked at.
pub(super) fn second_look(
    copies: &mut Copies<'_>,
    load: &Load,
    bounds: &Bounds,
    version: Option<u64>,
) {
    let [names, counters, data, bitmap, uniform] = bounds.all();
    let word = version.map_or((0, 0), |word| (word, word.saturating_add(8)));
    let wanted = [names, counters, data, bitmap, uniform, word].map(|bounds| {
        let range = range_of(bounds);
        let len = if is_sane(range, load) { range.len } else { 0 };
        DeviceRange { len, ..range }
    });
    let _ = copies.get(wanted);
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

/// The fewest copies that have all of `ranges`: those that lie near together in one.
fn together(ranges: &[DeviceRange]) -> Vec<DeviceRange> {
    let mut spans: Vec<DeviceRange> = Vec::new();
    for range in DeviceRange::in_order(ranges)
        .into_iter()
        .map(|place| ranges[place])
    {
        match spans.last_mut() {
            Some(last) if range.start - last.start <= last.len.saturating_add(MAX_GAP) => {
                let len = (range.start - last.start).saturating_add(range.len);
                last.len = last.len.max(len);
            }
            _ => spans.push(range),
        }
    }
    spans
}
