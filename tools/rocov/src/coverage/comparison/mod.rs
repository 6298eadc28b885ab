//! Compares two reports: the coverage before and after.
//!
//! The sources of both need not be the same. A function is known by its symbol; its lines are compared,
//! by their places in it, if its regions begin and end on the same lines of it. If they do not, the
//! function has changed, and only its figures are compared.
//!
//! A coverage mapping and a line table contain different lines of a function. If one of the two describes it before and
//! the other after, only whether it ran is compared. The totals of an arch that has other kinds of counts are not
//! compared. Functions without lines are compared by whether they ran.

mod files;
mod function;
mod pair;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::figures::{Figure, Figures};
use super::line_table::{is_without_lines, place_of};
use super::view::{Column, View};
use crate::profdata::CountKinds;
use crate::support::demangle::shown;
use crate::term::line_ranges::ranges;
use files::pairs;
use function::{Compared, Seen, seen};

pub(crate) use function::FunctionFate;
pub(crate) use pair::Pair;

/// The name of the totals of all archs.
const ALL: &str = "all";

/// The coverage before and after.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    /// The names that the user gave to the two.
    pub(crate) before: String,
    pub(crate) after: String,
    /// The figures of each arch that both have, and of all archs.
    pub(crate) totals: Vec<Totals>,
    /// Archs that only one of the two has.
    pub(crate) only_before: Vec<String>,
    pub(crate) only_after: Vec<String>,
    /// Files, on an arch, whose figures are not the same.
    pub(crate) files: Vec<FileChange>,
    /// Lines that ran in one and not in the other, by their numbers after.
    pub(crate) lines: Vec<LineChange>,
    pub(crate) functions: Vec<FunctionChange>,
    /// Archs that have other kinds of counts after than before.
    pub(crate) other_kinds: Vec<KindChange>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Totals {
    pub(crate) name: String,
    /// The kinds of counts. Other kinds contain other lines.
    pub(crate) kinds: Pair<CountKinds>,
    pub(crate) lines: Pair<Figure>,
    pub(crate) functions: Pair<Figure>,
    pub(crate) regions: Pair<Figure>,
    pub(crate) branches: Pair<Figure>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileChange {
    pub(crate) filename: String,
    pub(crate) arch: String,
    /// `None` if the arch has no function of the file.
    pub(crate) lines: Pair<Option<Figure>>,
    /// True if any of it ran before.
    pub(crate) ran_before: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct LineChange {
    pub(crate) filename: String,
    pub(crate) arch: String,
    pub(crate) newly_covered: Vec<u32>,
    pub(crate) newly_missed: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FunctionChange {
    /// Mangled.
    pub(crate) symbol: String,
    /// The demangled name.
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    /// The file and line where it starts: after, or before if it is not there any more.
    pub(crate) filename: String,
    pub(crate) line: u32,
    pub(crate) arch: String,
    pub(crate) change: FunctionFate,
    pub(crate) lines: Pair<Option<Figure>>,
}

/// The kinds of counts of an arch, if they are not the same, or count not the same functions.
#[derive(Debug, Serialize)]
pub(crate) struct KindChange {
    pub(crate) arch: String,
    pub(crate) kinds: Pair<CountKinds>,
    /// The functions whose lines are not compared: a coverage mapping describes them in one, and a line table in the other.
    pub(crate) not_compared: usize,
    /// The functions that only one of the two contains.
    pub(crate) left_out: usize,
}

impl Comparison {
    /// Compares two reports by arch. The user calls them by `names`.
    pub(crate) fn new(names: [String; 2], before: &View, after: &View) -> Self {
        let [before_name, after_name] = names;
        let labels = |view: &View| -> BTreeSet<String> {
            view.columns
                .iter()
                .map(|column| column.label.clone())
                .collect()
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
            other_kinds: Vec::new(),
        };
        let pairs = file_pairs(before, after).into_iter().map(|pair| Pair {
            before: pair.before.into_iter().collect(),
            after: pair.after.into_iter().collect(),
        });
        let without = Pair {
            before: paths(before).1,
            after: paths(after).1,
        };
        let pairs: Vec<Pair<Vec<&str>>> = pairs.chain([without]).collect();
        for (old, new) in columns(before, after) {
            let mut change = KindChange {
                arch: new.label.clone(),
                kinds: kinds(old, new),
                not_compared: 0,
                left_out: 0,
            };
            for pair in &pairs {
                comparison.add(pair, old, new, &mut change);
            }
            if !change.kinds.is_equal() || change.not_compared > 0 {
                comparison.other_kinds.push(change);
            }
        }
        comparison
            .functions
            .sort_by(|a, b| (a.change, &a.filename, a.line).cmp(&(b.change, &b.filename, b.line)));
        comparison
    }

    /// Adds the changes of a file on an arch, or of all functions without lines, and what is not compared to `kinds`.
    fn add(&mut self, pair: &Pair<Vec<&str>>, old: &Column, new: &Column, kinds: &mut KindChange) {
        let functions = Pair {
            before: seen(old, &pair.before),
            after: seen(new, &pair.after),
        };
        let [old_name, new_name] = [&pair.before, &pair.after].map(|names| names.first().copied());
        let Some(filename) = new_name.or(old_name) else {
            return;
        };
        let lines = Pair {
            before: lines_of(&functions.before),
            after: lines_of(&functions.after),
        };
        let symbols: BTreeSet<_> = functions
            .before
            .keys()
            .chain(functions.after.keys())
            .collect();
        let both = |symbol: &String| Pair {
            before: functions.before.get(symbol),
            after: functions.after.get(symbol),
        };
        let is_other = |symbol: &String| match both(symbol) {
            Pair {
                before: Some(before),
                after: Some(after),
            } => !before.is_comparable(after),
            _ => false,
        };
        let others = symbols.iter().filter(|symbol| is_other(symbol)).count();
        kinds.not_compared += others;
        if others == 0 && lines.before != lines.after {
            self.files.push(FileChange {
                filename: filename.to_owned(),
                arch: new.label.clone(),
                lines,
                ran_before: functions.before.values().any(|function| function.calls > 0),
            });
        }
        let mut ran: BTreeMap<u32, Pair<bool>> = BTreeMap::new();
        for symbol in symbols {
            let both = both(symbol);
            // Each kind has functions of its own: inlined ones, or those that are not used.
            if !kinds.kinds.is_equal() && (both.before.is_none() || both.after.is_none()) {
                kinds.left_out += 1;
                continue;
            }
            let compared = Compared::new(both);
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
                    name: shown(symbol),
                    is_kernel: seen.is_kernel,
                    filename: match both.after {
                        Some(_) => filename,
                        None => old_name.unwrap_or(filename),
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

    /// Returns whether the totals of an arch, or of `all`, are of one kind of counts.
    pub(crate) fn has_comparable_totals(&self, name: &str) -> bool {
        let mut others = self.other_kinds.iter();
        !others.any(|other_kind| other_kind.arch == name || name == ALL)
    }

    /// One line for each thing that ran before, is still there and does not run any more, and for
    /// each arch and file with such things that is not there at all.
    pub(crate) fn losses(&self) -> Vec<String> {
        let archs = self.only_before.iter();
        let archs = archs.map(|arch| format!("{arch}: nothing of it is in {}", self.after));
        let gone = self
            .files
            .iter()
            .filter(|file| file.ran_before && file.lines.after.is_none());
        let files = gone.map(|file| {
            format!(
                "{}: {} ran but is gone: it was removed, or its code object was not \
                 loaded",
                file.arch, file.filename
            )
        });
        let lines = self
            .lines
            .iter()
            .filter(|line| !line.newly_missed.is_empty());
        let lines = lines.map(|line| {
            let ranges = ranges(line.newly_missed.iter().copied()).join(", ");
            format!(
                "{}: {}: lines {ranges} no longer run",
                line.arch, line.filename
            )
        });
        let functions = self
            .functions
            .iter()
            .filter(|function| function.change == FunctionFate::Lost);
        let functions = functions.map(|function| {
            let (what, name) = (function.what(), &function.name);
            let place = place_of(&function.filename, function.line);
            format!("{}: {what} {name} no longer runs{place}", function.arch)
        });
        archs.chain(files).chain(lines).chain(functions).collect()
    }
}

impl FunctionChange {
    /// The word for it.
    pub(crate) fn what(&self) -> &'static str {
        if self.is_kernel { "kernel" } else { "function" }
    }
}

/// The source files, and the sources that stand for functions without lines. The latter have other paths after each build.
fn paths(view: &View) -> (Vec<&str>, Vec<&str>) {
    let paths = view.paths.iter().map(|path| &**path);
    paths.partition(|path| !is_without_lines(path))
}

/// The source files of both, paired.
pub(crate) fn file_pairs<'a>(before: &'a View, after: &'a View) -> Vec<Pair<Option<&'a str>>> {
    pairs(&paths(before).0, &paths(after).0)
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

/// The kinds of counts of an arch.
fn kinds(before: &Column, after: &Column) -> Pair<CountKinds> {
    Pair {
        before: before.kinds.clone(),
        after: after.kinds.clone(),
    }
}

fn totals(before: &View, after: &View) -> Vec<Totals> {
    let of = |name: &str, kinds: Pair<CountKinds>, before: Figures, after: Figures| {
        let pair = |of: fn(&Figures) -> Figure| Pair {
            before: of(&before),
            after: of(&after),
        };
        Totals {
            name: name.to_owned(),
            kinds,
            lines: pair(|figures| figures.lines),
            functions: pair(|figures| figures.functions),
            regions: pair(|figures| figures.regions),
            branches: pair(|figures| figures.branches),
        }
    };
    let total = |view: &View, label: &str| {
        let mut columns = view.columns.iter();
        let index = columns.position(|column| column.label == label);
        index.and_then(|index| view.table().total.columns[index])
    };
    let mut totals: Vec<_> = columns(before, after)
        .filter_map(|(old, new)| {
            let label = new.label.as_str();
            Some(of(
                label,
                kinds(old, new),
                total(before, label)?,
                total(after, label)?,
            ))
        })
        .collect();
    if before.columns.len() > 1 || after.columns.len() > 1 {
        let all = |view: &View| view.table().total.all;
        let kinds_of = |view: &View| -> CountKinds {
            let kinds = view.columns.iter().flat_map(|column| &column.kinds);
            kinds.copied().collect()
        };
        let kinds = Pair {
            before: kinds_of(before),
            after: kinds_of(after),
        };
        totals.push(of(ALL, kinds, all(before), all(after)));
    }
    totals
}

/// The lines of a file's functions, each line once; `None` without functions.
fn lines_of(functions: &BTreeMap<String, Seen>) -> Option<Figure> {
    let mut lines: BTreeMap<u32, bool> = BTreeMap::new();
    for (line, covered) in functions.values().flat_map(|function| &function.lines) {
        *lines.entry(*line).or_default() |= covered;
    }
    (!functions.is_empty()).then(|| Figure::count_all(lines.into_values()))
}
