//! Writes a raw profile.

use byteorder::{ByteOrder, LittleEndian, WriteBytesExt};

use crate::format::profraw::counts::Counts;
use crate::format::profraw::layout::{MAGIC, Meaning, Version, padding};
use crate::format::sections::{PerSection, Section};

/// The parts of a raw profile.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The version with its variant, as on the device.
    pub version: Version,
    /// The build id of the code object, if it has one.
    pub build_id: Option<&'a [u8]>,
    /// The sections. Every data record must be whole. In it, `CounterPtr` is the byte offset of the record's
    /// counters in their section. So are `UniformCounterPtr` and `BitmapPtr` for theirs.
    pub sections: PerSection<&'a [u8]>,
    /// The ELF address of the names, which does not depend on the load.
    pub names_address: u64,
}

impl<'a> Parts<'a> {
    /// These parts with other counts.
    #[must_use]
    pub fn counting(&self, counts: &'a Counts) -> Self {
        Parts {
            sections: PerSection {
                data: self.sections.data,
                names: self.sections.names,
                ..counts.slices()
            },
            ..*self
        }
    }
}

/// Encodes a raw profile: header, binary ids, records, counters, bitmaps, uniform counters and names, each
/// padded to 8 bytes. There are no virtual tables and no values.
///
/// A code object with equal counts gives equal bytes wherever it was loaded: pointers follow the file's own
/// layout, in which the sections follow one another.
#[must_use]
pub fn encode(parts: &Parts<'_>) -> Vec<u8> {
    let layout = parts.version.layout();
    let record = layout.record;
    // If the version has no word for a section, its readers would take the section for another.
    let sections = PerSection::from_fn(|section| match layout.place_of(Meaning::Size(section)) {
        Some(_) => *parts.sections.get(section),
        None => &[],
    });
    let binary_ids = parts.build_id.map_or_else(Vec::new, binary_id);
    // The offset of each section from the first record. The size of a record is a multiple of 8 bytes.
    let mut end = 0;
    let places = sections.map(|section| {
        let start = end;
        end += section.len().next_multiple_of(8);
        start
    });

    let mut file = Vec::with_capacity(layout.header_bytes() + binary_ids.len() + end);
    push(&mut file, MAGIC);
    for word in layout.header {
        let value = match word.meaning() {
            Meaning::Version => parts.version.word(),
            Meaning::BinaryIds => binary_ids.len() as u64,
            Meaning::Size(section) => {
                sections.get(section).len() as u64 / section.element_bytes(&parts.version)
            }
            Meaning::PaddingAfter(section) => padding(sections.get(section).len()) as u64,
            // The names keep their ELF address.
            Meaning::Delta(Section::Names) => parts.names_address,
            Meaning::Delta(section) => *places.get(section) as u64,
            Meaning::ValueKindLast => layout.value_kind_last(),
            Meaning::Unused => 0,
        };
        push(&mut file, value);
    }
    file.extend_from_slice(&binary_ids);
    let pointers = Section::counted().filter_map(|section| {
        let field = record.pointer(section)?;
        (!sections.get(section).is_empty()).then(|| (field, *places.get(section)))
    });
    let pointers: Vec<(usize, usize)> = pointers.collect();
    let records = sections.data.chunks_exact(record.bytes as usize);
    for (index, bytes) in records.enumerate() {
        let start = file.len();
        file.extend_from_slice(bytes);
        for (field, delta) in &pointers {
            let field = &mut file[start + field..][..8];
            // The sections come after the records, so this stays positive.
            let place = LittleEndian::read_u64(field) + *delta as u64;
            LittleEndian::write_u64(field, place - index as u64 * record.bytes);
        }
    }
    for (_, section) in sections
        .iter()
        .filter(|(section, _)| *section != Section::Data)
    {
        file.extend_from_slice(section);
        file.resize(file.len() + padding(section.len()), 0);
    }
    file
}

/// A binary id in the form of the file: its length in 8 bytes, the id, padding.
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

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
