//! Reads a raw profile: the header, and the ranges of the parts.

use std::borrow::Cow;
use std::ops::Range;

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::ProfileError;
use crate::format::profraw::layout::{MAGIC, Meaning, Version, Word, padding};
use crate::format::sections::PerSection;

/// The header of a raw profile.
#[derive(Clone, Debug)]
pub struct Header {
    version: Version,
    words: Vec<u64>,
}

impl Header {
    /// The version word of a raw profile, known or not. A reader of the file must support it.
    ///
    /// # Errors
    /// Fails if `file` does not start like a 64-bit little-endian raw profile.
    pub fn version_word(file: &[u8]) -> Result<u64, ProfileError> {
        if let Some(machine) = other_machine(file) {
            return Err(machine);
        }
        let Some((head, _)) = file.split_at_checked(16) else {
            return Err(truncated("the header", 16, file));
        };
        let found = LittleEndian::read_u64(head);
        if found != MAGIC {
            return Err(ProfileError::WrongMagic {
                found,
                expected: MAGIC,
            });
        }
        Ok(LittleEndian::read_u64(&head[8..]))
    }

    /// Reads the header of a raw profile of a known version.
    ///
    /// # Errors
    /// Fails if the version is unknown or the header is cut short.
    pub fn parse(file: &[u8]) -> Result<Self, ProfileError> {
        let version = Version::from_word(Self::version_word(file)?)?;
        let bytes = version.layout().header_bytes();
        let Some((head, _)) = file.split_at_checked(bytes) else {
            return Err(truncated("the header", bytes as u64, file));
        };
        let mut words = vec![0; version.layout().header.len()];
        LittleEndian::read_u64_into(&head[8..], &mut words);
        Ok(Self { version, words })
    }

    /// The version with its variant.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Returns whether this is the header of a profile with equal parts, whatever lies between them.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_padding = |word: &Word| matches!(word.meaning(), Meaning::PaddingAfter(_));
        // The first word is the version, which defines the others.
        let words = self.words.iter().zip(&other.words);
        words
            .zip(self.version.layout().header)
            .all(|((a, b), word)| a == b || is_padding(word))
    }

    /// A word of the header. 0 if this version has no such word.
    #[must_use]
    pub fn word(&self, word: Word) -> u64 {
        let at = self
            .version
            .layout()
            .header
            .iter()
            .position(|known| *known == word);
        at.map_or(0, |at| self.words[at])
    }

    /// The value of the word that means this, if this version has one.
    fn value(&self, meaning: Meaning) -> Option<u64> {
        let at = self.version.layout().place_of(meaning)?;
        Some(self.words[at])
    }
}

/// A raw profile whose header and parts fit together.
#[derive(Clone, Debug)]
pub struct RawProfile {
    /// The header.
    pub header: Header,
    /// The sections, in bytes of the file.
    pub sections: PerSection<Range<usize>>,
}

impl RawProfile {
    /// Returns whether `file` starts like a 64-bit little-endian raw profile.
    #[must_use]
    pub fn has_magic(file: &[u8]) -> bool {
        file.starts_with(&MAGIC.to_le_bytes())
    }

    /// Returns whether `file` starts like a raw profile of any machine.
    #[must_use]
    pub fn has_any_magic(file: &[u8]) -> bool {
        Self::has_magic(file) || other_machine(file).is_some()
    }

    /// Reads the header of `file` and finds its parts.
    ///
    /// # Errors
    /// Fails if a part does not fit into the file.
    pub fn parse(file: &[u8]) -> Result<Self, ProfileError> {
        let header = Header::parse(file)?;
        let layout = header.version.layout();
        let mut cursor = Cursor {
            at: layout.header_bytes() as u64,
            file,
        };
        let binary_ids = header.word(Word::BinaryIdsSize);
        if !binary_ids.is_multiple_of(8) {
            return Err(ProfileError::BinaryIds { bytes: binary_ids });
        }
        check_binary_ids(&file[cursor.take("binary ids", binary_ids, 1)?])?;
        let sections = PerSection::try_from_fn(|section| {
            let count = header.value(Meaning::Size(section)).unwrap_or(0);
            let place = cursor.take(
                section.name(),
                count,
                section.element_bytes(&header.version),
            )?;
            // The last section has no such word: it is filled up to 8 bytes.
            let padding = header
                .value(Meaning::PaddingAfter(section))
                .unwrap_or_else(|| padding(place.len()) as u64);
            cursor.take("padding", padding, 1)?;
            Ok(place)
        })?;
        Ok(Self { header, sections })
    }

    /// The parts that are equal in all runs of the code: binary ids, records without their sizes of waves, and names.
    /// `file` must be the file that this was parsed from.
    pub(super) fn unchanging<'file>(&self, file: &'file [u8]) -> [Cow<'file, [u8]>; 3] {
        let layout = self.header.version().layout();
        let records = &file[self.sections.data.clone()];
        [
            file[layout.header_bytes()..self.sections.data.start].into(),
            layout.record.without_wave_sizes(records),
            file[self.sections.names.clone()].into(),
        ]
    }
}

/// Walks the parts of a file. Each part must end inside it.
struct Cursor<'a> {
    at: u64,
    file: &'a [u8],
}

impl Cursor<'_> {
    fn take(
        &mut self,
        part: &'static str,
        count: u64,
        size: u64,
    ) -> Result<Range<usize>, ProfileError> {
        let end = count
            .checked_mul(size)
            .and_then(|len| self.at.checked_add(len));
        match end {
            Some(end) if end <= self.file.len() as u64 => {
                let start = std::mem::replace(&mut self.at, end);
                Ok(start as usize..end as usize)
            }
            _ => Err(truncated(part, end.unwrap_or(u64::MAX), self.file)),
        }
    }
}

/// Checks the binary ids: each has its size in 8 bytes before it, and is filled up to 8 bytes.
fn check_binary_ids(mut ids: &[u8]) -> Result<(), ProfileError> {
    while let Some((size, rest)) = ids.split_first_chunk() {
        let found = u64::from_le_bytes(*size);
        let room = rest.len() as u64;
        let end = found
            .checked_next_multiple_of(8)
            .filter(|end| *end <= room && found > 0);
        let Some(end) = end else {
            return Err(ProfileError::BinaryId { found, room });
        };
        ids = &rest[end as usize..];
    }
    Ok(())
}

/// The error of a raw profile of a program with 32-bit or big-endian words, by its magic number
/// (`getMagic` in LLVM's `InstrProfReader.cpp`).
fn other_machine(file: &[u8]) -> Option<ProfileError> {
    /// The byte of [`MAGIC`] that says `r` for 64-bit programs, and its value for 32-bit ones.
    const BITS: usize = 1;
    let magic: &[u8; 8] = file.first_chunk()?;
    let mut of_32_bits = MAGIC.to_le_bytes();
    of_32_bits[BITS] = b'R';
    let mut swapped = *magic;
    swapped.reverse();
    let (bits, is_big_endian) = match (magic, &swapped) {
        (found, _) if *found == of_32_bits => (32, false),
        (_, found) if *found == of_32_bits => (32, true),
        (_, found) if *found == MAGIC.to_le_bytes() => (64, true),
        _ => return None,
    };
    Some(ProfileError::OtherMachine {
        bits,
        is_big_endian,
    })
}

fn truncated(part: &'static str, needed: u64, file: &[u8]) -> ProfileError {
    ProfileError::Truncated {
        part,
        needed,
        found: file.len() as u64,
    }
}
