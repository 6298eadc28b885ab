//! The versions of indexed profiles, and the hashes of functions that they tell compilers to make.

use std::ops::RangeInclusive;

use rocov::format::profraw::Version;

use crate::data::profile_header::INDEXED_MAGIC;

pub(super) const MAGIC: u64 = u64::from_le_bytes(INDEXED_MAGIC);
/// The bits of a version word that tell the variant (`VARIANT_MASKS_ALL`).
pub(super) const VARIANTS: u64 = 0xffff_ffff << 32;
/// The word of the header with the place of the hash table.
pub(super) const TABLE_WORD: usize = 4;
/// The word of the header with the place of the binary ids, from version 9 on.
const BINARY_IDS_WORD: usize = 6;
/// The word of the header with the place of the names of virtual tables, from version 12 on.
const VIRTUAL_TABLES_WORD: usize = 8;
/// The first clang whose hashes of functions tell more kinds of code apart.
pub(crate) const FIRST_CLANG_WITH_FINER_HASHES: u32 = 22;

/// The version of an indexed profile. The profile takes the lowest that has room for its counts, so that older
/// tools read it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub(super) enum IndexVersion {
    /// Since LLVM 13.
    Counters = 7,
    /// Since LLVM 18: records have MC/DC bitmaps.
    Bitmaps = 11,
    /// Since LLVM 19: sites have virtual tables, and MC/DC bitmaps have other bits.
    VirtualTables = 12,
    /// Since LLVM 22: clang compares finer hashes of functions.
    FinerHashes = 13,
    /// Since LLVM 23: records tell which counters are uniform.
    Uniformity = 14,
}

impl IndexVersion {
    /// The number of words at the start of a file, the place of the hash table being the last before those of
    /// other sections.
    pub(super) fn header_words(self) -> usize {
        match self {
            Self::Counters => 5,
            Self::Bitmaps => 8,
            Self::VirtualTables | Self::FinerHashes | Self::Uniformity => 9,
        }
    }

    /// The words of the header with the places of the sections behind the hash table.
    pub(super) fn section_words(self) -> &'static [usize] {
        match self {
            Self::Counters => &[],
            Self::Bitmaps => &[BINARY_IDS_WORD],
            Self::VirtualTables | Self::FinerHashes | Self::Uniformity => {
                &[BINARY_IDS_WORD, VIRTUAL_TABLES_WORD]
            }
        }
    }
}

/// The hashes that clang makes of the structure of functions. A clang takes the way from the version of the
/// indexed profile that it optimizes by. Those of LLVM's IR have one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FunctionHashes {
    /// Some are those of clang 21 or earlier.
    pub(crate) are_coarse: bool,
    /// Some are those of clang 22 or later.
    pub(crate) are_finer: bool,
    /// Some are of one kind or the other.
    pub(crate) are_unknown: bool,
}

impl FunctionHashes {
    /// The hashes in a raw profile of this version, of code that one of these releases of clang compiled.
    pub(super) fn of_clang(version: &Version, clang: &RangeInclusive<u32>) -> Self {
        let [first, last] =
            [clang.start(), clang.end()].map(|it| *it >= FIRST_CLANG_WITH_FINER_HASHES);
        match Version::is_ir_level(version.word()) {
            true => Self::default(),
            false => Self {
                are_coarse: !last,
                are_finer: first,
                are_unknown: first != last,
            },
        }
    }

    /// The hashes in an indexed profile with this number of its version and these bits of its variant.
    pub(super) fn of_index(number: u64, variant: u64) -> Self {
        let are_finer = number >= IndexVersion::FinerHashes as u64;
        match Version::is_ir_level(variant) {
            true => Self::default(),
            false => Self {
                are_coarse: !are_finer,
                are_finer,
                are_unknown: false,
            },
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.are_coarse |= more.are_coarse;
        self.are_finer |= more.are_finer;
        self.are_unknown |= more.are_unknown;
    }
}
