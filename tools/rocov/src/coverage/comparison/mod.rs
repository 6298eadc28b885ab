//! Two reports against each other: what ran before and after.
//!
//! The sources of both need not be the same. A function is known by its symbol; its lines are
//! compared, by their places in it, where its regions begin and end on the same lines of it. Where
//! they do not, the function has changed, and its figures alone are compared.

mod files;
mod function;
mod output;

use super::figures::{Figure, Figures};
use super::report::write_to;
use super::view::{Column, View};
use anyhow::Result;
use files::pairs;
use function::{Compared, Seen, seen};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) use output::Format;

/// Something before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Pair<T> {
    before: T,
    after: T,
}

/// What ran before and after.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    /// What the user calls the two.
    before: String,
    after: String,
    /// The figures of each arch that both have, and of all archs.
    totals: Vec<Totals>,
    /// Archs that one of the two has alone.
    only_before: Vec<String>,
    only_after: Vec<String>,
    /// Files, on an arch, whose figures are not the same.
    files: Vec<FileChange>,
    /// Lines that ran in one and not in the other, by their numbers after.
    lines: Vec<LineChange>,
    functions: Vec<FunctionChange>,
}

#[derive(Debug, Serialize)]
struct Totals {
    name: String,
    lines: Pair<Figure>,
    functions: Pair<Figure>,
    regions: Pair<Figure>,
    branches: Pair<Figure>,
}

#[derive(Debug, Serialize)]
struct FileChange {
    filename: String,
    arch: String,
    /// `None` where the arch has no function of the file.
    lines: Pair<Option<Figure>>,
    /// Whether any of it ran before.
    ran_before: bool,
}

#[derive(Debug, Serialize)]
struct LineChange {
    filename: String,
    arch: String,
    newly_covered: Vec<u32>,
    newly_missed: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct FunctionChange {
    /// Mangled.
    symbol: String,
    /// As the programmer wrote it.
    name: String,
    is_kernel: bool,
    /// Where it starts: after, or before if it is not there any more.
    filename: String,
    line: u32,
    arch: String,
    change: Change,
    lines: Pair<Option<Figure>>,
}

/// What became of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
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

impl Comparison {
    /// Compares two reports by arch; `names` are what the user calls them.
    pub(crate) fn of(names: [&Path; 2], before: &View, after: &View) -> Self {
        let [before_name, after_name] = names.map(|name| name.display().to_string());
        let labels = |view: &View| -> BTreeSet<String> {
            view.columns.iter().map(|it| it.label.clone()).collect()
        };
        let (old, new) = (labels(before), labels(after));
        let mut comparison = Self {
            before: before_name,
            after: after_name,
            totals: totals(before, after),
            only_before: old.difference(&new).cloned().collect(),
            only_after: new.difference(&old).cloned().collect(),
            files: Vec::new(),
            lines: Vec::new(),
            functions: Vec::new(),
        };
        let pairs = pairs(&before.paths, &after.paths);
        for (old, new) in columns(before, after) {
            for pair in &pairs {
                comparison.add(pair, old, new);
            }
        }
        comparison
            .functions
            .sort_by(|a, b| (a.change, &a.filename, a.line).cmp(&(b.change, &b.filename, b.line)));
        comparison
    }

    /// Writes it to the file at `path`, or else to standard output.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(crate) fn write(&self, format: Format, path: Option<&Path>) -> Result<()> {
        write_to(path, |out| output::write(self, format, out))
    }

