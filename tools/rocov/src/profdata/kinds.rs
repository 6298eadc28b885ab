//! The kinds of counts that a code object has, and of the tables that give them places in the source.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rocov::format::blocks::{Kind, trace};
use rocov::format::codeobject::{CodeObject, name_ref};
use serde::{Deserialize, Serialize};

use super::{BinaryCounts, ProfileCounts};
use crate::support::mmap;

/// The kind of counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CountKind {
    /// clang's counters, which a coverage mapping gives places
    Mapping,
    /// Instructions that the modelled GPU executed, with a line table
    Trace,
    /// Blocks of PTX that rocov has instrumented, with the lines of the PTX
    Ptx,
}

impl CountKind {
    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mapping => "coverage mapping",
            Self::Trace => "trace",
            Self::Ptx => "PTX",
        }
    }

    /// The name in reports, with the unit of counts of PTX if that is known.
    pub(crate) fn name_with(self, unit: Option<CountUnit>) -> String {
        match unit {
            Some(unit) if self == Self::Ptx => format!("{} {}", self.name(), unit.words()),
            _ => self.name().to_owned(),
        }
    }

    /// The word for it in tables and options.
    #[cfg(feature = "fleet")]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Mapping => "mapping",
            Self::Trace => "trace",
            Self::Ptx => "ptx",
        }
    }
}

/// The thing that a count is a number of.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CountUnit {
    /// Threads that ran the code
    #[default]
    Thread,
    /// Programs that ran it
    Program,
}

impl CountUnit {
    /// The words for it after the name of counts.
    fn words(self) -> &'static str {
        match self {
            Self::Thread => "per thread",
            Self::Program => "per program",
        }
    }
}

/// The kinds of counts of one code object.
pub(crate) type CountKinds = BTreeSet<CountKind>;

/// The names of kinds, with the unit of counts of PTX.
pub(crate) fn in_words(kinds: &CountKinds, unit: Option<CountUnit>) -> String {
    let names = kinds.iter().map(|kind| kind.name_with(unit));
    names.collect::<Vec<_>>().join(", ")
}

/// The kinds of counts that the code object in the files `objects` has: a device ELF, PTX or both. Code without a
/// coverage mapping that nothing is counted of was traced.
pub(crate) fn kinds(objects: &[PathBuf], counts: &BinaryCounts) -> CountKinds {
    let mut kinds = CountKinds::new();
    let BinaryCounts::Summed(counts) = counts else {
        return CountKinds::from([CountKind::Mapping]);
    };
    for path in objects {
        kinds.extend(file_kinds(path, counts));
    }
    if kinds.is_empty() {
        kinds.insert(CountKind::Trace);
    }
    kinds
}

fn file_kinds(path: &Path, counts: &ProfileCounts) -> CountKinds {
    let mut kinds = CountKinds::new();
    let Ok(contents) = mmap::map(path) else {
        return kinds;
    };
    let has_counts = |kind: Kind, symbol: &str| {
        let name = name_ref(kind.record_name(symbol).as_bytes());
        let records = (name, 0)..=(name, u64::MAX);
        counts.functions.range(records).next().is_some()
    };
    match CodeObject::parse(&contents[..]) {
        Ok(object) => {
            if object.is_mapped().unwrap_or(true) {
                kinds.insert(CountKind::Mapping);
            }
            let functions = trace::functions(&object).unwrap_or_default();
            if functions
                .iter()
                .any(|function| has_counts(Kind::Trace, function.name))
            {
                kinds.insert(CountKind::Trace);
            }
        }
        Err(_) if !is_elf(&contents) => _ = kinds.insert(CountKind::Ptx),
        Err(_) => {}
    }
    kinds
}

/// Returns whether a file is an ELF, by how it starts. The other files of code objects are PTX.
pub(crate) fn is_elf(contents: &[u8]) -> bool {
    contents.starts_with(b"\x7fELF")
}
