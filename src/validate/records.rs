//! Checks data records against the copied sections.

use std::fmt;

use byteorder::{ByteOrder, LittleEndian};

use crate::device::DeviceRange;
use crate::format::profraw::{MAX_COUNT, RecordLayout, Version};
use crate::validate::{Section, SectionRanges};

/// The most bad records that rocov remembers: there may be millions, and a process prints a hundred lines.
pub const MAX_DEFECTS: usize = 50;

/// A record that rocov leaves out, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordDefect {
    /// The index of the record in the section, from 0.
    pub index: usize,
    /// The hash of the function's name. It finds the name in the names section.
    pub name_ref: u64,
    /// The defect.
    pub kind: DefectKind,
}

/// The kind of defect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefectKind {
    /// The record claims bytes outside of a section.
    Outside {
        /// The section.
        section: Section,
        /// The first claimed byte, relative to the section.
        start: i64,
        /// The number of claimed bytes.
        len: u64,
        /// The size of the section in bytes.
        section_len: u64,
    },
    /// The record has no counters.
    Empty,
    /// A counter is larger than a profile allows.
    Large {
        /// The value of the counter.
        found: u64,
    },
    /// The record claims counters of another record.
    Shared {
        /// The first byte of its counters, relative to the section.
        start: u64,
        /// The index of the other record.
        with: usize,
    },
}

impl fmt::Display for RecordDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "record {} (name hash {:#018x}) ",
            self.index, self.name_ref
        )?;
        match self.kind {
            DefectKind::Outside {
                section,
                start,
                len,
                section_len,
            } => write!(
                f,
                "claims {len} bytes at byte {start} of a {section} section of {section_len} bytes"
            )?,
            DefectKind::Empty => f.write_str("has no counters")?,
            DefectKind::Large { found } => {
                write!(
                    f,
                    "has a count of {found}, but at most {MAX_COUNT} is allowed"
                )?;
            }
            DefectKind::Shared { start, with } => {
                write!(f, "claims the counters of record {with} at byte {start}")?;
            }
        }
        f.write_str("; its counts are left out")
    }
}

/// The records of a code object that are valid in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedRecords {
    /// The good records, whole. `CounterPtr`, `BitmapPtr` and `UniformCounterPtr` hold byte offsets in their
    /// sections. Fields that are only valid on the device (addresses of functions, value profiling) are
    /// cleared.
    pub bytes: Vec<u8>,
    /// True if all records have uniform counters. Otherwise the profile has none.
    pub have_uniform: bool,
    /// The first bad records, [`MAX_DEFECTS`] at most.
    pub defects: Vec<RecordDefect>,
    /// The number of further bad records.
    pub more_defects: usize,
}

impl CheckedRecords {
    fn leave_out(&mut self, index: usize, record: &[u8], kind: DefectKind) {
        if self.defects.len() == MAX_DEFECTS {
            self.more_defects += 1;
            return;
        }
        self.defects.push(RecordDefect {
            index,
            name_ref: LittleEndian::read_u64(record),
            kind,
        });
    }
}

/// Checks the data records, copied from the whole of `ranges.data`. A record is good if its counters, bitmap
/// and uniform counters are inside their sections, if no other record has them, and if its `counters`, from a
/// copy of their whole section, are at most [`MAX_COUNT`].
///
/// A bad record is left out. LLVM's own drain zeroes it in place, but that would cost all the others:
/// `llvm-profdata` rejects a profile with a record of no counters ("number of counters is zero").
///
/// Units with and without uniform counters can be linked into one code object. The uniform counters of a record are left
/// out if another has none, because a profile has them for each record or for none.
///
/// A record that repeats another is no defect: the units of one code object (`-fgpu-rdc`) share the counters
/// of a function that several of them have, and clang 15 gives each unit a record of it.
#[must_use]
pub fn check_records(
    records: &[u8],
    counters: &[u8],
    ranges: &SectionRanges,
    version: &Version,
) -> CheckedRecords {
    let layout = version.layout().record;
    let mut claims = Vec::with_capacity(records.len() / layout.bytes as usize);
    let mut checked = CheckedRecords {
        have_uniform: have_uniform(records, ranges, &layout),
        ..CheckedRecords::default()
    };
    for (index, record) in records.chunks_exact(layout.bytes as usize).enumerate() {
        let address = ranges.data.start.wrapping_add(index as u64 * layout.bytes);
        let claim = Claim::new(
            index,
            record,
            address,
            ranges,
            version,
            checked.have_uniform,
        );
        match claim.and_then(|claim| claim.with_sane(counters, version)) {
            Ok(claim) => claims.push(claim),
            Err(kind) => checked.leave_out(index, record, kind),
        }
    }
    checked.bytes = Vec::with_capacity(claims.len() * layout.bytes as usize);
    let shared = shared(&claims);
    for (claim, shared) in claims.into_iter().zip(shared) {
        let record = &records[claim.index * layout.bytes as usize..][..layout.bytes as usize];
        if let Some(other) = shared {
            if !claim.repeats(&other, records, layout.bytes as usize) {
                let kind = DefectKind::Shared {
                    start: claim.counters,
                    with: other.index,
                };
                checked.leave_out(claim.index, record, kind);
            }
            continue;
        }
        let at = checked.bytes.len();
        checked.bytes.extend_from_slice(record);
        claim.write(&mut checked.bytes[at..], &layout);
    }
    checked
}

