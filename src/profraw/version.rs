//! What differs between raw profile versions, as data.
//!
//! History of the format (LLVM's `InstrProfData.inc`):
//! - 8 (LLVM 14 to 16): 11 header words, records of 48 bytes.
//! - 9 (LLVM 17, 18): bitmaps for MC/DC; 14 header words, records of 64 bytes.
//! - 10 (LLVM 19 to 22): virtual tables; 16 header words, a third kind of value site.
//! - 11 (LLVM 23): counters of whole waves; 19 header words, records of 72 bytes.

use std::ops::RangeInclusive;

use byteorder::{ByteOrder, LittleEndian};

use super::ProfileError;

/// The bits of a version word that say which variant of the version it is. Not bit 59: the records of
/// such a profile are in debug info, and its readers ask for that. The bits from 32 on, which are never
/// set, are the version's to LLVM 15 and the variant's to LLVM 22.
const VARIANTS: u64 = 0xf7 << 56;
/// Variant bit: counters are one byte each, 0xff for a block that was not reached and 0 for one
/// that was (`-enable-single-byte-coverage`).
const SINGLE_BYTE: u64 = 1 << 60;

/// A word of the header after the magic. Sizes and paddings are in bytes, numbers in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of InstrProfData.inc")]
pub enum Word {
    Version,
    BinaryIdsSize,
    NumData,
    PaddingBeforeCounters,
    NumCounters,
    PaddingAfterCounters,
    NumBitmapBytes,
    PaddingAfterBitmap,
    NumUniformCounters,
    PaddingAfterUniform,
    UniformCountersDelta,
    NamesSize,
    CountersDelta,
    BitmapDelta,
    NamesDelta,
    NumVTables,
    VNamesSize,
    ValueKindLast,
}

/// Where the fields of a data record are; offsets and sizes in bytes. `NameRef` is at 0 and
/// `FuncHash` at 8 in every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// Size of a record.
    pub bytes: u64,
    /// `CounterPtr`, u64: address of the counters minus address of the record.
    pub counter_ptr: usize,
    /// `UniformCounterPtr`, u64, likewise.
    pub uniform_ptr: Option<usize>,
    /// `BitmapPtr`, u64, likewise.
    pub bitmap_ptr: Option<usize>,
    /// `FunctionPointer`, u64; `Values`, u64, follows.
    pub function_pointer: usize,
    /// `NumCounters`, u32.
    pub num_counters: usize,
    /// `NumValueSites`, u16 for each kind of value.
    pub value_sites: usize,
    /// Kinds of value.
    pub value_kinds: usize,
    /// `NumBitmapBytes`, u32.
    pub num_bitmap_bytes: Option<usize>,
}

impl RecordLayout {
    /// Clears what only the device could follow: the function's address and value profiling.
    pub fn clear_device_fields(&self, record: &mut [u8]) {
        record[self.function_pointer..self.function_pointer + 16].fill(0);
        record[self.value_sites..self.value_sites + 2 * self.value_kinds].fill(0);
    }

    /// The number of bitmap bytes that a record claims.
    #[must_use]
    pub fn bitmap_bytes(&self, record: &[u8]) -> u32 {
        self.num_bitmap_bytes
            .map_or(0, |at| LittleEndian::read_u32(&record[at..]))
    }
}

/// One version of the format.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The version's number.
    pub version: u32,
    /// The releases of LLVM that write it, by their major versions; their llvm-profdata reads it and
    /// no other.
    pub llvm: RangeInclusive<u32>,
    /// The words of the header after the magic, in file order.
    pub header: &'static [Word],
    /// The data records.
    pub record: RecordLayout,
}

impl Layout {
    /// Size of the header in bytes, with the magic.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        8 * (1 + self.header.len())
    }

    /// The last kind of value, a header word: `IPVK_Last`.
    #[must_use]
    pub const fn value_kind_last(&self) -> u64 {
        self.record.value_kinds as u64 - 1
    }
}

