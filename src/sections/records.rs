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
        let record_address = ranges.data.start.wrapping_add(index as u64 * layout.bytes);
        let claim = Claim::of(record, record_address, ranges, version);
        if !claim.is_inside(ranges, version) {
            checked.defects.push(RecordDefect {
                index,
                name_ref: LittleEndian::read_u64(record),
                counters_start: claim.start.cast_signed(),
                counters: claim.counters,
                section_bytes: ranges.counters.len,
            });
            continue;
        }
        checked.bitmap_bytes += u64::from(layout.bitmap_bytes(record));
        let at = checked.bytes.len();
        checked.bytes.extend_from_slice(record);
        let record = &mut checked.bytes[at..];
        layout.clear_device_fields(record);
        LittleEndian::write_u64(&mut record[layout.counter_ptr..], claim.start);
    }
    checked
}

/// What a record claims to be its own of the counters section.
struct Claim {
    /// First byte, relative to the section, modulo 2^64.
    start: u64,
    /// Number of counters.
    counters: u32,
}

impl Claim {
    fn of(record: &[u8], address: u64, ranges: &SectionRanges, version: &Version) -> Claim {
        let layout = version.layout().record;
        let pointer = LittleEndian::read_u64(&record[layout.counter_ptr..]);
        let counters = LittleEndian::read_u32(&record[layout.num_counters..]);
        let relative = address
            .wrapping_add(pointer)
            .wrapping_sub(ranges.counters.start);
        let claim = Claim {
            start: relative,
            counters,
        };
        if claim.is_inside(ranges, version) {
            return claim;
        }
        // LLVM 15 and 16 assemble the difference `counters - record` of private symbols with an
        // absolute relocation where a PC-relative one is due (R_AMDGPU_ABS64 for REL64), so that
        // the field holds the counters' address plus its own offset in the record:
        // 0x7f0000004568 for counters at 0x7f0000004558. No distance inside a code object is as
        // large as an address, so one cannot be mistaken for the other.
        let absolute = pointer
            .wrapping_sub(layout.counter_ptr as u64)
            .wrapping_sub(ranges.counters.start);
        let misassembled = Claim {
            start: absolute,
            counters,
        };
        if misassembled.is_inside(ranges, version) {
            misassembled
        } else {
            claim
        }
    }

    /// Whether it has counters, all of them in the section.
    fn is_inside(&self, ranges: &SectionRanges, version: &Version) -> bool {
        // No overflow: the product is below 2^35.
        let len = u64::from(self.counters) * version.counter_bytes();
        let end = self.start.checked_add(len);
        len > 0 && end.is_some_and(|end| end <= ranges.counters.len)
    }
}
