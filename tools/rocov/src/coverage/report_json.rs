//! A report that was written as JSON, to be compared with another.
//!
//! llvm-cov's own format says neither which functions are kernels nor which sides of branches are
//! folded: that is in `rocov.columns`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::support::diagnostic::{diagnostic, fail};
use serde::{Deserialize, Serialize};

use super::activity::Activities;
use super::export;
use super::function::{LineTable, Marks, Place, TableLine};
use super::hiprtc::Texts;
use super::model::{Record, SharedFunctions, Side, Source};
use super::ran_lines::RanLines;
use crate::profdata::{CountKind, CountKinds, CountUnit};
use crate::support::mmap;

/// The description of a column of a report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) side: Side,
    pub(crate) binaries: Vec<PathBuf>,
    /// The mangled names of functions that are kernels.
    pub(crate) kernels: Vec<String>,
    /// The kinds of counts.
    #[serde(default = "mapping_kinds")]
    pub(crate) kinds: CountKinds,
    /// The unit of the counts, if a user can choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) per: Option<CountUnit>,
    /// The number of functions whose counts are too low, as they add without atomic operations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) non_atomic: usize,
    /// The functions that have a line table instead of a coverage mapping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) line_tables: Vec<SavedLines>,
    /// Sides of branches that the compiler folded: the numbers of the function and of its branch, in
    /// the order of the export, and 0 for the true side or 1 for the false one.
    pub(crate) folded: Vec<(usize, usize, usize)>,
    /// The numbers of functions, in the order of the export, with facts that it lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<(usize, Marks)>,
    /// The lines that are left out, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) excluded_lines: BTreeMap<String, BTreeSet<u32>>,
}

/// A function that has a line table.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedLines {
    /// The number of the function, in the order of the export.
    pub(crate) function: usize,
    /// The line that it starts on.
    pub(crate) start: u32,
    /// For each line with code: the index of its file, its number, and its count.
    pub(crate) lines: Vec<(u32, u32, u64)>,
}

impl SavedLines {
    /// The line table of a record with this number. `None` if the record has a coverage mapping.
    pub(crate) fn from_record(number: usize, record: &Record) -> Option<Self> {
        let table = record.function.line_table.as_ref()?;
        let lines = table.lines.iter().zip(&record.counts.lines);
        Some(Self {
            function: number,
            start: table.start.line,
            lines: lines
                .map(|(line, count)| (line.file, line.line, *count))
                .collect(),
        })
    }

    /// Gives a record its line table. `None` if a file is not there.
    fn add(self, record: &mut Record) -> Option<()> {
        let function = Arc::get_mut(&mut record.function)?;
        let files = function.filenames.len();
        let mut table = LineTable {
            start: Place {
                line: self.start,
                column: 1,
            },
            lines: Vec::with_capacity(self.lines.len()),
        };
        for (file, line, count) in self.lines {
            if file as usize >= files {
                return None;
            }
            table.lines.push(TableLine { file, line });
            record.counts.lines.push(count);
        }
        function.line_table = Some(table);
        Some(())
    }
}

/// Returns whether a number is left out of a report.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The kinds of counts of reports that do not name them.
fn mapping_kinds() -> CountKinds {
    CountKinds::from([CountKind::Mapping])
}

#[derive(Deserialize)]
struct Saved {
    rocov: Rocov,
}

#[derive(Deserialize)]
struct Rocov {
    columns: Vec<Head>,
}

/// Reads such a report: a source of counts for each column. `place` gives the present path of a source
/// file.
///
/// # Errors
///
/// Fails if the file cannot be read, or is none that `rocov report --json` has written.
pub(crate) fn read(path: &Path, place: impl Fn(&str) -> String) -> Result<Vec<Source>> {
    let is_none = || {
        diagnostic!(
            "{} is not a report that `rocov report --json` of this version wrote", path.display();
            "name such a report, or a data directory"
        )
    };
    let open = || mmap::open(path);
    let saved: Saved = serde_json::from_reader(BufReader::new(open()?)).with_context(is_none)?;
    let exports = export::read_all(open()?).with_context(is_none)?;
    if exports.iter().all(|export| export.records.is_empty()) {
        fail!(
            "{} contains no functions", path.display();
            "write it without --summary-only and --skip-functions"
        );
    }
    if exports.len() != saved.rocov.columns.len() {
        return Err(is_none().into());
    }
    let mut shared = SharedFunctions::default();
    let sources = saved.rocov.columns.into_iter().zip(exports);
    let sources = sources.map(|(head, export)| {
        let mut records = export.records;
        for (function, branch, side) in head.folded {
            let record = records.get_mut(function).with_context(is_none)?;
            let function = Arc::get_mut(&mut record.function).with_context(is_none)?;
            let branch = function.branches.get_mut(branch).with_context(is_none)?;
            *branch.folded.get_mut(side).with_context(is_none)? = true;
        }
        for (function, marks) in head.marks {
            let record = records.get_mut(function).with_context(is_none)?;
            let function = Arc::get_mut(&mut record.function).with_context(is_none)?;
            let mut indices = marks.uncounted_gaps.iter().chain(&marks.own_counters);
            if indices.any(|index| *index >= function.regions.len()) {
                return Err(is_none().into());
            }
            function.marks = marks;
        }
        for lines in head.line_tables {
            let record = records.get_mut(lines.function).with_context(is_none)?;
            lines.add(record).with_context(is_none)?;
        }
        shared.share(
            records.iter_mut().map(|record| &mut record.function),
            &place,
        );
        Ok(Source {
            identity: String::new(),
            side: head.side,
            arch: head.name,
            binary: head.binaries.into_iter().next().unwrap_or_default(),
            compiler: None,
            kernels: head.kernels,
            records,
            texts: Texts::new(),
            ran_lines: RanLines::default(),
            activities: Activities::new(),
            kinds: head.kinds,
            unit: head.per,
        })
    });
    sources.collect()
}
