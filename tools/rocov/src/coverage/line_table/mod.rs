//! The line tables of code that has no coverage mapping, and counts that are not of clang's counters.
//!
//! rocov counts what runs of such code by units: the words of machine code ([`trace`]), or the basic blocks of PTX.
//! A line table lists the lines of each unit. [`dwarf`] reads that of an ELF, from its [`sections`] and those
//! that were [`split`] off.
//!
//! A compiler may put a function into others. So a function has several copies: one of its own if it is there, and
//! one for each place that it was inlined into. The count of a line in one copy is that of the start of a
//! statement that most threads executed: the others lie in branches of the line. Other units do not show it, as the
//! compiler has all lanes of a wave run instructions of its own, which spill registers. The count of the line is the sum
//! over the copies.

mod dwarf;
mod ptx;
mod sections;
mod split;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use rocov::format::blocks::Kind;
use rocov::format::blocks::trace::{Executed, WORD_BYTES, at};
use rocov::support::diagnostic::Diagnostic;

use super::activity::{Activities, Activity};
use super::function::{Counts, Function, LineTable, Place, TableLine};
use super::hiprtc::Texts;
use super::model::Record;
use super::ran_lines::RanLines;
use crate::profdata::ProfileCounts;
use crate::support::demangle::shown;

pub(crate) use self::ptx::read as read_ptx;
pub(crate) use self::trace::read as read_elf;

/// The start of the path of functions whose lines are not known. The identity of their code object follows.
const WITHOUT_LINES: &str = "without-lines-";

/// Returns whether a source of a report stands for code whose lines are not known.
pub(crate) fn is_without_lines(path: &str) -> bool {
    path.starts_with(WITHOUT_LINES)
}

/// The place after a function's name, such as ` (a.hip:3)`. Empty if its lines are not known.
pub(crate) fn place_of(path: &str, line: u32) -> String {
    match is_without_lines(path) {
        true => String::new(),
        false => format!(" ({path}:{line})"),
    }
}

/// The name and the hash of the record that has the counters of units.
type RecordKey = (u64, u64);

/// A function with a line table.
#[derive(Debug)]
pub(crate) struct ListedFunction {
    pub(crate) description: Arc<Function>,
    /// The number of the function in its index, which gives functions of one key one number.
    pub(crate) key: usize,
    kind: Kind,
    copies: Vec<FunctionCopy>,
}

/// A copy of a function in the code.
#[derive(Debug)]
struct FunctionCopy {
    counters: UnitCounters,
    extent: Extent,
    /// The lines that its units belong to: the index of the line, and the units.
    lines: Vec<(u32, LineUnits)>,
    /// The lines that call functions which were inlined: the index of the line, and the copy of the function.
    calls: Vec<(u32, Extent)>,
}

/// The record that has the counters of a copy, and the lanes of its waves.
#[derive(Debug, Clone, Copy)]
struct UnitCounters {
    key: RecordKey,
    lanes: u64,
}

/// Units of a line that follow each other.
#[derive(Debug, Clone)]
struct LineUnits {
    units: Range<u32>,
    /// True if a statement starts at the first unit.
    is_statement: bool,
}

/// The units of a copy.
#[derive(Debug, Clone)]
struct Extent {
    /// The unit that it starts with.
    entry: u32,
    units: Vec<Range<u32>>,
}

/// A function that is being put together: with paths instead of indices.
#[derive(Debug)]
struct Draft {
    name: Arc<str>,
    /// The file and the line that it is declared at, as far as they are known.
    path: Option<Arc<str>>,
    line: Option<u32>,
    copies: Vec<DraftCopy>,
}

#[derive(Debug)]
struct DraftCopy {
    counters: UnitCounters,
    extent: Extent,
    lines: Vec<(SourceLine, LineUnits)>,
    calls: Vec<(SourceLine, Extent)>,
}

/// The functions of a code object, and warnings.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) functions: Vec<ListedFunction>,
    pub(crate) warnings: Vec<Diagnostic>,
    /// The texts of files that stand for code without lines: the names of its functions, one a line.
    pub(crate) texts: Texts,
    /// The lines of its sources as they were when it ran.
    pub(crate) ran_lines: RanLines,
}

/// Functions without lines, as drafts in the file that stands for them.
#[derive(Debug, Default)]
struct WithoutLines {
    drafts: Vec<Draft>,
    text: String,
}

