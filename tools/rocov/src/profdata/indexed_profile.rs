//! Indexed profiles, as compilers and llvm-cov read them.
//!
//! The format is that of LLVM's `IndexedInstrProf` (InstrProf.h, and InstrProfWriter.cpp): a header, a
//! summary, and an `OnDiskChainedHashTable` from the names of functions to hashes and counters. clang takes
//! the way to hash functions from the version ([`IndexVersion`]).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use byteorder::{ByteOrder, LittleEndian};
use rocov::format::codeobject::name_ref;
use rocov::format::profraw::{FunctionCounts, Sum};
use rocov::validate::for_each_name;

use crate::data::profile_header::INDEXED_MAGIC;

pub(super) const MAGIC: u64 = u64::from_le_bytes(INDEXED_MAGIC);
/// The variants of a raw profile that an indexed profile has too: counters of LLVM's IR, of the entries of
/// functions, and of single bytes (`VARIANT_MASK_IR_PROF`, `VARIANT_MASK_INSTR_ENTRY`,
/// `VARIANT_MASK_BYTE_COVERAGE`).
const VARIANTS: u64 = 1 << 56 | 1 << 58 | 1 << 60;
/// The kind of hash that finds names: `HashT::MD5`.
const MD5: u64 = 0;
/// The word of the header with the place of the hash table.
pub(super) const TABLE_WORD: usize = 4;
/// The word of the header with the place of the binary ids, from version 9 on.
const BINARY_IDS_WORD: usize = 6;
/// The word of the header with the place of the names of virtual tables, from version 12 on.
const VTABLES_WORD: usize = 8;
/// The value profiles of a function without values: their size with these two words, and their kinds.
const NO_VALUES: [u32; 2] = [8, 0];
/// The largest count (`getInstrMaxCountValue`). The two above it have a meaning of their own.
const MAX: u64 = u64::MAX - 2;
/// The shares of all executions that the summary has a line for, in millionths
/// (`ProfileSummaryBuilder::DefaultCutoffs`).
const CUTOFFS: [u64; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
];

/// A counter is uniform if this share of its executions had all lanes of the wave active, in tenths.
const UNIFORM_TENTHS: u128 = 9;
/// The first clang whose hashes of functions tell more kinds of code apart.
const FIRST_CLANG_WITH_FINER_HASHES: u32 = 22;

/// The version of an indexed profile. The profile takes the lowest that has room for its counts, so that older
/// tools read it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
enum IndexVersion {
    /// Since LLVM 13.
    Counters = 7,
    /// Since LLVM 18: records have MC/DC bitmaps.
    Bitmaps = 11,
    /// Since LLVM 22: clang compares finer hashes of functions.
    FinerHashes = 13,
    /// Since LLVM 23: records tell which counters are uniform.
    Uniformity = 14,
}

/// The first versions with these parts.
pub(super) const FIRST_WITH_BITMAPS: u64 = IndexVersion::Bitmaps as u64;
pub(super) const FIRST_WITH_FINER_HASHES: u64 = IndexVersion::FinerHashes as u64;
pub(super) const FIRST_WITH_UNIFORMITY: u64 = IndexVersion::Uniformity as u64;

impl IndexVersion {
    /// The number of words at the start of a file, the place of the hash table being the last before those of
    /// the sections that rocov leaves empty.
    fn header_words(self) -> usize {
        match self {
            Self::Counters => 5,
            Self::Bitmaps => 8,
            Self::FinerHashes | Self::Uniformity => 9,
        }
    }
}

/// The counts of the functions of one name, by the hash of their code.
type OfName = BTreeMap<u64, FunctionCounts>;

/// The counts of functions in several code objects.
#[derive(Default)]
pub(crate) struct IndexedProfile {
    variant: Option<u64>,
    /// True if the hashes are those of [`IndexVersion::FinerHashes`].
    has_finer_hashes: Option<bool>,
    /// By the hash of the name.
    functions: BTreeMap<u64, OfName>,
    names: HashMap<u64, Vec<u8>>,
}

