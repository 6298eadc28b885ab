//! Writing a raw profile.

use byteorder::{ByteOrder, LittleEndian, WriteBytesExt};

use super::merge::Counts;
use super::version::{Version, Word};

/// `255 'l' 'p' 'r' 'o' 'f' 'r' 129`, most significant byte first: a 64-bit raw profile.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"\xfflprofr\x81");

/// The parts of a raw profile.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Version and variant, as the device has them.
    pub version: Version,
    /// Build id of the code object, where it has one.
    pub build_id: Option<&'a [u8]>,
    /// The data records, whole. `CounterPtr` holds the place of the record's counters in
    /// `counters`, in bytes; `UniformCounterPtr` and `BitmapPtr` likewise.
    pub records: &'a [u8],
    /// The counters.
    pub counters: &'a [u8],
    /// The MC/DC bitmaps.
    pub bitmap: &'a [u8],
    /// The uniform counters.
    pub uniform: &'a [u8],
    /// The names.
    pub names: &'a [u8],
    /// Address of the names in the ELF: the same on every load.
    pub names_address: u64,
}

impl<'a> Parts<'a> {
    /// The same, having counted this.
    #[must_use]
    pub fn counting(&self, counts: &'a Counts) -> Parts<'a> {
        Parts {
            counters: &counts.counters,
            bitmap: &counts.bitmap,
            uniform: &counts.uniform,
            ..*self
        }
    }
}

/// Encodes a raw profile: header, binary ids, records, counters, bitmaps, uniform counters, names;
/// each padded to 8 bytes. There are no virtual tables and values.
///
/// The same code object with the same counts gives the same bytes, wherever it was loaded:
/// pointers are those of the file's own layout, in which the sections follow one another.
#[must_use]
pub fn encode(parts: &Parts<'_>) -> Vec<u8> {
    let layout = parts.version.layout();
    let record = layout.record;
    // A section that the version has no word for would stand where its readers look for another.
    let known = |word, section| match layout.header.contains(&word) {
        true => section,
        false => [].as_slice(),
    };
    let bitmap = known(Word::NumBitmapBytes, parts.bitmap);
    let uniform = known(Word::NumUniformCounters, parts.uniform);
    let binary_ids = parts.build_id.map_or_else(Vec::new, binary_id);
    // Where the sections are, from the first record on. Records have a multiple of 8 bytes.
    let counters_delta = parts.records.len();
    let bitmap_delta = counters_delta + parts.counters.len().next_multiple_of(8);
    let uniform_delta = bitmap_delta + bitmap.len().next_multiple_of(8);

    let sections = [parts.counters, bitmap, uniform, parts.names];
    let before = [layout.header_bytes(), binary_ids.len(), parts.records.len()];
    let padded = sections.map(|section| section.len().next_multiple_of(8));
    let mut file = Vec::with_capacity(before.iter().chain(&padded).sum());
    push(&mut file, MAGIC);
    for word in layout.header {
        let value = match word {
            Word::Version => parts.version.word(),
            Word::BinaryIdsSize => binary_ids.len() as u64,
            Word::NumData => parts.records.len() as u64 / record.bytes,
            Word::NumCounters => parts.counters.len() as u64 / parts.version.counter_bytes(),
            Word::PaddingAfterCounters => padding(parts.counters.len()) as u64,
            Word::NumBitmapBytes => bitmap.len() as u64,
            Word::PaddingAfterBitmap => padding(bitmap.len()) as u64,
            Word::NumUniformCounters => uniform.len() as u64 / Version::UNIFORM_COUNTER_BYTES,
            Word::UniformCountersDelta => uniform_delta as u64,
            Word::NamesSize => parts.names.len() as u64,
            Word::CountersDelta => counters_delta as u64,
            Word::BitmapDelta => bitmap_delta as u64,
            Word::NamesDelta => parts.names_address,
            Word::ValueKindLast => layout.value_kind_last(),
            // Uniform counters have a multiple of 8 bytes; the rest is not carried.
            Word::PaddingBeforeCounters
            | Word::PaddingAfterUniform
            | Word::NumVTables
            | Word::VNamesSize => 0,
        };
        push(&mut file, value);
    }
    file.extend_from_slice(&binary_ids);
    let pointers = [
        (
            Some(record.counter_ptr),
            counters_delta,
            !parts.counters.is_empty(),
        ),
        (record.bitmap_ptr, bitmap_delta, !bitmap.is_empty()),
        (record.uniform_ptr, uniform_delta, !uniform.is_empty()),
    ];
    for (index, bytes) in parts
        .records
        .chunks_exact(record.bytes as usize)
        .enumerate()
    {
        let start = file.len();
        file.extend_from_slice(bytes);
        for (field, delta, _) in pointers.iter().filter(|(_, _, is_there)| *is_there) {
            let Some(field) = field else { continue };
            let field = &mut file[start + field..][..8];
            // The sections come after the records, so that this stays positive.
            let place = LittleEndian::read_u64(field) + *delta as u64;
            LittleEndian::write_u64(field, place - index as u64 * record.bytes);
        }
    }
    for section in sections {
        file.extend_from_slice(section);
        file.resize(file.len() + padding(section.len()), 0);
    }
    file
}

/// A binary id as the file has it: its length in 8 bytes, the id, padding.
fn binary_id(id: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + id.len() + 8);
    push(&mut bytes, id.len() as u64);
    bytes.extend_from_slice(id);
    bytes.resize(bytes.len() + padding(id.len()), 0);
    bytes
}

fn push(bytes: &mut Vec<u8>, word: u64) {
    bytes
        .write_u64::<LittleEndian>(word)
        .expect("a vector takes every write");
}

/// Bytes up to the next multiple of 8.
pub(super) fn padding(len: usize) -> usize {
    len.next_multiple_of(8) - len
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
