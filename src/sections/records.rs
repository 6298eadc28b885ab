//! Data records against the sections that were copied.

use std::fmt;

use byteorder::{ByteOrder, LittleEndian};

use super::SectionRanges;
use crate::profraw::Version;

/// A record that is left out, and why.
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

/// The records of a code object that can stand in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedRecords {
    /// The good records, whole. `CounterPtr` holds the place of the counters in their section, in
    /// bytes; what a file may not carry (addresses of device functions, value profiling and
    /// bitmaps that are not copied) is cleared.
    pub bytes: Vec<u8>,
    /// The bad ones.
    pub defects: Vec<RecordDefect>,
    /// Bytes of MC/DC bitmaps that the good records claimed.
    pub bitmap_bytes: u64,
}

/// Sorts the data records, which are copied from the whole of `ranges.data`: those whose counters
/// are inside the counters section are good.
///
/// A bad one is left out. Zeroing it in place, as LLVM's own drain does, would cost all the
/// others: `llvm-profdata` refuses a profile with a record of no counters ("number of counters is
/// zero").
#[must_use]
pub fn check_records(records: &[u8], ranges: &SectionRanges, version: &Version) -> CheckedRecords {
    let layout = version.layout().record;
    let mut checked = CheckedRecords::default();
    checked.bytes.reserve_exact(records.len());
    for (index, record) in records.chunks_exact(layout.bytes as usize).enumerate() {
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
        if !inside || counters == 0 {
            checked.defects.push(RecordDefect {
                index,
                name_ref: LittleEndian::read_u64(record),
                counters_start: start.cast_signed(),
                counters,
                section_bytes: ranges.counters.len,
            });
            continue;
        }
        checked.bitmap_bytes += u64::from(layout.bitmap_bytes(record));
        let at = checked.bytes.len();
        checked.bytes.extend_from_slice(record);
        let record = &mut checked.bytes[at..];
        layout.clear_device_fields(record);
        LittleEndian::write_u64(&mut record[layout.counter_ptr..], start);
    }
    checked
}
