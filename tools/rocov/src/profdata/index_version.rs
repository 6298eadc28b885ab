//! The versions of indexed profiles, and the hashes of functions that they prescribe.

use std::iter;
use std::ops::RangeInclusive;

use rocov::format::profraw::Version;

use crate::data::profile_header::INDEXED_MAGIC;

pub(super) const MAGIC: u64 = u64::from_le_bytes(INDEXED_MAGIC);
/// The bits of a version word that hold the variant (`VARIANT_MASKS_ALL`).
pub(super) const VARIANTS: u64 = 0xffff_ffff << 32;
/// The word of the header with the place of the hash table.
pub(super) const TABLE_WORD: usize = 4;
/// The word of the header with the place of the binary ids, from version 9 on.
const BINARY_IDS_WORD: usize = 6;
/// The word of the header with the place of the names of virtual tables, from version 12 on.
const VIRTUAL_TABLES_WORD: usize = 8;
/// The first clang with hashes of functions of 60 bits.
pub(crate) const FIRST_CLANG_WITH_SHORT: u32 = 22;
const SHORT_BITS: u32 = 60;
/// The bits of a kind of statement in the hash of a small function, and the last kind (`PGOHash::HashType`).
const KIND_BITS: u32 = 6;
const LAST_KIND: u64 = 32;

/// The version of an indexed profile. The profile takes the lowest that has room for its counts, so that older
/// tools read it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub(super) enum IndexVersion {
    /// Since LLVM 13.
    Counters = 7,
    /// Since LLVM 18: records have MC/DC bitmaps, in a word for each byte.
    Bitmaps = 11,
    /// Since LLVM 19: sites have virtual tables, and MC/DC bitmaps have other bits.
    VirtualTables = 12,
    /// Since LLVM 22: clang compares hashes of functions of 60 bits.
    ShortHashes = 13,
    /// Since LLVM 23: records show which counters are uniform, and the bytes of MC/DC bitmaps lie side by side.
    Uniformity = 14,
}

impl IndexVersion {
    /// The number of words at the start of a file, the place of the hash table being the last before those of
    /// other sections.
    pub(super) fn header_words(self) -> usize {
        match self {
            Self::Counters => 5,
            Self::Bitmaps => 8,
            Self::VirtualTables | Self::ShortHashes | Self::Uniformity => 9,
        }
    }

    /// The words of the header with the places of the sections after the hash table.
    pub(super) fn section_words(self) -> &'static [usize] {
        match self {
            Self::Counters => &[],
            Self::Bitmaps => &[BINARY_IDS_WORD],
            Self::VirtualTables | Self::ShortHashes | Self::Uniformity => {
                &[BINARY_IDS_WORD, VIRTUAL_TABLES_WORD]
            }
        }
    }
}

/// The hashes that clang makes of the structure of functions, apart from those of LLVM's IR, which have one form.
///
/// Up to clang 21 they have 64 bits. Later ones lack the upper 4 (`NamedInstrProfRecord::FUNC_HASH_MASK`), and are
/// else equal. A clang takes the form from the version of the indexed profile that it optimizes by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FunctionHashes {
    /// Some are of 64 bits.
    pub(crate) has_long: bool,
    /// Some are of 60 bits.
    pub(crate) has_short: bool,
    /// Some of unknown form have more than 60 bits.
    is_beyond: bool,
    /// Some of unknown form have fewer, and would have more in 15 of 16 cases if they had 64.
    is_below: bool,
}

impl FunctionHashes {
    /// The form of these `hashes`, from a raw profile of this version, of code that one of these releases of clang
    /// compiled.
    pub(super) fn from_clang(
        version: &Version,
        clang: &RangeInclusive<u32>,
        hashes: impl Iterator<Item = u64>,
    ) -> Self {
        let mut found = Self::default();
        if Version::is_ir_level(version.word()) {
            return found;
        }
        let [first, last] =
            [clang.start(), clang.end()].map(|release| *release >= FIRST_CLANG_WITH_SHORT);
        if first == last {
            (found.has_long, found.has_short) = (!first, first);
            return found;
        }
        for hash in hashes.filter(|hash| is_digest(*hash)) {
            match hash >> SHORT_BITS {
                0 => found.is_below = true,
                _ => found.is_beyond = true,
            }
        }
        found
    }

    /// The form in an indexed profile with this number of its version and these bits of its variant.
    pub(super) fn from_index(number: u64, variant: u64) -> Self {
        let has_short = number >= IndexVersion::ShortHashes as u64;
        match Version::is_ir_level(variant) {
            true => Self::default(),
            false => Self {
                has_long: !has_short,
                has_short,
                ..Self::default()
            },
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.has_long |= more.has_long;
        self.has_short |= more.has_short;
        self.is_beyond |= more.is_beyond;
        self.is_below |= more.is_below;
    }

    /// The forms of all hashes. If no clang is known, the hashes decide: one of more than 60 bits shows the form of
    /// all. Without one, they are short, or so few that the forms are equal but for a chance of 1 in 16 for each.
    pub(crate) fn known(&self) -> Self {
        Self {
            has_long: self.has_long || self.is_beyond,
            has_short: self.has_short || self.is_below && !self.is_beyond,
            ..*self
        }
    }
}

/// Returns whether a hash is a digest of the structure. The hash of a small function is its structure: up to 10
/// numbers of kinds of statements, of 6 bits each, the last in the lowest bits (`PGOHash`).
fn is_digest(hash: u64) -> bool {
    let rests = iter::successors(Some(hash), |rest| Some(rest >> KIND_BITS));
    let mut kinds = rests
        .take_while(|rest| *rest > 0)
        .map(|rest| rest % (1 << KIND_BITS));
    hash >> SHORT_BITS > 0 || kinds.any(|kind| !(1..=LAST_KIND).contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(hashes: &[u64], clang: RangeInclusive<u32>) -> (bool, bool) {
        let version = Version::from_word(10).unwrap();
        let hashes = hashes.iter().copied();
        let found = FunctionHashes::from_clang(&version, &clang, hashes).known();
        (found.has_long, found.has_short)
    }

    /// The hashes are those that clang 19 and 22 gave functions of one program.
    #[test]
    fn hashes_tell_their_form() {
        let small = [0, 0x18, 0x60d, 0x0d70_46d1, 0x000b_29c4_9944_c451];
        assert_eq!(forms(&small, 19..=22), (false, false));
        let long = [&small[..], &[0xd812_5420_eacc_72fd]].concat();
        assert_eq!(forms(&long, 19..=22), (true, false));
        let short = [&small[..], &[0x0812_5420_eacc_72fd]].concat();
        assert_eq!(forms(&short, 19..=22), (false, true));
        // A long one may have fewer bits by chance.
        let both = [long, short.clone()].concat();
        assert_eq!(forms(&both, 19..=22), (true, false));
        assert_eq!(forms(&short, 19..=21), (true, false));
        assert_eq!(forms(&small, 22..=23), (false, true));
    }
}
