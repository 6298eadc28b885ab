//! The differences between raw profile versions, as data.
//!
//! The history of the format (LLVM's `InstrProfData.inc`):
//! - 8 (LLVM 14 to 17): 11 header words, records of 48 bytes.
//! - 9 (LLVM 18): bitmaps for MC/DC; 14 header words, records of 64 bytes.
//! - 10 (LLVM 19 to 22): virtual tables; 16 header words, a third kind of value site.
//! - 11 (LLVM 23, 24): counters of whole waves; 19 header words, records of 72 bytes.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::ProfileError;
use crate::format::sections::{Addition, Section};

/// `255 'l' 'p' 'r' 'o' 'f' 'r' 129`, most significant byte first: a 64-bit raw profile.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"\xfflprofr\x81");

/// The bits of a version word that select a variant of the version. Bit 59 is not one of them: it moves
/// the records into debug info, which a reader then needs. Bits 32 to 55 belong to the version up to LLVM 15,
/// and to the variant later. Compilers set only bit 55 of them, from LLVM 20 on (`-pgo-instrument-loop-entries`).
const VARIANTS: u64 = 0xf7 << 56 | 1 << 55;
/// Variant bit: counters are one byte each, 0 for a block that was reached and 0xff for one that was not
/// (`-enable-single-byte-coverage`).
const SINGLE_BYTE: u64 = 1 << 60;
/// Variant bit: counters are of LLVM's IR (`-fprofile-generate`), and there is no coverage mapping.
const IR_LEVEL: u64 = 1 << 56;

/// The first version whose MC/DC bitmaps have a bit for each way through a decision.
const FIRST_WITH_NEW_BITMAPS: u32 = 10;

/// A word of the header after the magic. Sizes and paddings are in bytes, other numbers in elements.
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

/// The meaning of a header word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The version word.
    Version,
    /// The size of the binary ids in bytes.
    BinaryIds,
    /// The number of elements of a section.
    Size(Section),
    /// The bytes up to the next section.
    PaddingAfter(Section),
    /// The offset of a section from the first record.
    Delta(Section),
    /// The last kind of value.
    ValueKindLast,
    /// Zero: rocov does not write the part.
    Unused,
}

impl Word {
    /// The meaning of the word.
    pub(super) fn meaning(self) -> Meaning {
        match self {
            Self::Version => Meaning::Version,
            Self::BinaryIdsSize => Meaning::BinaryIds,
            Self::NumData => Meaning::Size(Section::Data),
            Self::NumCounters => Meaning::Size(Section::Counters),
            Self::NumBitmapBytes => Meaning::Size(Section::Bitmap),
            Self::NumUniformCounters => Meaning::Size(Section::Uniform),
            Self::NamesSize => Meaning::Size(Section::Names),
            Self::PaddingBeforeCounters => Meaning::PaddingAfter(Section::Data),
            Self::PaddingAfterCounters => Meaning::PaddingAfter(Section::Counters),
            Self::PaddingAfterBitmap => Meaning::PaddingAfter(Section::Bitmap),
            Self::PaddingAfterUniform => Meaning::PaddingAfter(Section::Uniform),
            Self::CountersDelta => Meaning::Delta(Section::Counters),
            Self::BitmapDelta => Meaning::Delta(Section::Bitmap),
            Self::UniformCountersDelta => Meaning::Delta(Section::Uniform),
            Self::NamesDelta => Meaning::Delta(Section::Names),
            Self::ValueKindLast => Meaning::ValueKindLast,
            Self::NumVTables | Self::VNamesSize => Meaning::Unused,
        }
    }
}

/// The offsets of the fields of a data record. Offsets and sizes are in bytes. `NameRef` is at 0 and
/// `FuncHash` at 8 in every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// The size of a record.
    pub bytes: u64,
    /// `CounterPtr`, u64: the address of the counters minus the address of the record.
    pub counter_ptr: usize,
    /// `UniformCounterPtr`, u64: the address of the uniform counters minus the address of the record.
    pub uniform_ptr: Option<usize>,
    /// `BitmapPtr`, u64: the address of the bitmap minus the address of the record.
    pub bitmap_ptr: Option<usize>,
    /// `FunctionPointer`, u64; `Values`, u64, follows.
    pub function_pointer: usize,
    /// `NumCounters`, u32.
    pub num_counters: usize,
    /// `NumValueSites`, one u16 for each kind of value.
    pub value_sites: usize,
    /// The number of kinds of value.
    pub value_kinds: usize,
    /// `OffloadDeviceWaveSize`, u16: the size of a wave in lanes. The device writes it when the function runs
    /// for the first time. It is 0 until then.
    pub wave_size: Option<usize>,
    /// `NumBitmapBytes`, u32.
    pub num_bitmap_bytes: Option<usize>,
}