impl IndexedProfile {
    /// The profile with the counts of all `sums`; `None` if they do not fit together, or if the kind of their
    /// hashes is not known. With each sum come the releases of clang that may have compiled its code, if they
    /// are known.
    pub(crate) fn of<'a>(
        sums: impl IntoIterator<Item = (&'a Sum, Option<RangeInclusive<u32>>)>,
    ) -> Option<Self> {
        let mut profile = Self::default();
        for (sum, clang) in sums {
            profile.add(sum, clang)?;
        }
        Some(profile)
    }

    fn add(&mut self, sum: &Sum, clang: Option<RangeInclusive<u32>>) -> Option<()> {
        let (profile, file) = (sum.profile(), sum.bytes());
        let version = profile.header.version();
        let variant = version.word() - u64::from(version.layout().version);
        let has_finer_hashes =
            has_finer_hashes(&clang.unwrap_or_else(|| version.layout().llvm.clone()))?;
        let fits = variant & !VARIANTS == 0
            && *self.variant.get_or_insert(variant) == variant
            && *self.has_finer_hashes.get_or_insert(has_finer_hashes) == has_finer_hashes;
        if !fits {
            return None;
        }
        for_each_name(&file[profile.sections.names.clone()], |name| {
            self.names.insert(name_ref(name), name.to_vec());
        })
        .ok()?;
        for ((name, hash), counts) in sum.functions().ok()? {
            match self.functions.entry(name).or_default().entry(hash) {
                Entry::Vacant(place) => _ = place.insert(counts),
                Entry::Occupied(mut known) => known.get_mut().add(&counts).ok()?,
            }
        }
        Some(())
    }

    /// The lowest version that has room for the counts.
    fn version(&self) -> IndexVersion {
        let has = |counts: fn(&FunctionCounts) -> bool| {
            self.functions
                .values()
                .flat_map(BTreeMap::values)
                .any(counts)
        };
        if has(|counts| !counts.uniform.is_empty()) {
            IndexVersion::Uniformity
        } else if self.has_finer_hashes == Some(true) {
            IndexVersion::FinerHashes
        } else if has(|counts| !counts.bitmap.is_empty()) {
            IndexVersion::Bitmaps
        } else {
            IndexVersion::Counters
        }
    }

