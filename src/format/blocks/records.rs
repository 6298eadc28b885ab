//! The parts of a raw profile for a code object's records.

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use super::{Kind, trace};
use crate::format::codeobject::{CodeObject, CodeObjectError, name_ref};
use crate::format::leb128::write_uleb128;
use crate::format::profraw::Version;

/// The byte between two names of a list (LLVM's `INSTR_PROF_NAME_SEP`).
const SEPARATOR: u8 = 1;

/// A record without its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    name_ref: u64,
    hash: u64,
    counters: u32,
}

/// The records of a code object, in a fixed order: files with the counts of different runs can be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    records: Vec<Record>,
    names: Vec<u8>,
}

impl Records {
    /// Adds a record with `counters` counters for the function `symbol`, whose machine code or PTX is `code`.
    pub fn push(&mut self, kind: Kind, symbol: &str, code: &[u8], counters: u32) {
        let name = kind.record_name(symbol);
        if !self.names.is_empty() {
            self.names.push(SEPARATOR);
        }
        self.names.extend_from_slice(name.as_bytes());
        self.records.push(Record {
            name_ref: name_ref(name.as_bytes()),
            hash: kind.hash(code),
            counters,
        });
    }

    /// Returns whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The size of all counters in bytes.
    #[must_use]
    pub fn counters_len(&self) -> u64 {
        let counters = self.records.iter().map(|record| u64::from(record.counters));
        8 * counters.sum::<u64>()
    }

    /// The data records for a profile of this version, if their counters follow `first` bytes of other counters.
    ///
    /// `CounterPtr` and `UniformCounterPtr` are byte offsets in their sections, as
    /// [`encode`](crate::format::profraw::encode) takes them.
    #[must_use]
    pub fn data(&self, version: &Version, first: u64) -> Vec<u8> {
        let layout = version.layout().record;
        let size = layout.bytes as usize;
        let mut data = vec![0; self.records.len() * size];
        let mut at = first;
        for (record, bytes) in self.records.iter().zip(data.chunks_exact_mut(size)) {
            LittleEndian::write_u64(bytes, record.name_ref);
            LittleEndian::write_u64(&mut bytes[8..], record.hash);
            for pointer in [Some(layout.counter_ptr), layout.uniform_ptr]
                .into_iter()
                .flatten()
            {
                LittleEndian::write_u64(&mut bytes[pointer..], at);
            }
            LittleEndian::write_u32(&mut bytes[layout.num_counters..], record.counters);
            at += version.counter_bytes() * u64::from(record.counters);
        }
        data
    }

    /// The names, as a list of a names section.
    #[must_use]
    pub fn names(&self) -> Vec<u8> {
        let mut list = Vec::with_capacity(self.names.len() + 8);
        write_uleb128(&mut list, self.names.len() as u64);
        // The size of the compressed list: it is not compressed.
        write_uleb128(&mut list, 0);
        list.extend_from_slice(&self.names);
        list
    }
}

/// The records of a traced code object, and the ELF address and size of the code of each, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceRecords {
    /// The records.
    pub records: Records,
    /// The functions, in the order of the records.
    pub functions: Vec<(u64, u64)>,
}

impl TraceRecords {
    /// The records of all functions: also of those that will not run, so that all profiles of the code object have the
    /// same records.
    ///
    /// # Errors
    /// Fails if [`trace::functions`] does.
    pub fn from_code_object<'data, R: ReadRef<'data>>(
        code_object: &CodeObject<'data, R>,
    ) -> Result<Self, CodeObjectError> {
        let mut all = Self::default();
        for function in trace::functions(code_object)? {
            let size = function.code.len() as u64;
            // No ELF that a GPU can load has a function of gigabytes.
            let Ok(counters) = u32::try_from(trace::counters(size)) else {
                continue;
            };
            all.records
                .push(Kind::Trace, function.name, function.code, counters);
            all.functions.push((function.address, size));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::profraw::{Parts, Sum, encode};
    use crate::format::sections::PerSection;

    #[test]
    fn a_profile_of_each_version_has_the_counters_of_each_function() {
        let mut records = Records::default();
        records.push(Kind::Trace, "one", b"1111", 2);
        records.push(Kind::Ptx, "two", b"{ ret; }", 3);
        let counters: Vec<u8> = [9_u64, 576, 4, 5, 6]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        for clang in [15, 18, 22, 23] {
            let version = Version::from_clang(clang).unwrap();
            let (data, names) = (records.data(&version, 0), records.names());
            let file = encode(&Parts {
                version,
                build_id: None,
                sections: PerSection {
                    data: &data,
                    names: &names,
                    counters: &counters,
                    ..PerSection::default()
                },
                names_address: 0,
            });
            let functions = Sum::new(file).unwrap().functions().unwrap();
            let of = |kind: Kind, symbol: &str, code: &[u8]| {
                let name = kind.record_name(symbol);
                functions[&(name_ref(name.as_bytes()), kind.hash(code))]
                    .counters
                    .clone()
            };
            assert_eq!(of(Kind::Trace, "one", b"1111"), [9, 576], "{clang}");
            assert_eq!(of(Kind::Ptx, "two", b"{ ret; }"), [4, 5, 6], "{clang}");
        }
    }
}
