//! Indexed profiles, as compilers and llvm-cov read them.
//!
//! The format is that of LLVM's `IndexedInstrProf` (InstrProf.h, and InstrProfWriter.cpp): a header, a
//! summary, and an `OnDiskChainedHashTable` from the names of functions to hashes and counters. clang takes
//! the way to hash functions from the version ([`IndexVersion`]).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::iter;
use std::sync::Arc;

use anyhow::{Context, Result};
use byteorder::{ByteOrder, LittleEndian};
use rocov::format::profraw::{FunctionCounts, ValueKind, Version};

use super::index_version::{FunctionHashes, IndexVersion, MAGIC, TABLE_WORD};
use super::named_counts::{NamedCounts, Names};
use super::{llvm_profdata, profile_summary};

/// The variants of raw profiles that an indexed profile has: those of any of its parts, as in llvm-profdata.
///
/// They are counters of LLVM's IR, of single bytes, or of entries of functions only (`VARIANT_MASK_IR_PROF`,
/// `VARIANT_MASK_BYTE_COVERAGE`, `VARIANT_MASK_FUNCTION_ENTRY_ONLY`), context-sensitive records
/// (`VARIANT_MASK_CSIR_PROF`), and counters of the entries of functions or loops (`VARIANT_MASK_INSTR_ENTRY`,
/// `VARIANT_MASK_INSTR_LOOP_ENTRIES`). Traces of the first calls of functions (`VARIANT_MASK_TEMPORAL_PROF`) are
/// not among them.
const KNOWN: u64 = 1 << 55 | 1 << 56 | 1 << 57 | 1 << 58 | 1 << 60 | 1 << 61;
/// The variant with context-sensitive records.
const CONTEXT_SENSITIVE: u64 = 1 << 57;
/// The bit in the hash of a function that marks a context-sensitive record (`CS_FLAG_IN_FUNC_HASH`).
const CONTEXT_SENSITIVE_HASH: u64 = 1 << 60;
/// The kind of hash that finds names: `HashT::MD5`.
const MD5: u64 = 0;
/// The largest count (`getInstrMaxCountValue`). The two above it have a meaning of their own.
const MAX: u64 = u64::MAX - 2;

/// A counter is uniform if this share of its executions had all lanes of the wave active, in tenths.
const UNIFORM_TENTHS: u128 = 9;

/// The counts of the functions of one name, by the hash of their code.
type OfName = BTreeMap<u64, FunctionCounts>;

/// The counts of functions in several code objects, programs or libraries.
#[derive(Default)]
pub(crate) struct IndexedProfile {
    variant: u64,
    /// The first profile of front-end instrumentation, and the first of IR-level instrumentation.
    kinds: [Option<String>; 2],
    hashes: FunctionHashes,
    /// By the hash of the name.
    functions: BTreeMap<u64, OfName>,
    /// Those of each section once.
    names: Vec<Arc<Names>>,
    /// True if MC/DC bitmaps have the bits of [`IndexVersion::VirtualTables`].
    has_new_bitmaps: bool,
    /// The number of functions whose counts or values are not in it, and the hash of the name of one.
    left_out: Option<(usize, u64)>,
}

impl IndexedProfile {
    /// Adds the counts in the file or code object `from`. Returns false if they have traces, which rocov does not
    /// write. If a function with one name and hash has other counters in another profile, the first counts stay, as in
    /// llvm-profdata.
    ///
    /// # Errors
    ///
    /// Fails if the profiles come from both kinds of instrumentation.
    pub(crate) fn add(&mut self, counts: NamedCounts, from: impl Display) -> Result<bool> {
        let has_new_bitmaps = counts.has_new_bitmaps();
        let NamedCounts {
            variant,
            functions,
            names,
            hashes,
            ..
        } = counts;
        let is_ir_level = usize::from(Version::is_ir_level(variant));
        self.kinds[is_ir_level].get_or_insert_with(|| from.to_string());
        if let [Some(front_end), Some(ir_level)] = &self.kinds {
            return Err(llvm_profdata::mixed(front_end, ir_level));
        }
        if variant & !KNOWN != 0 {
            return Ok(false);
        }
        self.variant |= variant;
        self.has_new_bitmaps |= has_new_bitmaps;
        self.hashes.add(hashes);
        if !self.names.iter().any(|known| Arc::ptr_eq(known, &names)) {
            self.names.push(names);
        }
        for ((name, hash), counts) in functions {
            match self.functions.entry(name).or_default().entry(hash) {
                Entry::Vacant(place) => _ = place.insert(counts),
                Entry::Occupied(mut known) => {
                    let fits = known.get().values.fits(&counts.values);
                    if known.get_mut().add(&counts).is_err() || !fits {
                        self.left_out.get_or_insert((0, name)).0 += 1;
                    }
                }
            }
        }
        Ok(true)
    }

    /// The forms of the hashes of functions.
    pub(crate) fn hashes(&self) -> FunctionHashes {
        self.hashes.known()
    }