/// Returns whether all records point to uniform counters. Those without any counters do not matter.
fn have_uniform(records: &[u8], ranges: &SectionRanges, layout: &RecordLayout) -> bool {
    let Some(field) = layout.uniform_ptr else {
        return false;
    };
    let mut records = records.chunks_exact(layout.bytes as usize);
    ranges.uniform.len > 0
        && records.all(|record| {
            let has_counters = record[layout.num_counters..][..4] != [0; 4];
            !has_counters || record[field..][..8] != [0; 8]
        })
}

/// The earlier claim in the counters section that each claim overlaps, if any.
fn shared(claims: &[Claim]) -> Vec<Option<Claim>> {
    let mut shared = vec![None; claims.len()];
    let mut last: Option<&Claim> = None;
    let places = claims.iter().enumerate();
    let mut order: Vec<_> = places
        .map(|(place, claim)| (claim.counters, place))
        .collect();
    // The sort is of numbers, because each other type that is sorted adds kilobytes to librocov.
    order.sort_unstable();
    for (_, place) in order {
        let claim = &claims[place];
        match last {
            Some(other) if claim.counters < other.counters + other.counters_len => {
                shared[place] = Some(*other);
            }
            _ => last = Some(claim),
        }
    }
    shared
}

/// The parts of the sections that a record claims, as byte offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Claim {
    index: usize,
    counters: u64,
    counters_len: u64,
    bitmap: u64,
    uniform: u64,
}

impl Claim {
    /// Returns whether its record and the record of `other` are equal and of one function.
    fn repeats(&self, other: &Self, records: &[u8], record_bytes: usize) -> bool {
        // The hashes of the function's name and of its structure come first, in every version.
        let hashes = |claim: &Self| &records[claim.index * record_bytes..][..16];
        let elsewhere = Self {
            index: other.index,
            ..*self
        };
        elsewhere == *other && hashes(self) == hashes(other)
    }

    fn new(
        index: usize,
        record: &[u8],
        address: u64,
        ranges: &SectionRanges,
        version: &Version,
        has_uniform: bool,
    ) -> Result<Self, DefectKind> {
        let layout = version.layout().record;
        let number = u64::from(LittleEndian::read_u32(&record[layout.num_counters..]));
        if number == 0 {
            return Err(DefectKind::Empty);
        }
        // These products cannot overflow: a u32 times 8.
        let counters_len = number * version.counter_bytes();
        let uniform_len = u64::from(has_uniform) * number * Version::UNIFORM_COUNTER_BYTES;
        let bitmap_len = u64::from(layout.bitmap_bytes(record));
        let within = |section, field: Option<usize>, len: u64, range: DeviceRange| match field {
            Some(field) if len > 0 => place(record, address, field, section, len, range),
            _ => Ok(0),
        };
        Ok(Self {
            index,
            counters: within(
                Section::Counters,
                Some(layout.counter_ptr),
                counters_len,
                ranges.counters,
            )?,
            counters_len,
            bitmap: within(
                Section::Bitmap,
                layout.bitmap_ptr,
                bitmap_len,
                ranges.bitmap,
            )?,
            uniform: within(
                Section::Uniform,
                layout.uniform_ptr,
                uniform_len,
                ranges.uniform,
            )?,
        })
    }

    /// Returns the claim if its `counters` hold values that kernels can have counted.
    fn with_sane(self, counters: &[u8], version: &Version) -> Result<Self, DefectKind> {
        if version.is_single_byte() {
            return Ok(self);
        }
        let counters = &counters[self.counters as usize..][..self.counters_len as usize];
        let mut counts = counters.chunks_exact(8).map(LittleEndian::read_u64);
        match counts.find(|count| *count > MAX_COUNT) {
            Some(found) => Err(DefectKind::Large { found }),
            None => Ok(self),
        }
    }

    /// Turns a record of the device into a record of a file.
    fn write(&self, record: &mut [u8], layout: &RecordLayout) {
        layout.clear_device_fields(record);
        LittleEndian::write_u64(&mut record[layout.counter_ptr..], self.counters);
        if let Some(field) = layout.bitmap_ptr {
            LittleEndian::write_u64(&mut record[field..], self.bitmap);
        }
        if let Some(field) = layout.uniform_ptr {
            LittleEndian::write_u64(&mut record[field..], self.uniform);
        }
    }
}

/// The offset in its section that the pointer at `field` of a record at `address` points to. All `len` bytes
/// from there must be inside the section.
fn place(
    record: &[u8],
    address: u64,
    field: usize,
    section: Section,
    len: u64,
    range: DeviceRange,
) -> Result<u64, DefectKind> {
    let pointer = LittleEndian::read_u64(&record[field..]);
    let inside = |start: &u64| start.checked_add(len).is_some_and(|end| end <= range.len);
    // Pointers are relative to the record.
    let relative = address.wrapping_add(pointer).wrapping_sub(range.start);
    // LLVM 15 and 16 assemble the difference `counters - record` of private symbols with an absolute
    // relocation instead of a PC-relative one (R_AMDGPU_ABS64 for REL64). So the field holds the counters'
    // address plus its own offset in the record: 0x7f0000004568 for counters at 0x7f0000004558. No distance
    // inside a code object is as large as an address, so the two forms cannot be confused.
    let absolute = pointer.wrapping_sub(field as u64).wrapping_sub(range.start);
    [relative, absolute]
        .into_iter()
        .find(inside)
        .ok_or(DefectKind::Outside {
            section,
            start: relative.cast_signed(),
            len,
            section_len: range.len,
        })
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
