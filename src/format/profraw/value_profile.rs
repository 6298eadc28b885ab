//! Value profiles: what indirect calls reached, how many bytes memory operations took, and which virtual tables
//! objects had (`-fprofile-generate`).
//!
//! Raw and indexed profiles have them in one form: LLVM's `ValueProfData` (`InstrProfData.inc`). It is a header,
//! and then for each kind of value its sites: the number of values of each, and the values with their counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::error::ValueProfileError;

/// The most values of a site: `INSTR_PROF_MAX_NUM_VAL_PER_SITE`.
const MAX_VALUES: usize = 255;
/// The bytes of the header: its size with all that follows, and the number of kinds.
const HEADER: usize = 8;
/// The bytes before the numbers of values of the sites: the kind, and the number of sites.
const KIND_HEADER: usize = 8;
/// The bytes of a value and its count.
const VALUE: usize = 16;

/// The kinds of values, by their numbers in files: `InstrProfValueKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum ValueKind {
    /// The functions that an indirect call reached: addresses in raw profiles, the hashes of names elsewhere. 0 is
    /// a function that is not instrumented, or of another library.
    IndirectCall,
    /// The sizes of memory operations such as `memcpy`, in bytes.
    MemorySize,
    /// The virtual tables of objects whose functions were called: addresses in raw profiles, the hashes of names
    /// elsewhere.
    VirtualTable,
}

impl ValueKind {
    const ALL: [Self; 3] = [Self::IndirectCall, Self::MemorySize, Self::VirtualTable];

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// A value, and the number of times that a site had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueCount {
    /// The value.
    pub value: u64,
    /// The number of times.
    pub count: u64,
}

/// The values of one site.
type Site = Vec<ValueCount>;

/// The values of a function, for each site of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueProfile {
    kinds: BTreeMap<ValueKind, Vec<Site>>,
}

impl ValueProfile {
    /// Reads the value profile at the start of `bytes`, with this number of kinds at most. Returns its size in
    /// bytes, too.
    ///
    /// # Errors
    /// Fails if the value profile is damaged or ends after `bytes`.
    pub fn read(bytes: &[u8], kinds: usize) -> Result<(Self, usize), ValueProfileError> {
        let max = kinds.saturating_sub(1) as u32;
        let header = part(bytes, 0, HEADER as u64)?;
        let (size, number) = (
            LittleEndian::read_u32(header),
            LittleEndian::read_u32(&header[4..]),
        );
        if !size.is_multiple_of(8) {
            return Err(ValueProfileError::Size { found: size });
        }
        let bytes = part(bytes, 0, size.into())?;
        let mut profile = Self::default();
        let mut at = HEADER;
        for _ in 0..number {
            let header = part(bytes, at, KIND_HEADER as u64)?;
            let found = LittleEndian::read_u32(header);
            let kind = ValueKind::from_number(found).filter(|_| found <= max);
            let kind = kind.filter(|kind| !profile.kinds.contains_key(kind));
            let kind = kind.ok_or(ValueProfileError::Kind { found, max })?;
            let sites = u64::from(LittleEndian::read_u32(&header[4..]));
            let numbers = part(bytes, at + KIND_HEADER, sites)?;
            at += KIND_HEADER + numbers.len().next_multiple_of(8);
            let mut of_kind = Vec::with_capacity(numbers.len());
            for number in numbers {
                let values = part(bytes, at, u64::from(*number) * VALUE as u64)?;
                at += values.len();
                of_kind.push(values.chunks_exact(VALUE).map(ValueCount::new).collect());
            }
            profile.kinds.insert(kind, of_kind);
        }
        Ok((profile, bytes.len()))
    }

