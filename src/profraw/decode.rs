//! Reading a raw profile: the header, and where the parts are.

use std::ops::Range;

use byteorder::{ByteOrder, LittleEndian};

use super::encode::{MAGIC, padding};
use super::version::{Version, Word};
use super::{ProfileError, pooled};

/// The header of a raw profile.
#[derive(Clone, Debug)]
pub struct Header {
    version: Version,
    words: Vec<u64>,
}

impl Header {
    /// The version word of a raw profile, known or not: what a reader of the file must support.
    ///
    /// # Errors
    /// Fails where `file` does not start as a 64-bit little-endian raw profile does.
    pub fn version_word(file: &[u8]) -> Result<u64, ProfileError> {
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
    /// Fails where the version is unknown or the header is cut short.
    pub fn parse(file: &[u8]) -> Result<Header, ProfileError> {
        let version = Version::of_word(Header::version_word(file)?)?;
        let bytes = version.layout().header_bytes();
        let Some((head, _)) = file.split_at_checked(bytes) else {
            return Err(truncated("the header", bytes as u64, file));
        };
        let mut words = vec![0; version.layout().header.len()];
        LittleEndian::read_u64_into(&head[8..], &mut words);
        Ok(Header { version, words })
    }

    /// Version and variant.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Whether this is the header of a profile with the same parts, whatever lies between them.
    pub(super) fn is_like(&self, other: &Header) -> bool {
        let is_padding = |word: &Word| {
            matches!(
                word,
                Word::PaddingBeforeCounters
                    | Word::PaddingAfterCounters
                    | Word::PaddingAfterBitmap
                    | Word::PaddingAfterUniform
            )
        };
        // The first word is the version, which says what the others are.
        let words = self.words.iter().zip(&other.words);
        words
            .zip(self.version.layout().header)
            .all(|((a, b), word)| a == b || is_padding(word))
    }

    /// A word of the header; 0 where this version has none of that name.
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
}

/// A raw profile whose header and parts fit together.
#[derive(Clone, Debug)]
pub struct RawProfile {
    /// The header.
    pub header: Header,
    /// The data records, in bytes of the file.
    pub records: Range<usize>,
    /// The counters.
    pub counters: Range<usize>,
    /// The MC/DC bitmaps.
    pub bitmap: Range<usize>,
    /// The uniform counters.
    pub uniform: Range<usize>,
    /// The names.
    pub names: Range<usize>,
}

impl RawProfile {
    /// Whether `file` starts as a 64-bit little-endian raw profile does.
    #[must_use]
    pub fn has_magic(file: &[u8]) -> bool {
        file.starts_with(&MAGIC.to_le_bytes())
    }

    /// Reads the header of `file` and finds its parts.
    ///
    /// # Errors
    /// Fails where a part does not fit into the file.
    pub fn parse(file: &[u8]) -> Result<RawProfile, ProfileError> {
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
        cursor.take("binary ids", binary_ids, 1)?;
        let records = cursor.take("data", header.word(Word::NumData), layout.record.bytes)?;
        cursor.take("padding", header.word(Word::PaddingBeforeCounters), 1)?;
        let size = header.version.counter_bytes();
        let counters = cursor.take("counters", header.word(Word::NumCounters), size)?;
        cursor.take("padding", header.word(Word::PaddingAfterCounters), 1)?;
        let bitmap = cursor.take("bitmap", header.word(Word::NumBitmapBytes), 1)?;
        cursor.take("padding", header.word(Word::PaddingAfterBitmap), 1)?;
        let size = Version::UNIFORM_COUNTER_BYTES;
        let uniform = cursor.take(
            "uniform counters",
            header.word(Word::NumUniformCounters),
            size,
        )?;
        cursor.take("padding", header.word(Word::PaddingAfterUniform), 1)?;
        let names = cursor.take("names", header.word(Word::NamesSize), 1)?;
        cursor.take("padding", padding(names.len()) as u64, 1)?;
        Ok(RawProfile {
            header,
            records,
            counters,
            bitmap,
            uniform,
            names,
        })
    }

    /// Checks that the counts in `file`, which this was read of, are whole, as far as that can be known:
    /// profiles that many processes add to have a hash over them.
    ///
    /// # Errors
    /// Fails where they are not.
    pub fn check_counts(&self, file: &[u8]) -> Result<(), ProfileError> {
        pooled::check(file, self)
    }

    /// Where what is counted is: counters, bitmaps and uniform counters.
    pub(super) fn counts(&self) -> [Range<usize>; 3] {
        [
            self.counters.clone(),
            self.bitmap.clone(),
            self.uniform.clone(),
        ]
    }
}

/// Walks the parts of a file, each of which must end inside it.
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

fn truncated(part: &'static str, needed: u64, file: &[u8]) -> ProfileError {
    ProfileError::Truncated {
        part,
        needed,
        found: file.len() as u64,
    }
}