impl RecordLayout {
    /// The offset of the pointer into a section, if the record has one.
    pub(crate) fn pointer(&self, section: Section) -> Option<usize> {
        match section {
            Section::Counters => Some(self.counter_ptr),
            Section::Bitmap => self.bitmap_ptr,
            Section::Uniform => self.uniform_ptr,
            Section::Data | Section::Names => None,
        }
    }

    /// Clears the fields that are only valid on the device: the function's address and value profiling.
    pub fn clear_device_fields(&self, record: &mut [u8]) {
        record[self.function_pointer..self.function_pointer + 16].fill(0);
        record[self.value_sites..self.value_sites + 2 * self.value_kinds].fill(0);
    }

    /// The number of sites that a record claims for each kind of value.
    pub(super) fn value_site_numbers(&self, record: &[u8]) -> impl Iterator<Item = u16> {
        let numbers = &record[self.value_sites..][..2 * self.value_kinds];
        numbers.chunks_exact(2).map(LittleEndian::read_u16)
    }

    /// The records without their sizes of waves: the part that is equal in all runs.
    pub(super) fn without_wave_sizes<'a>(&self, records: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(at) = self.wave_size else {
            return records.into();
        };
        let mut records = records.to_vec();
        for record in records.chunks_exact_mut(self.bytes as usize) {
            record[at..at + 2].fill(0);
        }
        records.into()
    }

    /// Gives the records of `into` the sizes of waves that only the equal records of `from` have. Returns
    /// whether there were any.
    pub(super) fn take_wave_sizes(&self, into: &mut [u8], from: &[u8]) -> bool {
        let Some(at) = self.wave_size else {
            return false;
        };
        let size = self.bytes as usize;
        let mut any = false;
        for (into, from) in into.chunks_exact_mut(size).zip(from.chunks_exact(size)) {
            let (into, from) = (&mut into[at..at + 2], &from[at..at + 2]);
            if *into == [0, 0] && *from != [0, 0] {
                into.copy_from_slice(from);
                any = true;
            }
        }
        any
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
pub struct VersionLayout {
    /// The version's number.
    pub version: u32,
    /// The releases of LLVM that write this version, by their major versions. Their llvm-profdata reads only
    /// this version.
    pub llvm: RangeInclusive<u32>,
    /// The words of the header after the magic, in file order.
    pub header: &'static [Word],
    /// The data records.
    pub record: RecordLayout,
}

impl VersionLayout {
    /// The place in the header of the word that means this, if the version has one.
    pub(super) fn place_of(&self, meaning: Meaning) -> Option<usize> {
        self.header
            .iter()
            .position(|word| word.meaning() == meaning)
    }

    /// The size of the header in bytes, with the magic.
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

/// The versions that rocov reads and writes, oldest first.
const LAYOUTS: [VersionLayout; 4] = [
    VersionLayout {
        version: 8,
        llvm: 14..=17,
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
            wave_size: None,
            num_bitmap_bytes: None,
        },
    },
    VersionLayout {
        version: 9,
        llvm: 18..=18,
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
            wave_size: None,
            num_bitmap_bytes: Some(56),
        },
    },
    VersionLayout {
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
            wave_size: None,
            num_bitmap_bytes: Some(60),
        },
    },
    VersionLayout {
        version: 11,
        // LLVM 24 has no release yet: a snapshot of October 2026 writes this version.
        llvm: 23..=24,
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
            wave_size: Some(66),
            num_bitmap_bytes: Some(68),
        },
    },
];

/// A known version word: the version's layout and its variant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    word: u64,
    layout: &'static VersionLayout,
}

impl Version {
    /// The size of one uniform counter in bytes.
    pub const UNIFORM_COUNTER_BYTES: u64 = 8;

    /// Splits a version word, known or not, into the number of the version and the variant bits.
    #[must_use]
    pub const fn split(word: u64) -> (u64, u64) {
        (word & !VARIANTS, word & VARIANTS)
    }

    /// Returns whether the counters of a version word, known or not, are of LLVM's IR
    /// (`-fprofile-generate`).
    #[must_use]
    pub const fn is_ir_level(word: u64) -> bool {
        word & IR_LEVEL != 0
    }

