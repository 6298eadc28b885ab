//! Reads indexed profiles, such as the sums of host code that `rocov merge --pooled` keeps.
//!
//! [`super::indexed_profile`] has the format. Binary ids, and everything else that is of no use for counts, are
//! skipped.

use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::{Error, Result};
use byteorder::{ByteOrder, LittleEndian};
use rocov::format::profraw::{CountsByFunction, FunctionCounts, ValueProfile, Version};
use rocov::support::diagnostic::fail;

use super::index_version::{FunctionHashes, IndexVersion, MAGIC, TABLE_WORD, VARIANTS};
use super::named_counts::{NamedCounts, Names};
use crate::support::failure::failure;

/// The versions whose hash tables have this form.
const VERSIONS: RangeInclusive<u64> =
    IndexVersion::Counters as u64..=IndexVersion::Uniformity as u64;
/// The raw version of LLVM 18, whose MC/DC bitmaps have other bits than those of later versions.
const RAW_VERSION_OF_18: u64 = 9;
/// The raw version of LLVM 19 to 22.
const RAW_VERSION: u64 = 10;
/// The kinds of values.
const VALUE_KINDS: usize = 3;

/// The counts of the indexed profile `file`.
///
/// # Errors
///
/// Fails if it is of an unknown version, is damaged, or records which counters are uniform.
pub(super) fn read(file: &[u8]) -> Result<NamedCounts> {
    let mut header = Bytes { file, at: 0 };
    let (magic, word) = (header.word()?, header.word()?);
    if magic != MAGIC {
        fail!(
            "not an indexed profile: magic {magic:#018x}, expected {MAGIC:#018x}";
            "use one that llvm-profdata wrote"
        );
    }
    let (number, variant) = (word & !VARIANTS, word & VARIANTS);
    if !VERSIONS.contains(&number) {
        let (min, max) = (VERSIONS.start(), VERSIONS.end());
        fail!(
            "unknown indexed profile version {number}, expected {min} to {max}";
            "merge the raw profiles"
        );
    }
    let mut names = Names::new();
    let functions = functions(file, number, &mut names)?;
    let raw = match number == IndexVersion::Bitmaps as u64 {
        true => RAW_VERSION_OF_18,
        false => RAW_VERSION,
    };
    Ok(NamedCounts {
        variant,
        version: Version::from_word(raw | variant)?,
        functions,
        names: Arc::new(names),
        hashes: FunctionHashes::from_index(number, variant),
    })
}

/// The counts in the hash table of a profile of version `number`. Adds the names of functions to `names`.
fn functions(file: &[u8], number: u64, names: &mut Names) -> Result<CountsByFunction> {
    let mut table = Bytes::at_word(file, TABLE_WORD)?;
    let (buckets, entries) = (table.word()?, table.word()?);
    let mut functions = CountsByFunction::new();
    let mut found = 0;
    for _ in 0..buckets {
        let place = table.word()?;
        if place == 0 {
            continue;
        }
        let mut bucket = Bytes::at(file, place)?;
        for _ in 0..LittleEndian::read_u16(bucket.take(2)?) {
            let [hash, name, data] = [bucket.word()?, bucket.word()?, bucket.word()?];
            let name = bucket.take(name)?;
            let mut records = bucket.part(data)?;
            while !records.is_empty() {
                let (structure, counts) = record(&mut records, number)?;
                match functions.entry((hash, structure)) {
                    Entry::Vacant(place) => _ = place.insert(counts),
                    Entry::Occupied(_) => return Err(twice(hash)),
                }
            }
            if names.insert(hash, name.to_vec()).is_some() {
                return Err(twice(hash));
            }
            found += 1;
        }
    }
    if found != entries {
        return Err(damaged(format_args!(
            "it has {found} functions, expected {entries}"
        )));
    }
    Ok(functions)
}

/// A hash and its counts.
fn record(bytes: &mut Bytes<'_>, version: u64) -> Result<(u64, FunctionCounts)> {
    let (hash, number) = (bytes.word()?, bytes.word()?);
    let counters = bytes.take(number.saturating_mul(8))?;
    let mut counts = FunctionCounts {
        counters: words(counters).collect(),
        ..FunctionCounts::default()
    };
    if version >= IndexVersion::Uniformity as u64 {
        counts.bitmap = bytes.padded()?.to_vec();
        if !bytes.padded()?.is_empty() {
            fail!("it records which counters of GPU code are uniform"; "merge the raw profiles");
        }
    } else if version >= IndexVersion::Bitmaps as u64 {
        // A word for each byte. Its upper bits are of no use, as in llvm-profdata.
        let number = bytes.word()?;
        let bitmap = bytes.take(number.saturating_mul(8))?;
        counts.bitmap = words(bitmap).map(|word| word as u8).collect();
    }
    let at = bytes.at;
    let read = ValueProfile::read(bytes.rest(), VALUE_KINDS);
    let (values, size) = read.map_err(|error| damaged(format_args!("at byte {at}, {error}")))?;
    bytes.at += size;
    counts.values = values;
    Ok((hash, counts))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(LittleEndian::read_u64)
}

/// The bytes of a file from a place on.
struct Bytes<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn at(file: &'a [u8], place: u64) -> Result<Self> {
        let at = usize::try_from(place)
            .ok()
            .filter(|at| *at <= file.len())
            .ok_or_else(|| cut(place, file))?;
        Ok(Self { file, at })
    }

    /// The bytes from the place on that a word of the header has.
    fn at_word(file: &'a [u8], word: usize) -> Result<Self> {
        let place = Self::at(file, 8 * word as u64)?.word()?;
        Self::at(file, place)
    }

    fn rest(&self) -> &'a [u8] {
        &self.file[self.at..]
    }

    fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    fn take(&mut self, number: u64) -> Result<&'a [u8]> {
        let needed = number.saturating_add(self.at as u64);
        let end = usize::try_from(needed).ok();
        let taken = end
            .and_then(|end| self.file.get(self.at..end))
            .ok_or_else(|| cut(needed, self.file))?;
        self.at += taken.len();
        Ok(taken)
    }

    /// The next bytes, which end where the part ends.
    fn part(&mut self, number: u64) -> Result<Self> {
        let at = self.at;
        self.take(number)?;
        let file = &self.file[..self.at];
        Ok(Self { file, at })
    }

    fn word(&mut self) -> Result<u64> {
        self.take(8).map(LittleEndian::read_u64)
    }

    /// A number of bytes, and the bytes, which are padded to 8.
    fn padded(&mut self) -> Result<&'a [u8]> {
        let number = self.word()?;
        let bytes = self.take(number)?;
        self.take(number.next_multiple_of(8) - number)?;
        Ok(bytes)
    }
}

fn cut(needed: u64, file: &[u8]) -> Error {
    damaged(format_args!(
        "a part ends at byte {needed} of {}",
        file.len()
    ))
}

fn twice(hash: u64) -> Error {
    damaged(format_args!("it has the function {hash:#018x} twice"))
}

fn damaged(reason: impl Display) -> Error {
    failure!("the indexed profile is damaged: {reason}"; "merge the raw profiles again")
}