impl WithoutLines {
    /// Adds a function with so many units.
    fn add(&mut self, name: &str, counters: UnitCounters, units: u32) {
        self.text += &format!("{}\n", shown(name));
        self.drafts.push(Draft {
            name: name.into(),
            path: None,
            line: u32::try_from(self.drafts.len() + 1).ok(),
            copies: vec![DraftCopy {
                counters,
                extent: Extent::whole(units),
                lines: Vec::new(),
                calls: Vec::new(),
            }],
        });
    }

    /// Adds the functions to those of the code object with this identity.
    fn finish(mut self, kind: Kind, identity: &str, listed: &mut Listed) {
        if self.drafts.is_empty() {
            return;
        }
        let path: Arc<str> = format!("{WITHOUT_LINES}{identity}").into();
        for draft in &mut self.drafts {
            draft.path = Some(Arc::clone(&path));
        }
        listed
            .functions
            .extend(ListedFunction::from_drafts(kind, self.drafts));
        listed.texts.insert(path, self.text.into_bytes().into());
    }
}

/// A line of a source file.
type SourceLine = (Arc<str>, u32);

impl ListedFunction {
    /// The functions of these drafts. Drafts of one name that are declared at one place are one function.
    fn from_drafts(kind: Kind, drafts: Vec<Draft>) -> Vec<Self> {
        type Key = (Arc<str>, Arc<str>, Option<u32>);
        let mut merged: BTreeMap<Key, Vec<DraftCopy>> = BTreeMap::new();
        for draft in drafts {
            if let Some(path) = draft.main_path() {
                let key = (draft.name, path, draft.line);
                merged.entry(key).or_default().extend(draft.copies);
            }
        }
        let functions = merged.into_iter().map(|((name, path, line), copies)| {
            let lines = copies.iter().flat_map(DraftCopy::all_lines);
            let here = lines.filter(|(file, _)| *file == path);
            let first = here.map(|(_, line)| *line).min();
            let line = line.or(first).unwrap_or(1);
            Self::new(kind, name, path, line, copies)
        });
        functions.collect()
    }

    fn new(kind: Kind, name: Arc<str>, main: Arc<str>, line: u32, copies: Vec<DraftCopy>) -> Self {
        let all = || copies.iter().flat_map(DraftCopy::all_lines);
        let others: BTreeSet<_> = all()
            .map(|(path, _)| path)
            .filter(|text| **text != main)
            .collect();
        let others = others.into_iter().map(Arc::clone);
        let filenames: Vec<_> = [Arc::clone(&main)].into_iter().chain(others).collect();
        let numbers: BTreeMap<_, _> = filenames.iter().map(Arc::clone).zip(0..).collect();
        let listed = |(path, line): &SourceLine| TableLine {
            file: numbers[path],
            line: *line,
        };
        let lines: BTreeSet<_> = all().map(listed).collect();
        let indices: BTreeMap<_, _> = lines.iter().copied().zip(0..).collect();
        let copies = copies.iter().map(|copy| FunctionCopy {
            counters: copy.counters,
            extent: copy.extent.clone(),
            lines: indexed(&copy.lines, |line| indices[&listed(line)]),
            calls: indexed(&copy.calls, |line| indices[&listed(line)]),
        });
        let copies = copies.collect();
        let description = Function {
            name,
            filenames,
            line_table: Some(LineTable {
                start: Place { line, column: 1 },
                lines: lines.into_iter().collect(),
            }),
            ..Function::default()
        };
        Self {
            description: Arc::new(description),
            key: 0,
            kind,
            copies,
        }
    }

    /// Its record with the counts that the profile has of it, if any.
    pub(crate) fn record(&self, counts: &ProfileCounts) -> Record {
        let table = self.description.line_table.as_ref();
        let mut sums = Counts {
            lines: vec![0; table.map_or(0, |table| table.lines.len())],
            ..Counts::default()
        };
        // For each line, the threads that started its statements, and those that executed any unit of it.
        let mut lines: Vec<(u64, u64)> = vec![(0, 0); sums.lines.len()];
        for copy in &self.copies {
            let Some(counters) = copy.counters.words(counts) else {
                continue;
            };
            let calls = self.calls(counters, &copy.extent);
            sums.calls = sums.calls.saturating_add(calls);
            lines.fill((0, 0));
            for (
                line,
                LineUnits {
                    units,
                    is_statement,
                },
            ) in &copy.lines
            {
                let lanes = |unit| self.unit(counters, unit).lanes;
                let (started, executed) = &mut lines[*line as usize];
                if *is_statement {
                    *started = lanes(units.start).max(*started);
                }
                *executed = units.clone().map(lanes).max().unwrap_or(0).max(*executed);
            }
            for (line, inlined) in &copy.calls {
                let calls = self.calls(counters, inlined);
                let (started, executed) = &mut lines[*line as usize];
                (*started, *executed) = (calls.max(*started), calls.max(*executed));
            }
            for (sum, (started, executed)) in sums.lines.iter_mut().zip(&lines) {
                let count = if *started > 0 { started } else { executed };
                *sum = sum.saturating_add(*count);
            }
        }
        Record::new(Arc::clone(&self.description), sums)
    }

