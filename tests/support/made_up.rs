//! Profiles of code that was never compiled, of any size: records and names from the format's
//! description.

use rocov::format::profraw::{Parts, Version};
use rocov::format::sections::PerSection;

/// A code object in which each function has the same number of counters.
pub struct MadeUp {
    records: Vec<u8>,
    names: Vec<u8>,
    counters: Vec<u8>,
}

impl MadeUp {
    /// Makes a code object with this number of `functions`; each counter is 1.
    pub fn new(functions: usize, counters: usize) -> Self {
        let mut records = Vec::new();
        for number in 0..functions {
            let hash = md5::compute(name(number));
            let hash = u64::from_le_bytes(hash[..8].try_into().expect("8 bytes"));
            let first = (8 * counters * number) as u64;
            // NameRef, FuncHash, CounterPtr, BitmapPtr, FunctionPointer, Values; NumCounters, u32;
            // value sites and NumBitmapBytes.
            let words = [hash, 7, first, 0, 0, 0, counters as u64, 0];
            records.extend(words.map(u64::to_le_bytes).concat());
        }
        let all: Vec<String> = (0..functions).map(name).collect();
        let all = all.join("\x01");
        let mut names = uleb128(all.len());
        // The size of the compressed names: 0, not compressed.
        names.push(0);
        names.extend(all.as_bytes());
        Self {
            records,
            names,
            counters: 1_u64.to_le_bytes().repeat(functions * counters),
        }
    }

    /// The parts of a profile after one run of all functions.
    pub fn parts(&self) -> Parts<'_> {
        Parts {
            version: Version::from_word(10).expect("a known version"),
            build_id: None,
            sections: PerSection {
                data: &self.records,
                counters: &self.counters,
                bitmap: &[],
                uniform: &[],
                names: &self.names,
            },
            names_address: 0,
        }
    }
}

/// The name of the function with this number.
pub fn name(number: usize) -> String {
    format!("function{number:05}")
}

fn uleb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