    /// Returns whether the counters of a version word, known or not, only show whether code was reached.
    #[must_use]
    pub const fn counts_bytes(word: u64) -> bool {
        word & SINGLE_BYTE != 0
    }

    /// The version that front-end instrumentation of clang `major` writes, for a code object without a
    /// version word. `None` for an unknown clang.
    #[must_use]
    pub fn from_clang(major: u32) -> Option<Self> {
        let layout = LAYOUTS.iter().find(|layout| layout.llvm.contains(&major))?;
        let word = u64::from(layout.version);
        Some(Self { word, layout })
    }

    /// Decodes a version word: the version, with variant flags in the highest bits.
    ///
    /// # Errors
    /// Fails if the version is unknown. rocov does not guess its layout.
    pub fn from_word(word: u64) -> Result<Self, ProfileError> {
        let (number, _) = Self::split(word);
        match LAYOUTS
            .iter()
            .find(|layout| u64::from(layout.version) == number)
        {
            Some(layout) => Ok(Self { word, layout }),
            None => Err(ProfileError::UnknownVersion {
                found: number,
                min: LAYOUTS[0].version,
                max: LAYOUTS[LAYOUTS.len() - 1].version,
            }),
        }
    }

    /// The version with counters of one byte each.
    #[must_use]
    pub fn with_byte_counters(self) -> Self {
        Self {
            word: self.word | SINGLE_BYTE,
            ..self
        }
    }

    /// The word on the device, which is also the word in a file's header.
    #[must_use]
    pub fn word(&self) -> u64 {
        self.word
    }

    /// The version's layout.
    #[must_use]
    pub fn layout(&self) -> &'static VersionLayout {
        self.layout
    }

    /// Returns whether MC/DC bitmaps have a bit for each way through a decision, as LLVM 19 and later write them.
    /// Those of LLVM 18 have one for each combination of values.
    #[must_use]
    pub fn has_new_bitmaps(&self) -> bool {
        self.layout.version >= FIRST_WITH_NEW_BITMAPS
    }

    /// The size of one counter in bytes.
    #[must_use]
    pub fn counter_bytes(&self) -> u64 {
        if self.is_single_byte() { 1 } else { 8 }
    }

    /// Returns whether counters record only that a block was reached.
    #[must_use]
    pub fn is_single_byte(&self) -> bool {
        Self::counts_bytes(self.word)
    }
}

/// The number of bytes up to the next multiple of 8.
pub(super) fn padding(len: usize) -> usize {
    len.next_multiple_of(8) - len
}

impl Section {
    /// The size of one element in bytes: a record, a counter, or a byte.
    #[must_use]
    pub fn element_bytes(self, version: &Version) -> u64 {
        match self {
            Self::Data => version.layout().record.bytes,
            Self::Counters => version.counter_bytes(),
            Self::Uniform => Version::UNIFORM_COUNTER_BYTES,
            Self::Bitmap | Self::Names => 1,
        }
    }

    /// The rule that adds up the counts of this section.
    pub(crate) fn adds(self, version: &Version) -> Addition {
        match self {
            Self::Counters if version.is_single_byte() => Addition::And,
            Self::Counters | Self::Uniform => Addition::Words,
            Self::Bitmap => Addition::Or,
            Self::Data | Self::Names => Addition::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clang_writes_the_version_of_its_llvm() {
        let number = |clang| Version::from_clang(clang).map(|version| version.word());
        let versions = [13, 14, 17, 18, 19, 22, 23, 24, 25].map(number);
        let [eight, nine, ten, eleven] = [8, 9, 10, 11].map(Some);
        let expected = [None, eight, eight, nine, ten, ten, eleven, eleven, None];
        assert_eq!(versions, expected);
    }

    #[test]
    fn variants_are_in_the_highest_bits_of_a_word() {
        let version = Version::from_word(1 << 60 | 9).unwrap();
        assert_eq!((version.word(), version.layout().version), (1 << 60 | 9, 9));
        assert_eq!(version.layout().value_kind_last(), 1);
        assert_eq!(Version::split(0x81 << 55 | 10), (10, 0x81 << 55));
        for found in [7, 12, 1 << 31, 1 << 54 | 10] {
            let unknown = ProfileError::UnknownVersion {
                found,
                min: 8,
                max: 11,
            };
            assert_eq!(Version::from_word(1 << 60 | found), Err(unknown));
        }
    }
}