    /// Returns whether the profile has counts of it that are not 0.
    pub(crate) fn is_reached(&self, counts: &ProfileCounts) -> bool {
        self.copies.iter().any(|copy| {
            let counters = copy.counters.words(counts);
            counters.is_some_and(|counter| counter.iter().any(|count| *count > 0))
        })
    }

    /// Adds the instructions that were executed of each line to `activities`.
    pub(crate) fn add_activity(&self, counts: &ProfileCounts, activities: &mut Activities) {
        let Some(table) = &self.description.line_table else {
            return;
        };
        for copy in &self.copies {
            let Some(counters) = copy.counters.words(counts) else {
                continue;
            };
            for (line, LineUnits { units, .. }) in &copy.lines {
                for unit in units.clone() {
                    let Executed { waves, lanes } = self.unit(counters, unit);
                    if waves == 0 {
                        continue;
                    }
                    let line = &table.lines[*line as usize];
                    let path = Arc::clone(self.description.path(line.file));
                    let of_path = activities.entry(path).or_default();
                    let activity = of_path.entry(line.line).or_default();
                    *activity = activity.plus(Activity {
                        instructions: waves,
                        lanes,
                        all_lanes: waves.saturating_mul(copy.counters.lanes),
                    });
                }
            }
        }
    }

    /// The number of threads that entered a copy: those that executed its first unit. If the compiler moved that to
    /// where no thread came, those of the unit that fewest threads executed, of all that ran.
    fn calls(&self, counters: &[u64], extent: &Extent) -> u64 {
        let lanes = |unit| self.unit(counters, unit).lanes;
        match lanes(extent.entry) {
            0 => {
                let units = extent.units.iter().cloned().flatten();
                units
                    .map(lanes)
                    .filter(|count| *count > 0)
                    .min()
                    .unwrap_or(0)
            }
            calls => calls,
        }
    }

    /// The counts of a unit. Blocks of PTX have threads, and no waves.
    fn unit(&self, counters: &[u64], unit: u32) -> Executed {
        match self.kind {
            Kind::Trace => at(counters, u64::from(unit) * WORD_BYTES).unwrap_or_default(),
            Kind::Ptx => Executed {
                waves: 0,
                lanes: counters.get(unit as usize).copied().unwrap_or_default(),
            },
        }
    }
}

/// The entries with the index of a line instead of the line.
fn indexed<T: Clone>(
    entries: &[(SourceLine, T)],
    index: impl Fn(&SourceLine) -> u32,
) -> Vec<(u32, T)> {
    let entries = entries.iter();
    entries
        .map(|(line, counter)| (index(line), counter.clone()))
        .collect()
}

impl Extent {
    /// All of so many units.
    fn whole(units: u32) -> Self {
        Self {
            entry: 0,
            units: iter::once(0..units).collect(),
        }
    }
}

impl UnitCounters {
    /// The counters in a profile. `None` if the code never ran.
    fn words(self, counts: &ProfileCounts) -> Option<&[u64]> {
        counts
            .functions
            .get(&self.key)
            .map(|function| &*function.counters)
    }
}

impl DraftCopy {
    /// The lines that it has instructions of, or calls inlined functions on.
    fn all_lines(&self) -> impl Iterator<Item = &SourceLine> {
        let lines = self.lines.iter().map(|(line, _)| line);
        lines.chain(self.calls.iter().map(|(line, _)| line))
    }
}

impl Draft {
    /// The file that it is declared in. If no declaration names one, the file that it has most lines in. `None` if
    /// nothing is known of its source.
    fn main_path(&self) -> Option<Arc<str>> {
        let lines = self.copies.iter().flat_map(DraftCopy::all_lines);
        let mut most: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        lines.for_each(|(path, _)| *most.entry(path).or_default() += 1);
        let most = most.into_iter().max_by_key(|(_, lines)| *lines);
        let most = || most.map(|(path, _)| Arc::clone(path));
        self.path.clone().or_else(most)
    }
}

#[cfg(test)]
mod tests;
