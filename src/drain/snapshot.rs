//! One look at a load's sections: read, validated and in host memory.

use byteorder::{ByteOrder, LittleEndian};

use crate::device::{Device, DeviceRange};
use crate::error::Error;
use crate::load::Load;
use crate::profraw::Version;
use crate::sections::{BoundsTable, CheckedRecords, Layout, SectionRanges, check_records};

/// Sections that lie closer than this, in bytes, are copied in one: a copy costs tens of
/// microseconds whatever its length, and that is what a few pages of waste cost.
const MAX_GAP: u64 = 64 << 10;

/// What was copied from a load.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) version: Version,
    pub(super) records: CheckedRecords,
    pub(super) counters: Vec<u8>,
    pub(super) names: Vec<u8>,
    /// Address of the names in the ELF.
    pub(super) names_address: u64,
}

impl Snapshot {
    /// Reads and checks the sections of `load`.
    pub(super) fn take(device: &dyn Device, load: &Load) -> Result<Snapshot, Error> {
        let layout = Layout::of_size(load.table.size)?;
        let mut bytes = vec![0; layout.bytes()];
        device.read(load.table.address, &mut bytes)?;
        let table = BoundsTable::decode(&bytes)?;

        let version_address = load.version.map_or(table.version, |symbol| symbol.address);
        SectionRanges::check_version(version_address, load.segment)?;
        let mut word = [0; 8];
        device.read(version_address, &mut word)?;
        let version = Version::of_word(LittleEndian::read_u64(&word))?;

        let ranges = SectionRanges::check(&table, load.segment, &version)?;
        let [names, counters, records] =
            read_sections(device, [ranges.names, ranges.counters, ranges.data])?;
        Ok(Snapshot {
            version,
            records: check_records(&records, &ranges, &version),
            counters,
            names,
            names_address: ranges.names.start.wrapping_sub(load.load_delta),
        })
    }
}

/// Copies the sections, those that lie together at once.
fn read_sections<const N: usize>(
    device: &dyn Device,
    sections: [DeviceRange; N],
) -> Result<[Vec<u8>; N], Error> {
    let mut order: [usize; N] = std::array::from_fn(|index| index);
    order.sort_by_key(|index| sections[*index].start);
    let mut contents = [const { Vec::new() }; N];
    let mut rest = order.as_slice();
    while let Some((&first, _)) = rest.split_first() {
        let span_len = rest
            .windows(2)
            .take_while(|pair| near(sections[pair[0]], sections[pair[1]]));
        let (span, after) = rest.split_at(1 + span_len.count());
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

/// Whether `second`, which does not start before `first`, is worth the same copy. An absent
/// section (start and stop null) is not copied with anything.
fn near(first: DeviceRange, second: DeviceRange) -> bool {
    first.len > 0 && second.len > 0 && second.start - (first.start + first.len) <= MAX_GAP
}
