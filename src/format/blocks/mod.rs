//! Counts of code that was compiled without coverage flags, as records of raw profiles.
//!
//! The modelled GPU counts what it executes (a trace). rocov puts counters into PTX while the driver loads it, and into
//! the machine code of AMD GPUs, where they count what a trace does. All kinds of counts go into ordinary raw profiles,
//! so that pools, labels, dumps and merges treat them as they treat the counters of clang. Only the meaning of the
//! counters differs: a line table replaces the coverage mapping. A prefix of the record's name shows the kind, so one
//! profile can have records of several kinds.
//!
//! | kind | a record for each | counters | what a reader needs |
//! |---|---|---|---|
//! | [`Kind::Trace`] | [function](trace::functions) of the device ELF | waves and lanes for each word of its code ([`trace`]) | the device ELF |
//! | [`Kind::Ptx`] | `.entry` or `.func` with a body | threads that entered each basic block, in the order of the text | the original PTX text |
//!
//! A function without a record, or with counters of zeros only, did not run.

mod records;
pub mod trace;

pub use records::{Records, TraceRecords};

use xxhash_rust::xxh3::xxh3_64;

/// The bits of a hash that readers keep: clang 22 and later clear the upper four (LLVM's `NamedInstrProfRecord`).
const HASH_BITS: u64 = u64::MAX >> 4;

/// The meaning of a record's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Executed instructions, counted by the modelled GPU or by counters in the machine code.
    Trace,
    /// Entries of basic blocks of PTX, counted on an NVIDIA GPU.
    Ptx,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Trace, Self::Ptx];

    /// The start of the names of its records.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Trace => "rocov-trace;",
            Self::Ptx => "rocov-ptx;",
        }
    }

    /// The name of the record for the function with this mangled name.
    #[must_use]
    pub fn record_name(self, symbol: &str) -> String {
        format!("{}{symbol}", self.prefix())
    }

    /// Splits the name of a record into its kind and the function's mangled name. `None` for a record of clang: its
    /// names with a `;` start with a file's name, and no file is called `rocov-trace` or `rocov-ptx`.
    #[must_use]
    pub fn split(record_name: &str) -> Option<(Self, &str)> {
        Self::ALL
            .into_iter()
            .find_map(|kind| Some((kind, record_name.strip_prefix(kind.prefix())?)))
    }

    /// The `FuncHash` of a record: a hash of the function's code, which is its machine code ([`Kind::Trace`]) or its
    /// PTX text ([`Kind::Ptx`]).
    ///
    /// It has 60 bits. Indexed profiles from version 13 on have no more, and a longer one would say that clang 21 or an
    /// earlier one has written the profile.
    #[must_use]
    pub fn hash(self, code: &[u8]) -> u64 {
        xxh3_64(code) & HASH_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_kind_and_symbol() {
        for kind in Kind::ALL {
            let name = kind.record_name("_Z5scalePfif");
            assert_eq!(Kind::split(&name), Some((kind, "_Z5scalePfif")));
        }
        assert_eq!(Kind::split("rocov-trace;a;b"), Some((Kind::Trace, "a;b")));
        for clang in ["main", "", "a.hip;local", "rocov-trace", "a.hip:rocov-ptx;"] {
            assert_eq!(Kind::split(clang), None, "{clang}");
        }
    }

    #[test]
    fn a_hash_fits_all_indexed_profiles() {
        // XXH3 of no bytes is 2d06800538d394c2 according to its specification.
        assert_eq!(Kind::Trace.hash(b""), 0x0d06_8005_38d3_94c2);
        assert_ne!(Kind::Ptx.hash(b"ret;"), Kind::Ptx.hash(b"ret ;"));
    }
}
