//! Compares a function before and after a change.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::pair::Pair;
use crate::coverage::figures::Figure;
use crate::coverage::function::{Kind, symbol};
use crate::coverage::function_coverage::FunctionCoverage;
use crate::coverage::view::Column;

/// A function in one report.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The line that it starts on.
    pub(super) start: u32,
    pub(super) is_kernel: bool,
    pub(super) calls: u64,
    /// True if each of its lines with code ran.
    pub(super) lines: BTreeMap<u32, bool>,
    /// The tables by which it ran.
    ran_by: BTreeSet<Description>,
    /// Its regions: first and last line, counted from the start, and kind. A line of a line table has no kind.
    shape: Vec<(u32, u32, Option<Kind>)>,
}

/// The table that lists a function's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Description {
    Mapping,
    LineTable,
}

impl Seen {
    pub(super) fn figure(&self) -> Figure {
        Figure::count_all(self.lines.values().copied())
    }

    /// The tables that list its lines. Each lists other ones.
    fn described_by(&self) -> BTreeSet<Description> {
        let tables = self.shape.iter().map(|(_, _, kind)| match kind {
            Some(_) => Description::Mapping,
            None => Description::LineTable,
        });
        tables.collect()
    }

    /// Returns whether its lines can be compared with those of another: the same tables list both.
    pub(super) fn is_comparable(&self, other: &Self) -> bool {
        let ran = [&self.ran_by, &other.ran_by];
        let is_alike = ran[0] == ran[1] || ran.iter().any(|lines| lines.is_empty());
        is_alike && self.described_by() == other.described_by()
    }
}

/// The functions that a column has of files, by symbol.
pub(super) fn seen(column: &Column, paths: &[&str]) -> BTreeMap<String, Seen> {
    let mut functions: BTreeMap<String, Seen> = BTreeMap::new();
    for record in paths.iter().flat_map(|path| column.defined_in(path)) {
        let function = &record.function;
        let start = function.start().line;
        let seen = functions
            .entry(symbol(&function.name).to_owned())
            .or_insert_with(|| Seen {
                start,
                ..Seen::default()
            });
        seen.is_kernel |= column.kernels.contains(&*function.name);
        seen.calls = seen.calls.saturating_add(record.counts.calls);
        if record.counts.calls > 0 {
            seen.ran_by.insert(match function.line_table {
                Some(_) => Description::LineTable,
                None => Description::Mapping,
            });
        }
        for (line, covered) in FunctionCoverage::from_record(record).lines() {
            *seen.lines.entry(*line).or_default() |= covered;
        }
        let main = function.main_file();
        let regions = function.regions.iter();
        let regions = regions.filter(|region| region.location.file == main);
        seen.shape.extend(regions.map(|region| {
            let span = region.location.span;
            let from_start = |line: u32| line.saturating_sub(start);
            (
                from_start(span.start.line),
                from_start(span.end.line),
                Some(region.kind),
            )
        }));
        let listed = function
            .line_table
            .iter()
            .flat_map(|line_table| &line_table.lines);
        let listed = listed.filter(|line| line.file == main);
        seen.shape.extend(listed.map(|other| {
            let line = other.line.saturating_sub(start);
            (line, line, None)
        }));
        seen.shape.sort_unstable();
    }
    functions
}

/// The result of comparing a function.
pub(super) struct Compared {
    pub(super) change: Option<FunctionFate>,
    /// True if its lines ran, by their numbers after, if they can be compared.
    pub(super) lines: Vec<(u32, Pair<bool>)>,
}

impl Compared {
    pub(super) fn new(function: Pair<Option<&Seen>>) -> Self {
        let alone = |change| Self {
            change,
            lines: Vec::new(),
        };
        let (before, after) = match (function.before, function.after) {
            (Some(before), Some(after)) => (before, after),
            (Some(before), None) => return alone((before.calls > 0).then_some(FunctionFate::Gone)),
            (None, Some(after)) if after.calls > 0 => return alone(Some(FunctionFate::Gained)),
            (None, Some(_)) => return alone(Some(FunctionFate::New)),
            (None, None) => return alone(None),
        };
        let is_comparable = before.is_comparable(after);
        let is_same = is_comparable && before.shape == after.shape;
        let change = match (before.calls > 0, after.calls > 0) {
            (false, true) => Some(FunctionFate::Gained),
            (true, false) => Some(FunctionFate::Lost),
            _ if !is_comparable => None,
            _ if !is_same && before.figure() != after.figure() => Some(FunctionFate::Changed),
            _ => None,
        };
        if !is_same {
            return alone(change);
        }
        let lines = after.lines.iter().filter_map(|(line, ran)| {
            let then = (line - after.start).checked_add(before.start)?;
            let ran = Pair {
                before: *before.lines.get(&then)?,
                after: *ran,
            };
            Some((*line, ran))
        });
        Self {
            change,
            lines: lines.collect(),
        }
    }
}

/// The change of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FunctionFate {
    /// It did not run, or was not there, and runs now.
    Gained,
    /// It ran, and does not run any more.
    Lost,
    /// It ran, and is not there any more.
    Gone,
    /// It was not there, and does not run.
    New,
    /// Its source is not the same: its lines are not compared.
    Changed,
}
