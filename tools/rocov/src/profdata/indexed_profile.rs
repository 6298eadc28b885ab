//! Indexed profiles, as compilers and llvm-cov read them.
//!
//! The format is version 7 of LLVM's indexed profiles (`IndexedInstrProf` in InstrProf.h, and
//! InstrProfWriter.cpp), which every LLVM since 13 reads: a header, a summary, and an
//! `OnDiskChainedHashTable` from the names of functions to hashes and counters. It has no room for MC/DC
//! bitmaps, for uniform counters and for counters of single bytes.

use std::collections::{BTreeMap, HashMap};

use byteorder::{ByteOrder, LittleEndian};
use rocov::format::codeobject::name_ref;
use rocov::format::profraw::Sum;
use rocov::validate::for_each_name;

use crate::data::profile_header::INDEXED_MAGIC;

const MAGIC: u64 = u64::from_le_bytes(INDEXED_MAGIC);
/// By the version, compilers also know how to hash the code of a function, and that `&&` and `||` have counters.
const VERSION: u64 = 7;
/// The variants of a raw profile that an indexed profile has too: counters of LLVM's IR, and of the entries of
/// functions (`VARIANT_MASK_IR_PROF`, `VARIANT_MASK_INSTR_ENTRY`).
const VARIANTS: u64 = 1 << 56 | 1 << 58;
/// The kind of hash that finds names: `HashT::MD5`.
const MD5: u64 = 0;
/// The word of the header with the place of the hash table.
const TABLE_WORD: usize = 4;
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

/// The counters of the functions of one name, by the hash of their code.
type OfName = BTreeMap<u64, Vec<u64>>;

/// The counts of functions in several code objects.
#[derive(Default)]
pub(crate) struct IndexedProfile {
    variant: Option<u64>,
    /// By the hash of the name.
    functions: BTreeMap<u64, OfName>,
    names: HashMap<u64, Vec<u8>>,
}

impl IndexedProfile {
    /// The profile with the counts of all `sums`; `None` if the format has no room for them, or they do not fit
    /// together.
    pub(crate) fn of<'a>(sums: impl IntoIterator<Item = &'a Sum>) -> Option<Self> {
        let mut profile = Self::default();
        sums.into_iter().try_for_each(|sum| profile.add(sum))?;
        Some(profile)
    }

    fn add(&mut self, sum: &Sum) -> Option<()> {
        let (profile, file) = (sum.profile(), sum.bytes());
        let version = profile.header.version();
        let variant = version.word() - u64::from(version.layout().version);
        let has_room = variant & !VARIANTS == 0
            && profile.sections.bitmap.is_empty()
            && profile.sections.uniform.is_empty()
            && *self.variant.get_or_insert(variant) == variant;
        if !has_room {
            return None;
        }
        for_each_name(&file[profile.sections.names.clone()], |name| {
            self.names.insert(name_ref(name), name.to_vec());
        })
        .ok()?;
        for ((name, hash), counts) in sum.functions().ok()? {
            let of_name = self.functions.entry(name).or_default();
            let known = of_name
                .entry(hash)
                .or_insert_with(|| vec![0; counts.counters.len()]);
            if known.len() != counts.counters.len() {
                return None;
            }
            for (sum, count) in known.iter_mut().zip(counts.counters) {
                *sum = sum.saturating_add(count).min(MAX);
            }
        }
        Some(())
    }

    /// The bytes of the file. If it is `sparse`, it lacks the functions that never ran. `None` if a function has
    /// no name.
    pub(crate) fn bytes(&self, sparse: bool) -> Option<Vec<u8>> {
        let ran = |of_name: &OfName| of_name.values().flatten().any(|count| *count > 0);
        let functions = self.functions.iter();
        let functions: Vec<_> = functions.filter(|(_, it)| !sparse || ran(it)).collect();
        let mut bytes = Vec::new();
        let version = VERSION | self.variant.unwrap_or_default();
        push(&mut bytes, [MAGIC, version, 0, MD5, 0]);
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
                for (hash, counters) in of_name {
                    push(&mut data, [*hash, counters.len() as u64]);
                    push(&mut data, counters.iter().copied());
                    data.extend(NO_VALUES.iter().flat_map(|word| word.to_le_bytes()));
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
        LittleEndian::write_u64(&mut bytes[8 * TABLE_WORD..], table);
        Some(bytes)
    }
}

/// The summary of these functions' counters, by which compilers tell hot code from cold: the words that
/// `IndexedInstrProf::Summary` has, and `ProfileSummaryBuilder` computes.
fn summary<'a>(functions: impl Iterator<Item = &'a Vec<u64>>) -> Vec<u64> {
    let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
    let [mut number, mut entries, mut inner, mut total] = [0_u64; 4];
    for counters in functions {
        number += 1;
        for (place, count) in counters.iter().enumerate() {
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