    /// The bytes of the file. If it is `sparse`, it lacks the functions that never ran. `None` if a function has
    /// no name.
    pub(crate) fn bytes(&self, sparse: bool) -> Option<Vec<u8>> {
        let ran = |of_name: &OfName| {
            of_name
                .values()
                .any(|it| it.counters.iter().any(|it| *it > 0))
        };
        let functions = self.functions.iter();
        let functions: Vec<_> = functions.filter(|(_, it)| !sparse || ran(it)).collect();
        let version = self.version();
        let mut bytes = Vec::new();
        push(
            &mut bytes,
            [
                MAGIC,
                version as u64 | self.variant.unwrap_or_default(),
                0,
                MD5,
            ],
        );
        bytes.resize(8 * version.header_words(), 0);
        let records = functions.iter().flat_map(|(_, of_name)| of_name.values());
        push(&mut bytes, summary(records));
        // As many buckets as the generator of LLVM's tables makes, and at least one.
        let number = (functions.len() * 4 / 3).next_power_of_two();
        let mut buckets: Vec<Vec<_>> = vec![Vec::new(); number];
        for (name, of_name) in &functions {
            buckets[**name as usize & (number - 1)].push((*name, *of_name));
        }
        let mut places = Vec::with_capacity(number);
        for bucket in buckets {
            if bucket.is_empty() {
                places.push(0);
                continue;
            }
            places.push(bytes.len() as u64);
            bytes.extend(u16::try_from(bucket.len()).ok()?.to_le_bytes());
            for (hash, of_name) in bucket {
                let name = self.names.get(hash)?;
                let mut data = Vec::new();
                for (hash, counts) in of_name {
                    push_record(&mut data, *hash, counts, version);
                }
                push(&mut bytes, [*hash, name.len() as u64, data.len() as u64]);
                bytes.extend(name);
                bytes.extend(data);
            }
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let table = bytes.len() as u64;
        push(&mut bytes, [number as u64, functions.len() as u64]);
        push(&mut bytes, places);
        let header = &mut bytes[..8 * version.header_words()];
        LittleEndian::write_u64(&mut header[8 * TABLE_WORD..], table);
        self.push_empty_sections(&mut bytes, version);
        Some(bytes)
    }

    /// Writes the sections behind the hash table that have nothing in them: each is its size, 0.
    fn push_empty_sections(&self, bytes: &mut Vec<u8>, version: IndexVersion) {
        let places: &[usize] = match version {
            IndexVersion::Counters => &[],
            IndexVersion::Bitmaps => &[BINARY_IDS_WORD],
            IndexVersion::FinerHashes | IndexVersion::Uniformity => {
                &[BINARY_IDS_WORD, VTABLES_WORD]
            }
        };
        for place in places {
            let section = bytes.len() as u64;
            LittleEndian::write_u64(&mut bytes[8 * place..], section);
            push(bytes, [0]);
        }
    }
}

/// Returns whether these releases of clang make finer hashes of functions; `None` if some of them do.
fn has_finer_hashes(clang: &RangeInclusive<u32>) -> Option<bool> {
    let [first, last] = [clang.start(), clang.end()].map(|it| *it >= FIRST_CLANG_WITH_FINER_HASHES);
    (first == last).then_some(first)
}

/// Appends the record of a function.
fn push_record(data: &mut Vec<u8>, hash: u64, counts: &FunctionCounts, version: IndexVersion) {
    push(data, [hash, counts.counters.len() as u64]);
    push(data, counts.counters.iter().map(|count| *count.min(&MAX)));
    if version >= IndexVersion::Bitmaps {
        push_bytes(data, &counts.bitmap);
    }
    if version >= IndexVersion::Uniformity {
        push_bytes(data, &uniformity(counts));
    }
    data.extend(NO_VALUES.iter().flat_map(|word| word.to_le_bytes()));
}

/// Appends the number of bytes, and the bytes, up to a multiple of 8.
fn push_bytes(data: &mut Vec<u8>, bytes: &[u8]) {
    push(data, [bytes.len() as u64]);
    data.extend(bytes);
    data.resize(
        data.len() + bytes.len().next_multiple_of(8) - bytes.len(),
        0,
    );
}

/// A bit for each counter, from the lowest of the first byte on: 1 if the counter is uniform. The bits behind
/// the last counter are 1. None if the function has no uniform counters.
fn uniformity(counts: &FunctionCounts) -> Vec<u8> {
    let all: Vec<_> = counts.counters.iter().zip(&counts.uniform).collect();
    let bytes = all.chunks(8).map(|counters| {
        let mut byte = u8::MAX;
        for (bit, (count, uniform)) in counters.iter().enumerate() {
            if u128::from(**uniform) * 10 < u128::from(**count) * UNIFORM_TENTHS {
                byte &= !(1 << bit);
            }
        }
        byte
    });
    bytes.collect()
}

/// The summary of these functions' counters, by which compilers tell hot code from cold: the words that
/// `IndexedInstrProf::Summary` has, and `ProfileSummaryBuilder` computes.
fn summary<'a>(functions: impl Iterator<Item = &'a FunctionCounts>) -> Vec<u64> {
    let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
    let [mut number, mut entries, mut inner, mut total] = [0_u64; 4];
    for counts in functions {
        number += 1;
        for (place, count) in counts.counters.iter().enumerate() {
            let largest = if place == 0 { &mut entries } else { &mut inner };
            *largest = (*largest).max(*count);
            total = total.wrapping_add(*count);
            *frequencies.entry(*count).or_default() += 1;
        }
    }
    let blocks: u64 = frequencies.values().sum();
    let largest = frequencies.keys().next_back().copied().unwrap_or_default();
    let fields = [number, blocks, entries, largest, inner, total];
    let mut words = vec![fields.len() as u64, CUTOFFS.len() as u64];
    words.extend(fields);
    let mut descending = frequencies.into_iter().rev();
    let [mut least, mut seen, mut executions] = [0_u64; 3];
    for cutoff in CUTOFFS {
        let wanted = u128::from(total) * u128::from(cutoff) / 1_000_000;
        while u128::from(executions) < wanted
            && let Some((count, blocks)) = descending.next()
        {
            least = count;
            executions = executions.wrapping_add(count.wrapping_mul(blocks));
            seen += blocks;
        }
        words.extend([cutoff, least, seen]);
    }
    words
}

fn push(bytes: &mut Vec<u8>, words: impl IntoIterator<Item = u64>) {
    bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

#[cfg(test)]
#[path = "indexed_profile_tests.rs"]
mod tests;
