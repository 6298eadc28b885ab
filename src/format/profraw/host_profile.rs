//! Raw profiles of programs and libraries on the host, as LLVM's runtime writes them.
//!
//! They continue after the names: with the records and names of virtual tables from version 10 on, and with the value
//! profile of each function that has sites. Another profile may follow (LLVM's `RawInstrProfReader`).

use std::collections::{BTreeMap, HashMap};
use std::iter;

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::layout::{RecordLayout, Version, Word, padding};
use crate::format::profraw::read::RawProfile;
use crate::format::profraw::value_profile::{ValueKind, ValueProfile};
use crate::format::profraw::{CountsByFunction, ProfileError, functions, room};

/// The bytes of the record of a virtual table: the hash of its name, its address, and its size in 4 bytes
/// (`INSTR_PROF_VTABLE_DATA`).
const VIRTUAL_TABLE: usize = 24;

/// A raw profile of a program or library on the host.
#[derive(Clone, Debug)]
pub struct HostProfile<'a> {
    /// The version with its variant.
    pub version: Version,
    /// The counts and values of each function.
    pub functions: CountsByFunction,
    /// The section of the names of functions.
    pub names: &'a [u8],
}

impl<'a> HostProfile<'a> {
    /// Reads the profiles in `file`: at least one.
    ///
    /// # Errors
    /// Fails if one is not of a known version, or is damaged or cut short.
    pub fn all(file: &'a [u8]) -> Result<Vec<Self>, ProfileError> {
        Self::each(file).map(|(_, profile)| profile).collect()
    }

    /// Reads the profiles in `file`, each with its first byte: at least one. An error is the last.
    pub fn each(file: &'a [u8]) -> impl Iterator<Item = (usize, Result<Self, ProfileError>)> {
        let mut next = Some(0);
        iter::from_fn(move || {
            let start = next.take()?;
            let rest = &file[start..];
            let profile = Self::first(rest).map(|(profile, end)| {
                // Zeros may lie between two profiles.
                let more = rest[end..].iter().position(|byte| *byte != 0);
                next = more.map(|gap| start + end + gap);
                profile
            });
            Some((start, profile))
        })
    }

    /// The profile at the start of `file`, and its end.
    fn first(file: &'a [u8]) -> Result<(Self, usize), ProfileError> {
        let profile = room::whole(file, RawProfile::parse(file)?)?;
        let version = *profile.header.version();
        let layout = version.layout().record;
        let names = profile.sections.names.clone();
        let mut tail = Tail {
            file,
            at: names.end + padding(names.len()),
        };
        let tables = profile.header.word(Word::NumVTables);
        let tables = tail.take("virtual tables", tables, VIRTUAL_TABLE as u64)?;
        let table_names = profile.header.word(Word::VNamesSize);
        tail.take("names of virtual tables", table_names, 1)?;
        let records = &file[profile.sections.data.clone()];
        let addresses = Addresses::new(records, &layout, tables);
        let functions = functions::read(&profile, file, |index, record| {
            if layout.value_site_numbers(record).all(|number| number == 0) {
                return Ok(ValueProfile::default());
            }
            let found = file.get(tail.at..).unwrap_or_default();
            let read = ValueProfile::read(found, layout.value_kinds);
            let (mut values, size) =
                read.map_err(|reason| ProfileError::Values { index, reason })?;
            tail.at += size;
            values.map(|kind, value| addresses.named(kind, value));
            Ok(values)
        })?;
        let read = Self {
            version,
            functions,
            names: &file[names],
        };
        // The last section need not be filled up.
        Ok((read, tail.at.min(file.len())))
    }
}

/// The part of a file that is not read yet.
struct Tail<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Tail<'a> {
    /// The next section, which is filled up to 8 bytes.
    fn take(
        &mut self,
        part: &'static str,
        count: u64,
        size: u64,
    ) -> Result<&'a [u8], ProfileError> {
        if count == 0 {
            return Ok(&[]);
        }
        let len = count.saturating_mul(size);
        let needed = len.saturating_add(self.at as u64);
        let end = usize::try_from(needed).ok();
        let taken = end.and_then(|end| self.file.get(self.at..end));
        let taken = taken.ok_or(ProfileError::Truncated {
            part,
            needed,
            found: self.file.len() as u64,
        })?;
        self.at += taken.len() + padding(taken.len());
        Ok(taken)
    }
}

/// The hashes of the names of what lay at addresses.
struct Addresses {
    functions: HashMap<u64, u64>,
    /// The size and name of each virtual table, by its address.
    virtual_tables: BTreeMap<u64, (u64, u64)>,
}

impl Addresses {
    fn new(records: &[u8], layout: &RecordLayout, tables: &[u8]) -> Self {
        let mut functions = HashMap::new();
        for record in records.chunks_exact(layout.bytes as usize) {
            let address = LittleEndian::read_u64(&record[layout.function_pointer..]);
            // Linkers fold equal functions. A record without an address is of a function that was inlined.
            if address != 0 {
                functions
                    .entry(address)
                    .or_insert(LittleEndian::read_u64(record));
            }
        }
        let tables = tables.chunks_exact(VIRTUAL_TABLE).map(|table| {
            let size = LittleEndian::read_u32(&table[16..]).into();
            let name = LittleEndian::read_u64(table);
            (LittleEndian::read_u64(&table[8..]), (size, name))
        });
        Self {
            functions,
            virtual_tables: tables.filter(|(address, _)| *address != 0).collect(),
        }
    }

    /// The value of a kind as indexed profiles have it: the hash of a name in the place of an address, 0 if there
    /// is nothing known at the address.
    fn named(&self, kind: ValueKind, value: u64) -> u64 {
        match kind {
            ValueKind::IndirectCall => self.functions.get(&value).copied(),
            ValueKind::MemorySize => Some(value),
            ValueKind::VirtualTable => {
                let before = self.virtual_tables.range(..=value).next_back();
                let here = before.filter(|(start, (size, _))| value - **start < *size);
                here.map(|(_, (_, name))| *name)
            }
        }
        .unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "host_profile_tests.rs"]
mod tests;
