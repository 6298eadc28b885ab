//! Reads the counts of indexed profiles, such as the sums of host code that `rocov merge --pooled` keeps.
//!
//! [`super::indexed_profile`] has the format. Value profiles and everything that is no count are skipped.

use std::collections::btree_map::Entry;

use byteorder::{ByteOrder, LittleEndian};
use rocov::format::profraw::{CountsByFunction, FunctionCounts, Version};

use super::ProfileCounts;
use super::indexed_profile::{
    FIRST_WITH_BITMAPS, FIRST_WITH_FINER_HASHES, FIRST_WITH_UNIFORMITY, MAGIC, TABLE_WORD,
};

/// The versions whose hash tables have this form.
const VERSIONS: std::ops::RangeInclusive<u64> = 7..=FIRST_WITH_UNIFORMITY;
/// The bits of a version word that tell the variant.
const VARIANTS: u64 = 0xff << 56;
/// The raw version of LLVM 19 to 22. It differs from others in the numbers of MC/DC bits only.
const RAW_VERSION: u64 = 10;

/// The counts of the indexed profile `file`; `None` if it is of an unknown version, is damaged, or has parts that
/// need more than the file to be read: MC/DC bits of clang 18, which an index of clang 21 may have, and the uniformity of
/// counters.
pub(super) fn counts(file: &[u8]) -> Option<ProfileCounts> {
    let mut header = Bytes(file);
    let (magic, version) = (header.word()?, header.word()?);
    let (number, variant) = (version & !VARIANTS, version & VARIANTS);
    if magic != MAGIC || !VERSIONS.contains(&number) {
        return None;
    }
    let table = usize::try_from(Bytes(file.get(8 * TABLE_WORD..)?).word()?).ok()?;
    let mut table = Bytes(file.get(table..)?);
    let (buckets, entries) = (table.word()?, table.word()?);
    let mut functions = CountsByFunction::new();
    let mut found = 0;
    for _ in 0..buckets {
        let place = usize::try_from(table.word()?).ok()?;
        if place == 0 {
            continue;
        }
        let mut bucket = Bytes(file.get(place..)?);
        for _ in 0..LittleEndian::read_u16(bucket.take(2)?) {
            let [name, name_bytes, data_bytes] = [bucket.word()?, bucket.word()?, bucket.word()?];
            bucket.take(name_bytes)?;
            let mut records = Bytes(bucket.take(data_bytes)?);
            while !records.0.is_empty() {
                let (hash, counts) = record(&mut records, number)?;
                match functions.entry((name, hash)) {
                    Entry::Vacant(place) => _ = place.insert(counts),
                    Entry::Occupied(_) => return None,
                }
            }
            found += 1;
        }
    }
    (found == entries).then_some(())?;
    let version = Version::of_word(RAW_VERSION | variant).ok()?;
    Some(ProfileCounts { version, functions })
}

/// A hash and its counts.
fn record(bytes: &mut Bytes<'_>, version: u64) -> Option<(u64, FunctionCounts)> {
    let (hash, number) = (bytes.word()?, bytes.word()?);
    let counters = bytes.take(number.checked_mul(8)?)?;
    let mut counts = FunctionCounts {
        counters: counters
            .chunks_exact(8)
            .map(LittleEndian::read_u64)
            .collect(),
        ..FunctionCounts::default()
    };
    if version >= FIRST_WITH_BITMAPS {
        counts.bitmap = bytes.padded()?.to_vec();
        if !counts.bitmap.is_empty() && version < FIRST_WITH_FINER_HASHES {
            return None;
        }
    }
    if version >= FIRST_WITH_UNIFORMITY && !bytes.padded()?.is_empty() {
        return None;
    }
    // The size of the values has its own four bytes in it.
    let values = LittleEndian::read_u32(bytes.0.get(..4)?);
    bytes.take(u64::from(values))?;
    Some((hash, counts))
}

/// Bytes that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, number: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(number).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        self.take(8).map(LittleEndian::read_u64)
    }

    /// A number of bytes, and the bytes, which are padded to 8.
    fn padded(&mut self) -> Option<&'a [u8]> {
        let number = self.word()?;
        let bytes = self.take(number.checked_next_multiple_of(8)?)?;
        bytes.get(..usize::try_from(number).ok()?)
    }
}