/// The versions that are read and written, oldest first.
const LAYOUTS: [Layout; 4] = [
    Layout {
        version: 8,
        llvm: 14..=16,
        header: &[
            Word::Version,
            Word::BinaryIdsSize,
            Word::NumData,
            Word::PaddingBeforeCounters,
            Word::NumCounters,
            Word::PaddingAfterCounters,
            Word::NamesSize,
            Word::CountersDelta,
            Word::NamesDelta,
            Word::ValueKindLast,
        ],
        record: RecordLayout {
            bytes: 48,
            counter_ptr: 16,
            uniform_ptr: None,
            bitmap_ptr: None,
            function_pointer: 24,
            num_counters: 40,
            value_sites: 44,
            value_kinds: 2,
            num_bitmap_bytes: None,
        },
    },
    Layout {
        version: 9,
        llvm: 17..=18,
        header: &[
            Word::Version,
            Word::BinaryIdsSize,
            Word::NumData,
            Word::PaddingBeforeCounters,
            Word::NumCounters,
            Word::PaddingAfterCounters,
            Word::NumBitmapBytes,
            Word::PaddingAfterBitmap,
            Word::NamesSize,
            Word::CountersDelta,
            Word::BitmapDelta,
            Word::NamesDelta,
            Word::ValueKindLast,
        ],
        record: RecordLayout {
            bytes: 64,
            counter_ptr: 16,
            uniform_ptr: None,
            bitmap_ptr: Some(24),
            function_pointer: 32,
            num_counters: 48,
            value_sites: 52,
            value_kinds: 2,
            num_bitmap_bytes: Some(56),
        },
    },
    Layout {
        version: 10,
        llvm: 19..=22,
        header: &[
            Word::Version,
            Word::BinaryIdsSize,
            Word::NumData,
            Word::PaddingBeforeCounters,
            Word::NumCounters,
            Word::PaddingAfterCounters,
            Word::NumBitmapBytes,
            Word::PaddingAfterBitmap,
            Word::NamesSize,
            Word::CountersDelta,
            Word::BitmapDelta,
            Word::NamesDelta,
            Word::NumVTables,
            Word::VNamesSize,
            Word::ValueKindLast,
        ],
        record: RecordLayout {
            bytes: 64,
            counter_ptr: 16,
            uniform_ptr: None,
            bitmap_ptr: Some(24),
            function_pointer: 32,
            num_counters: 48,
            value_sites: 52,
            value_kinds: 3,
            num_bitmap_bytes: Some(60),
        },
    },
    Layout {
        version: 11,
        llvm: 23..=23,
        header: &[
            Word::Version,
            Word::BinaryIdsSize,
            Word::NumData,
            Word::PaddingBeforeCounters,
            Word::NumCounters,
            Word::PaddingAfterCounters,
            Word::NumBitmapBytes,
            Word::PaddingAfterBitmap,
            Word::NumUniformCounters,
            Word::PaddingAfterUniform,
            Word::UniformCountersDelta,
            Word::NamesSize,
            Word::CountersDelta,
            Word::BitmapDelta,
            Word::NamesDelta,
            Word::NumVTables,
            Word::VNamesSize,
            Word::ValueKindLast,
        ],
        record: RecordLayout {
            bytes: 72,
            counter_ptr: 16,
            uniform_ptr: Some(24),
            bitmap_ptr: Some(32),
            function_pointer: 40,
            num_counters: 56,
            value_sites: 60,
            value_kinds: 3,
            num_bitmap_bytes: Some(68),
        },
    },
];

/// A known version word: the version's layout and its variant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    word: u64,
    layout: &'static Layout,
}

impl Version {
    /// Size of one uniform counter in bytes.
    pub const UNIFORM_COUNTER_BYTES: u64 = 8;

    /// The version that front-end instrumentation of clang `major` writes: what a code object
    /// without a version word is of. `None` for a clang that is not known.
    #[must_use]
    pub fn of_clang(major: u32) -> Option<Version> {
        let layout = LAYOUTS.iter().find(|layout| layout.llvm.contains(&major))?;
        let word = u64::from(layout.version);
        Some(Version { word, layout })
    }

    /// Interprets a version word: the version, with variant flags in the highest byte.
    ///
    /// # Errors
    /// Fails for a version that is not known; its layout is not guessed at.
    pub fn of_word(word: u64) -> Result<Version, ProfileError> {
        let number = word & !VARIANTS;
        match LAYOUTS
            .iter()
            .find(|layout| u64::from(layout.version) == number)
        {
            Some(layout) => Ok(Version { word, layout }),
            None => Err(ProfileError::UnknownVersion {
                found: number,
                min: LAYOUTS[0].version,
                max: LAYOUTS[LAYOUTS.len() - 1].version,
            }),
        }
    }

    /// The word as the device has it, which is what a file's header carries.
    #[must_use]
    pub fn word(&self) -> u64 {
        self.word
    }

    /// The version's layout.
    #[must_use]
    pub fn layout(&self) -> &'static Layout {
        self.layout
    }

    /// Size of one counter in bytes.
    #[must_use]
    pub fn counter_bytes(&self) -> u64 {
        if self.is_single_byte() { 1 } else { 8 }
    }

    /// Whether counters only tell reached from not reached.
    #[must_use]
    pub fn is_single_byte(&self) -> bool {
        self.word & SINGLE_BYTE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clang_writes_the_version_of_its_llvm() {
        let number = |clang| Version::of_clang(clang).map(|version| version.word());
        let versions = [13, 14, 16, 17, 18, 19, 22, 23, 24].map(number);
        let [eight, nine, ten] = [8, 9, 10].map(Some);
        let expected = [None, eight, eight, nine, nine, ten, ten, Some(11), None];
        assert_eq!(versions, expected);
    }

    #[test]
    fn variants_are_in_the_highest_byte_of_a_word() {
        let version = Version::of_word(1 << 60 | 9).unwrap();
        assert_eq!((version.word(), version.layout().version), (1 << 60 | 9, 9));
        assert_eq!(version.layout().value_kind_last(), 1);
        for found in [7, 12, 1 << 31] {
            let unknown = ProfileError::UnknownVersion {
                found,
                min: 8,
                max: 11,
            };
            assert_eq!(Version::of_word(1 << 60 | found), Err(unknown));
        }
    }
}
