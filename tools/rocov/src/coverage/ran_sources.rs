//! Sources as they were when a program ran: `rocov run` records hashes of them beside the kept device ELFs, and reports
//! compare.
//!
//! A hash is of the code of a source: comments of C and C++ may change, and whoever adds one that excludes a line need
//! not run the program again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::code_scanner::CodeScanner;
use crate::support::mmap;

/// The version of the record.
pub(super) const VERSION: u32 = 1;

/// The record of the sources of a device ELF.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SourcesRecord {
    /// [`VERSION`].
    pub(super) rocov_sources: u32,
    /// The sources, by the paths that they were compiled from. `None` if a source was not there, or had changed after the build.
    pub(super) sources: BTreeMap<String, Option<RanSource>>,
}

/// A source as it was when a program ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RanSource {
    /// Its size in bytes. Together with `modified` it tells that a source need not be read again.
    pub(super) size: u64,
    /// The time of its last change, in nanoseconds since 1970.
    pub(super) modified: u64,
    /// The hash of its code.
    pub(super) code: String,
}

/// The hashes of sources as they were in runs, by their present paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct RanSources(BTreeMap<Arc<str>, BTreeSet<String>>);

impl RanSources {
    /// Reads a record. One that cannot be read has no sources.
    pub(super) fn read(path: &Path) -> Self {
        let record = SourcesRecord::read(path).unwrap_or_default();
        let sources = record.sources.into_iter();
        let known = sources.filter_map(|(path, source)| {
            let codes = BTreeSet::from([source?.code]);
            Some((path.into(), codes))
        });
        Self(known.collect())
    }

    /// Adds those of another code object.
    pub(super) fn extend(&mut self, other: &Self) {
        for (path, codes) in &other.0 {
            let known = self.0.entry(Arc::clone(path)).or_default();
            known.extend(codes.iter().cloned());
        }
    }

    /// Gives the sources the paths of `place`.
    pub(super) fn move_all(&mut self, place: impl Fn(&str) -> String) {
        let moved = std::mem::take(&mut self.0).into_iter();
        for (path, codes) in moved {
            let known = self.0.entry(place(&path).into()).or_default();
            known.extend(codes);
        }
    }

    /// Returns whether the code in `text` is that of each run of the source at `path`, as far as that is known.
    pub(super) fn has(&self, path: &str, text: &[u8]) -> bool {
        self.0.get(path).is_none_or(|codes| {
            let code = hash_of_code(path, text);
            codes.iter().all(|ran| *ran == code)
        })
    }
}

impl SourcesRecord {
    /// `None` if there is no record, or one that cannot be read.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let text = mmap::read(path).ok()?;
        let record: Self = serde_json::from_slice(&text).ok()?;
        (record.rocov_sources == VERSION).then_some(record)
    }
}

/// The hash of the code of a source: without the comments of C and C++, and without space at the ends of lines.
pub(super) fn hash_of_code(path: &str, text: &[u8]) -> String {
    let ending = Path::new(path).extension().unwrap_or_default();
    // Fortran and Python have other comments.
    let others = ["f", "for", "ftn", "f90", "f95", "f03", "f08", "f18", "py"];
    let is_other = others
        .iter()
        .any(|other| ending.eq_ignore_ascii_case(other));
    let mut hash = Xxh3::new();
    let mut scanner = CodeScanner::default();
    for line in text.split(|byte| *byte == b'\n') {
        let code = match is_other {
            true => line.to_vec(),
            false => scanner.without_comments(line),
        };
        hash.update(code.trim_ascii_end());
        hash.update(b"\n");
    }
    format!("{:032x}", hash.digest128())
}
