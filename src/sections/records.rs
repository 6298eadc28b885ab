//! Data records against the sections that were copied.

use std::fmt;

use byteorder::{ByteOrder, LittleEndian};

use super::SectionRanges;
use crate::profraw::Version;

/// What is wrong with a record. The record is zeroed, so that readers skip it instead of taking
/// other functions' counters for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordDefect {
    /// Place of the record in the section, from 0.
    pub index: usize,
    /// Hash of the function's name, which finds it in the names.
    pub name_ref: u64,
    /// First byte of its counters, relative to the counters section.
    pub counters_start: i64,
    /// Number of counters it claims.
    pub counters: u32,
    /// Size of the counters section in bytes.
    pub section_bytes: u64,
}

impl fmt::Display for RecordDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "record {} (name hash {:#018x}) claims {} counters at byte {} of a counters section \
             of {} bytes; its counts are left out",
            self.index, self.name_ref, self.counters, self.counters_start, self.section_bytes
        )
    }
}

/// Makes the copied data records fit for a file: every record whose counters are not inside the
/// counters section as a whole is zeroed and reported, and what a file may not carry (addresses
/// of device functions, value profiling and bitmaps that are not copied) is cleared.
///
/// `records` holds the whole data section as it is at `ranges.data`.
pub fn repair_records(
    records: &mut [u8],
    ranges: &SectionRanges,
    version: &Version,
) -> Vec<RecordDefect> {
    let layout = version.layout().record;
    let mut defects = Vec::new();
    for (index, record) in records.chunks_exact_mut(layout.bytes as usize).enumerate() {
        // The pointer is relative to the record itself: this is its place in the section.
        let record_address = ranges.data.start.wrapping_add(index as u64 * layout.bytes);
        let pointer = LittleEndian::read_u64(&record[layout.counter_ptr..]);
        let counters = LittleEndian::read_u32(&record[layout.num_counters..]);
        let start = record_address
            .wrapping_add(pointer)
            .wrapping_sub(ranges.counters.start);
        // No overflow: the product is below 2^35.
        let len = u64::from(counters) * version.counter_bytes();
        let inside = start
            .checked_add(len)
            .is_some_and(|end| end <= ranges.counters.len);
        if inside && counters > 0 {
            layout.clear_device_fields(record);
            continue;
        }
        defects.push(RecordDefect {
            index,
            name_ref: LittleEndian::read_u64(record),
            counters_start: start.cast_signed(),
            counters,
            section_bytes: ranges.counters.len,
        });
        record.fill(0);
    }
    defects
}
