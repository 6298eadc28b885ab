//! Writing a raw profile.

use byteorder::{ByteOrder, LittleEndian, WriteBytesExt};

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
    /// `counters`, in bytes.
    pub records: &'a [u8],
    /// The counters.
    pub counters: &'a [u8],
    /// The names.
    pub names: &'a [u8],
    /// Address of the names in the ELF: the same on every load.
    pub names_address: u64,
}

/// Encodes a raw profile: header, binary ids, records, counters, names; each padded to 8 bytes.
/// There are no virtual tables, bitmaps and values.
///
/// The same code object with the same counts gives the same bytes, wherever it was loaded:
/// pointers are those of the file's own layout, in which the counters follow the records.
#[must_use]
pub fn encode(parts: &Parts<'_>) -> Vec<u8> {
    let layout = parts.version.layout();
    let binary_ids = parts.build_id.map_or_else(Vec::new, binary_id);
    let counters_delta = parts.records.len() as u64;
    let counters_padding = padding(parts.counters.len());
    let mut file = Vec::with_capacity(
        layout.header_bytes()
            + binary_ids.len()
            + parts.records.len()
            + parts.counters.len()
            + parts.names.len()
            + 16,
    );
    push(&mut file, MAGIC);
    for word in layout.header {
        let value = match word {
            Word::Version => parts.version.word(),
            Word::BinaryIdsSize => binary_ids.len() as u64,
            Word::NumData => parts.records.len() as u64 / layout.record.bytes,
            Word::NumCounters => parts.counters.len() as u64 / parts.version.counter_bytes(),
            Word::PaddingAfterCounters => counters_padding as u64,
            Word::NamesSize => parts.names.len() as u64,
            Word::CountersDelta => counters_delta,
            Word::NamesDelta => parts.names_address,
            Word::ValueKindLast => layout.value_kind_last(),
            // Records have a multiple of 8 bytes; the rest is not carried.
            Word::PaddingBeforeCounters
            | Word::NumBitmapBytes
            | Word::PaddingAfterBitmap
            | Word::BitmapDelta
            | Word::NumVTables
            | Word::VNamesSize => 0,
        };
        push(&mut file, value);
    }
    file.extend_from_slice(&binary_ids);
    for (index, record) in parts
        .records
        .chunks_exact(layout.record.bytes as usize)
        .enumerate()
    {
        let at = file.len() + layout.record.counter_ptr;
        file.extend_from_slice(record);
        // From the record to its counters, modulo 2^64 only in name: counters come after records.
        let place = LittleEndian::read_u64(&file[at..]);
        let pointer = counters_delta + place - index as u64 * layout.record.bytes;
        LittleEndian::write_u64(&mut file[at..], pointer);
    }
    file.extend_from_slice(parts.counters);
    file.resize(file.len() + counters_padding, 0);
    file.extend_from_slice(parts.names);
    file.resize(file.len() + padding(parts.names.len()), 0);
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