    /// Adds what became of a file on an arch.
    fn add(&mut self, pair: &Pair<Option<&str>>, old: &Column, new: &Column) {
        let seen_in = |column: &Column, path: Option<&str>| match path {
            Some(path) => seen(column, path),
            None => BTreeMap::new(),
        };
        let functions = Pair {
            before: seen_in(old, pair.before),
            after: seen_in(new, pair.after),
        };
        let Some(filename) = pair.after.or(pair.before) else {
            return;
        };
        let lines = Pair {
            before: lines_of(&functions.before),
            after: lines_of(&functions.after),
        };
        if lines.before != lines.after {
            self.files.push(FileChange {
                filename: filename.to_owned(),
                arch: new.label.clone(),
                lines,
                ran_before: functions.before.values().any(|it| it.calls > 0),
            });
        }
        let mut ran: BTreeMap<u32, Pair<bool>> = BTreeMap::new();
        let symbols: BTreeSet<_> = functions
            .before
            .keys()
            .chain(functions.after.keys())
            .collect();
        for symbol in symbols {
            let both = Pair {
                before: functions.before.get(symbol),
                after: functions.after.get(symbol),
            };
            let compared = Compared::of(both);
            for (line, covered) in compared.lines {
                let sum = ran.entry(line).or_insert(Pair {
                    before: false,
                    after: false,
                });
                sum.before |= covered.before;
                sum.after |= covered.after;
            }
            if let (Some(change), Some(seen)) = (compared.change, both.after.or(both.before)) {
                self.functions.push(FunctionChange {
                    symbol: symbol.clone(),
                    name: crate::demangle::shown(symbol),
                    is_kernel: seen.is_kernel,
                    filename: match both.after {
                        Some(_) => filename,
                        None => pair.before.unwrap_or(filename),
                    }
                    .to_owned(),
                    line: seen.start,
                    arch: new.label.clone(),
                    change,
                    lines: Pair {
                        before: both.before.map(Seen::figure),
                        after: both.after.map(Seen::figure),
                    },
                });
            }
        }
        let which = |is: &dyn Fn(Pair<bool>) -> bool| -> Vec<u32> {
            let lines = ran.iter().filter(|(_, ran)| is(**ran));
            lines.map(|(line, _)| *line).collect()
        };
        let newly_covered = which(&|ran| ran.after && !ran.before);
        let newly_missed = which(&|ran| ran.before && !ran.after);
        if !newly_covered.is_empty() || !newly_missed.is_empty() {
            self.lines.push(LineChange {
                filename: filename.to_owned(),
                arch: new.label.clone(),
                newly_covered,
                newly_missed,
            });
        }
    }
}

/// The columns that both have.
fn columns<'a>(
    before: &'a View,
    after: &'a View,
) -> impl Iterator<Item = (&'a Column, &'a Column)> {
    after.columns.iter().filter_map(|new| {
        let mut columns = before.columns.iter();
        let old = columns.find(|old| old.label == new.label)?;
        Some((old, new))
    })
}

fn totals(before: &View, after: &View) -> Vec<Totals> {
    let of = |name: &str, before: Figures, after: Figures| {
        let pair = |of: fn(&Figures) -> Figure| Pair {
            before: of(&before),
            after: of(&after),
        };
        Totals {
            name: name.to_owned(),
            lines: pair(|it| it.lines),
            functions: pair(|it| it.functions),
            regions: pair(|it| it.regions),
            branches: pair(|it| it.branches),
        }
    };
    let total = |view: &View, label: &str| {
        let mut columns = view.columns.iter();
        let index = columns.position(|column| column.label == label);
        index.and_then(|index| view.table().total.columns[index])
    };
    let mut totals: Vec<_> = columns(before, after)
        .filter_map(|(column, _)| {
            let label = column.label.as_str();
            Some(of(label, total(before, label)?, total(after, label)?))
        })
        .collect();
    if before.columns.len() > 1 || after.columns.len() > 1 {
        let all = |view: &View| view.table().total.all;
        totals.push(of("all", all(before), all(after)));
    }
    totals
}

/// The lines of a file's functions, each line once; `None` without functions.
fn lines_of(functions: &BTreeMap<String, Seen>) -> Option<Figure> {
    let mut lines: BTreeMap<u32, bool> = BTreeMap::new();
    for (line, covered) in functions.values().flat_map(|it| &it.lines) {
        *lines.entry(*line).or_default() |= covered;
    }
    (!functions.is_empty()).then(|| Figure::of(lines.into_values()))
}