    /// The number of functions that have other counters or values in another profile, and the name of one.
    pub(crate) fn left_out(&self) -> Option<(usize, String)> {
        let (number, name) = self.left_out?;
        let name = self.names.iter().find_map(|known| known.get(&name))?;
        Some((number, String::from_utf8_lossy(name).into_owned()))
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
        } else if self.hashes().has_short {
            IndexVersion::ShortHashes
        } else if self.has_new_bitmaps || has(|counts| counts.values.has(ValueKind::VirtualTable)) {
            IndexVersion::VirtualTables
        } else if has(|counts| !counts.bitmap.is_empty()) {
            IndexVersion::Bitmaps
        } else {
            IndexVersion::Counters
        }
    }

    /// The bytes of the file. If it is `sparse`, it lacks the functions that never ran.
    ///
    /// # Errors
    ///
    /// Fails if a function has no name.
    pub(crate) fn bytes(&self, sparse: bool) -> Result<Vec<u8>> {
        let variant = self.variant;
        let ran = |of_name: &OfName| of_name.values().any(|counts| !counts.is_nothing());
        let functions: Vec<_> = self
            .functions
            .iter()
            .filter(|(_, function)| !sparse || ran(function))
            .collect();
        let version = self.version();
        let mut bytes = Vec::new();
        push(&mut bytes, [MAGIC, version as u64 | variant, 0, MD5]);
        bytes.resize(8 * version.header_words(), 0);
        for is_sensitive in
            iter::once(false).chain((variant & CONTEXT_SENSITIVE != 0).then_some(true))
        {
            let records = functions
                .iter()
                .flat_map(|(_, of_name)| *of_name)
                .filter(|(hash, _)| (*hash & CONTEXT_SENSITIVE_HASH != 0) == is_sensitive);
            push(
                &mut bytes,
                profile_summary::words(records.map(|(_, counts)| counts)),
            );
        }
        // As many buckets as the generator of LLVM's tables makes, and at least one.
        let number = (functions.len() * 4 / 3).next_power_of_two();
        let mut buckets: Vec<Vec<_>> = vec![Vec::new(); number];
        for (name, of_name) in &functions {
            buckets[**name as usize & (number - 1)].push((*name, *of_name));
        }
        let names: HashMap<_, _> = self.names.iter().flat_map(|names| names.iter()).collect();
        let mut places = Vec::with_capacity(number);
        for bucket in buckets {
            if bucket.is_empty() {
                places.push(0);
                continue;
            }
            places.push(bytes.len() as u64);
            let len =
                u16::try_from(bucket.len()).context("the profiles have too many functions")?;
            bytes.extend(len.to_le_bytes());
            for (hash, of_name) in bucket {
                let name = names.get(hash).with_context(|| {
                    format!("the profiles have no name for the function {hash:#018x}")
                })?;
                let mut data = Vec::new();
                for (hash, counts) in of_name {
                    push_record(&mut data, *hash, counts, version);
                }
                push(&mut bytes, [*hash, name.len() as u64, data.len() as u64]);
                bytes.extend(*name);
                bytes.extend(data);
            }
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let table = bytes.len() as u64;
        push(&mut bytes, [number as u64, functions.len() as u64]);
        push(&mut bytes, places);
        let header = &mut bytes[..8 * version.header_words()];
        LittleEndian::write_u64(&mut header[8 * TABLE_WORD..], table);
        // The sections after the hash table have nothing in them. Each is its size, 0.
        for word in version.section_words() {
            let section = bytes.len() as u64;
            LittleEndian::write_u64(&mut bytes[8 * word..], section);
            push(&mut bytes, [0]);
        }
        Ok(bytes)
    }
}

/// Appends the record of a function.
fn push_record(data: &mut Vec<u8>, hash: u64, counts: &FunctionCounts, version: IndexVersion) {
    push(data, [hash, counts.counters.len() as u64]);
    push(data, counts.counters.iter().map(|count| *count.min(&MAX)));
    if version >= IndexVersion::Uniformity {
        push_bytes(data, &counts.bitmap);
        push_bytes(data, &uniformity(counts));
    } else if version >= IndexVersion::Bitmaps {
        // A word for each byte.
        push(data, [counts.bitmap.len() as u64]);
        push(data, counts.bitmap.iter().map(|byte| u64::from(*byte)));
    }
    counts.values.write(data);
}

/// Appends the number of bytes, and the bytes, up to a whole word. A record consists of words.
fn push_bytes(data: &mut Vec<u8>, bytes: &[u8]) {
    push(data, [bytes.len() as u64]);
    data.extend(bytes);
    data.resize(data.len().next_multiple_of(8), 0);
}

/// A bit for each counter, from the lowest of the first byte on: 1 if the counter is uniform. The bits after
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

fn push(bytes: &mut Vec<u8>, words: impl IntoIterator<Item = u64>) {
    bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

#[cfg(test)]
#[path = "indexed_profile_tests.rs"]
mod tests;
