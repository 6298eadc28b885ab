//! Sections of a version that rocov cannot read yet, saved as they are.
//!
//! A code object of a newer raw version still has counters that exist nowhere else. rocov saves them in a
//! file of its own format. All numbers are little endian:
//!
//! | bytes | field |
//! |---|---|
//! | 8 | magic `rocovsec` |
//! | 8 | version of this format, 1 |
//! | 8 | the device's version word |
//! | 8 | load delta |
//! | 8 | number of sections |
//! | for each: 16 | name, padded with zeros |
//! | 8, 8 | device address, size in bytes |
//! | | the bytes of all sections, in this order, each padded to 8 |

use byteorder::{ByteOrder, LittleEndian, WriteBytesExt};

use crate::format::profraw::ProfileError;
use crate::format::profraw::layout::padding;

const MAGIC: &[u8; 8] = b"rocovsec";
const FORMAT: u64 = 1;
const NAME_BYTES: usize = 16;
const HEADER_BYTES: usize = 40;
const ENTRY_BYTES: usize = NAME_BYTES + 16;

/// A saved section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSection {
    /// Its name, at most 16 bytes.
    pub name: String,
    /// Its device address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The saved sections of one code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSections {
    /// The device's version word.
    pub word: u64,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// The sections.
    pub sections: Vec<SavedSection>,
}

impl SavedSections {
    /// Encodes the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for word in [
            FORMAT,
            self.word,
            self.load_delta,
            self.sections.len() as u64,
        ] {
            push(&mut file, word);
        }
        for section in &self.sections {
            let mut name = section.name.clone().into_bytes();
            name.resize(NAME_BYTES, 0);
            file.extend_from_slice(&name);
            push(&mut file, section.address);
            push(&mut file, section.bytes.len() as u64);
        }
        for section in &self.sections {
            file.extend_from_slice(&section.bytes);
            file.resize(file.len() + padding(section.bytes.len()), 0);
        }
        file
    }

    /// Returns whether `file` starts like a file of saved sections.
    #[must_use]
    pub fn has_magic(file: &[u8]) -> bool {
        file.starts_with(MAGIC)
    }

    /// Reads a file of saved sections.
    ///
    /// # Errors
    /// Fails if it is another file, of another format version, or cut short.
    pub fn decode(file: &[u8]) -> Result<Self, ProfileError> {
        let header = part(file, "the header", 0, HEADER_BYTES)?;
        if header[..8] != *MAGIC {
            return Err(ProfileError::WrongMagic {
                found: LittleEndian::read_u64(header),
                expected: LittleEndian::read_u64(MAGIC),
            });
        }
        let mut words = [0; 4];
        LittleEndian::read_u64_into(&header[8..], &mut words);
        let [format, word, load_delta, count] = words;
        if format != FORMAT {
            return Err(ProfileError::SavedFormat {
                found: format,
                expected: FORMAT,
            });
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let entries_len = count.saturating_mul(ENTRY_BYTES);
        let entries = part(file, "the list of sections", HEADER_BYTES, entries_len)?;
        let mut at = HEADER_BYTES + entries_len;
        let mut sections = Vec::new();
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            let name = String::from_utf8_lossy(&entry[..NAME_BYTES]);
            let len = LittleEndian::read_u64(&entry[NAME_BYTES + 8..]);
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let bytes = part(file, "a section", at, len)?;
            at += len + padding(len);
            sections.push(SavedSection {
                name: name.trim_end_matches('\0').to_owned(),
                address: LittleEndian::read_u64(&entry[NAME_BYTES..]),
                bytes: bytes.to_vec(),
            });
        }
        Ok(Self {
            word,
            load_delta,
            sections,
        })
    }
}

fn push(bytes: &mut Vec<u8>, word: u64) {
    bytes
        .write_u64::<LittleEndian>(word)
        .expect("a vector takes every write");
}

fn part<'a>(
    file: &'a [u8],
    part: &'static str,
    start: usize,
    len: usize,
) -> Result<&'a [u8], ProfileError> {
    let end = start.saturating_add(len);
    file.get(start..end).ok_or(ProfileError::Truncated {
        part,
        needed: end as u64,
        found: file.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedSections {
        let section = |name: &str, bytes: &[u8]| SavedSection {
            name: name.into(),
            address: 0x7f00_0000_1000,
            bytes: bytes.to_vec(),
        };
        SavedSections {
            word: 1 << 56 | 99,
            load_delta: 0x7f00_0000_0000,
            sections: vec![
                section("names", b"abc"),
                section("uniform counters", &[1; 16]),
            ],
        }
    }

    #[test]
    fn what_is_saved_is_read_back() {
        assert_eq!(SavedSections::decode(&saved().encode()), Ok(saved()));
    }

    #[test]
    fn other_files_are_refused() {
        let file = saved().encode();
        for len in 0..file.len() - 5 {
            assert!(SavedSections::decode(&file[..len]).is_err(), "{len} bytes");
        }
        let mut other = file.clone();
        other[0] = b'x';
        assert!(matches!(
            SavedSections::decode(&other),
            Err(ProfileError::WrongMagic { .. })
        ));
        let mut later = file;
        later[8] = 2;
        let error = SavedSections::decode(&later).unwrap_err();
        assert_eq!(error.to_string(), "saved sections of format 2, expected 1");
    }
}