    /// Appends the value profile to `bytes`. Each site has the values with the largest counts, these first.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let kinds = self.kinds.iter().filter(|(_, sites)| !sites.is_empty());
        push(bytes, [0, kinds.clone().count() as u32]);
        for (kind, sites) in kinds {
            push(bytes, [*kind as u32, sites.len() as u32]);
            let sites: Vec<_> = sites.iter().map(|site| most_frequent(site)).collect();
            bytes.extend(sites.iter().map(|site| site.len() as u8));
            // The header has a multiple of 8 bytes.
            bytes.resize(start + (bytes.len() - start).next_multiple_of(8), 0);
            for ValueCount { value, count } in sites.iter().flatten() {
                bytes.extend(value.to_le_bytes());
                bytes.extend(count.to_le_bytes());
            }
        }
        let size = (bytes.len() - start) as u32;
        LittleEndian::write_u32(&mut bytes[start..], size);
    }

    /// Returns whether there are no sites.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns whether there are sites of this kind.
    #[must_use]
    pub fn has(&self, kind: ValueKind) -> bool {
        self.kinds.contains_key(&kind)
    }

    /// Returns whether both have equal numbers of sites.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        ValueKind::ALL
            .into_iter()
            .all(|kind| self.sites(kind).len() == other.sites(kind).len())
    }

    fn sites(&self, kind: ValueKind) -> &[Site] {
        self.kinds.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Adds the values of another run. Counts stop at the largest number. A site keeps the values with the
    /// largest counts. Values of a kind that has another number of sites are not added, as in llvm-profdata.
    pub fn add(&mut self, more: &Self) {
        for (kind, sites) in &mut self.kinds {
            let more = more.sites(*kind);
            if sites.len() != more.len() {
                continue;
            }
            for (site, more) in sites.iter_mut().zip(more) {
                *site = sum(site, more);
            }
        }
    }

    /// Replaces each value with the one that `new` gives for it.
    pub(super) fn map(&mut self, new: impl Fn(ValueKind, u64) -> u64) {
        for (kind, sites) in &mut self.kinds {
            for it in sites.iter_mut().flatten() {
                it.value = new(*kind, it.value);
            }
        }
    }
}

impl ValueCount {
    fn new(bytes: &[u8]) -> Self {
        Self {
            value: LittleEndian::read_u64(bytes),
            count: LittleEndian::read_u64(&bytes[8..]),
        }
    }
}

/// The values with the largest counts, these first.
fn most_frequent(site: &[ValueCount]) -> Site {
    let mut site = site.to_vec();
    site.sort_by_key(|value| Reverse(value.count));
    site.truncate(MAX_VALUES);
    site
}

/// The sum of two sites. A site may have the value 0 several times: each is a function of its own whose name is not
/// known. The sum adds the largest counts of 0 to each other, and so on, so that it does not depend on the order of
/// additions. llvm-profdata takes the values of a raw profile in any order.
fn sum(site: &[ValueCount], more: &[ValueCount]) -> Site {
    let [mut site, mut more] = [site, more].map(most_frequent);
    for unsorted in [&mut site, &mut more] {
        unsorted.sort_by_key(|counted| counted.value);
    }
    let mut all = Vec::with_capacity(site.len().max(more.len()));
    let mut site = site.into_iter().peekable();
    for it in more {
        while let Some(smaller) = site.next_if(|own| own.value < it.value) {
            all.push(smaller);
        }
        let own = site.next_if(|own| own.value == it.value);
        let count = own.map_or(it.count, |own| own.count.saturating_add(it.count));
        all.push(ValueCount { count, ..it });
    }
    all.extend(site);
    most_frequent(&all)
}

/// The part of `bytes` from `at` on.
fn part(bytes: &[u8], at: usize, len: u64) -> Result<&[u8], ValueProfileError> {
    let found = bytes.len();
    let needed = len.saturating_add(at as u64);
    let end = usize::try_from(needed).ok();
    end.and_then(|end| bytes.get(at..end))
        .ok_or(ValueProfileError::Truncated { needed, found })
}

fn push(bytes: &mut Vec<u8>, words: [u32; 2]) {
    bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
}

#[cfg(test)]
#[path = "value_profile_tests.rs"]
mod tests;
