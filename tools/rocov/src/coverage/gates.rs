//! The limits that a report must reach: least percentages, and kernels that all ran.

use std::collections::BTreeMap;

use super::figures::{Figure, Figures};
use super::function::Place;
use super::line_table::place_of;
use super::llvm_cov::symbol;
use super::view::{Column, View};
use crate::support::demangle::shown;
use crate::term::plural::count;

/// The limits that a report must reach, each on every arch and in all of them joined.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    /// The least percentage of lines.
    pub(crate) lines: Option<f64>,
    /// The least percentage of functions.
    pub(crate) functions: Option<f64>,
    /// The least percentage of regions.
    pub(crate) regions: Option<f64>,
    /// The least percentage of branches.
    pub(crate) branches: Option<f64>,
    /// The least percentage of changed lines.
    pub(crate) changed_lines: Option<f64>,
    /// True if every kernel must have run.
    pub(crate) all_kernels: bool,
    /// The most lines that are excluded.
    pub(crate) excluded_lines: Option<usize>,
}

/// The least percentage of something.
struct Least {
    what: &'static str,
    percent: f64,
    of: Of,
    needs: Needs,
}

/// The part of a code object without which a figure is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// None: the names of functions are there.
    Nothing,
    /// A coverage mapping or a line table.
    Lines,
    /// A coverage mapping.
    Regions,
}

impl Needs {
    /// A line for a column of a report that has none of it, or for all columns.
    fn absent(
        self,
        what: &str,
        label: &str,
        view: &View,
        column: Option<&Column>,
    ) -> Option<String> {
        let (known_by, compile_with) = match self {
            Self::Nothing => return None,
            Self::Lines => (
                "a line table",
                "-gline-tables-only, or nvcc's code with -lineinfo",
            ),
            Self::Regions => ("a coverage mapping", "the flags that `rocov flags` prints"),
        };
        let has_it = |column: &Column| match self {
            Self::Lines => has_lines(view, column),
            _ => column.has_regions(),
        };
        let is_there = match column {
            Some(column) => has_it(column),
            None => view.columns.iter().any(has_it),
        };
        (!is_there).then(|| {
            format!(
                "{label}: {what} are not known, as no code has {known_by}: leave out the gate, or compile with {compile_with}"
            )
        })
    }
}

/// Returns whether the lines of any of a column's code are known.
fn has_lines(view: &View, column: &Column) -> bool {
    let mut paths = view.paths.iter().filter(|path| column.has(path));
    let mut with_lines = view.paths_with_lines();
    paths.next().is_none() || with_lines.any(|path| column.has(path))
}

/// Selects the figure that a percentage is of.
type Of = fn(&Figures) -> Figure;

impl Gates {
    /// Returns whether there is a limit. If there is one, an incomplete report is a failure too.
    pub(crate) fn are_set(&self) -> bool {
        self.all_kernels
            || self.excluded_lines.is_some()
            || self.changed_lines.is_some()
            || self.least().next().is_some()
    }

    /// One line for each thing that was not reached.
    pub(crate) fn broken(&self, view: &View) -> Vec<String> {
        if !self.are_set() {
            return Vec::new();
        }
        if view.paths.is_empty() {
            return vec!["no source file is left to report".to_owned()];
        }
        let mut broken = self.too_low(view);
        if self.all_kernels {
            broken.extend(uncovered_kernels(view));
        }
        let excluded = view.excluded_lines();
        if let Some(most) = self.excluded_lines.filter(|most| excluded > *most) {
            let lines = count(excluded, "line");
            broken.push(format!(
                "all: {lines} excluded, more than {most}: look at them with --show"
            ));
        }
        broken
    }

    /// The least percentages that are set.
    fn least(&self) -> impl Iterator<Item = Least> {
        let all: [(_, _, Of, _); 4] = [
            ("lines", self.lines, |it| it.lines, Needs::Lines),
            (
                "functions",
                self.functions,
                |it| it.functions,
                Needs::Nothing,
            ),
            ("regions", self.regions, |it| it.regions, Needs::Regions),
            ("branches", self.branches, |it| it.branches, Needs::Regions),
        ];
        let set = |(what, percent, of, needs): (_, Option<f64>, _, _)| {
            percent.map(|percent| Least {
                what,
                percent,
                of,
                needs,
            })
        };
        all.into_iter().filter_map(set)
    }

    fn too_low(&self, view: &View) -> Vec<String> {
        let total = &view.table().total;
        let totals = view.each(|index| total.columns[index].unwrap_or_default(), total.all);
        let changed = view.changed.as_ref().map(|changed| changed.totals(view));
        let mut broken = Vec::new();
        for (index, label) in view.labels("all").iter().enumerate() {
            let column = view.columns.get(index);
            for least in self.least() {
                let figure = (least.of)(&totals[index]);
                let low = || below(least.percent, least.what, label, figure);
                let absent = least.needs.absent(least.what, label, view, column);
                broken.extend(absent.or_else(low));
            }
            if let (Some(percent), Some(changed)) = (self.changed_lines, &changed) {
                let what = "changed lines";
                let low = || below(percent, what, label, changed[index]);
                let absent = Needs::Lines.absent(what, label, view, column);
                broken.extend(absent.or_else(low));
            }
        }
        broken
    }
}

/// Returns a line if `figure` is below `least` percent. If there is nothing to cover, nothing is
/// missed.
fn below(least: f64, what: &str, label: &str, figure: Figure) -> Option<String> {
    let percent = figure.percent().filter(|percent| *percent < least)?;
    let percent = less(percent, least);
    Some(format!(
        "{label}: {percent}% of {what} ran ({} of {} did not), less than {least}%",
        figure.missed(),
        figure.total,
    ))
}

/// `percent` with two decimals, and with as many more as show that it is less than `least`.
fn less(percent: f64, least: f64) -> String {
    let shown = |decimals: usize| format!("{percent:.decimals$}");
    let is_less = |shown: &String| shown.parse::<f64>().is_ok_and(|shown| shown < least);
    // Doubles of up to 100 that differ do so within 17 decimals.
    (2..17)
        .map(shown)
        .find(is_less)
        .unwrap_or_else(|| shown(17))
}

/// The kernels in the files shown that did not run, per column.
fn uncovered_kernels(view: &View) -> Vec<String> {
    let mut broken = Vec::new();
    for column in &view.columns {
        for path in &view.paths {
            let mapped = view.mapped(path);
            let mut kernels: BTreeMap<(Place, &str), bool> = BTreeMap::new();
            for record in column.defined_in(path) {
                let function = &record.function;
                if column.kernels.contains(symbol(&function.name)) {
                    *kernels.entry(mapped.key(function)).or_default() |= record.counts.calls > 0;
                }
            }
            let missed = kernels.into_iter().filter(|(_, ran)| !ran);
            broken.extend(missed.map(|((start, name), _)| {
                let (label, name) = (&column.label, shown(name));
                let place = place_of(path, start.line);
                format!("{label}: kernel {name} did not run{place}")
            }));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_that_is_too_low_is_not_shown_as_the_limit() {
        let said = |covered, total, least| {
            let figure = Figure { covered, total };
            below(least, "lines", "all", figure)
        };
        let line = "all: 78.889% of lines ran (19 of 90 did not), less than 78.89%";
        assert_eq!(said(71, 90, 78.89).as_deref(), Some(line));
        let line = "all: 78.88889% of lines ran (19 of 90 did not), less than 78.8889%";
        assert_eq!(said(71, 90, 78.8889).as_deref(), Some(line));
        let line = "all: 78.89% of lines ran (19 of 90 did not), less than 79%";
        assert_eq!(said(71, 90, 79.0).as_deref(), Some(line));
        let line = "all: 99.999% of lines ran (1 of 200000 did not), less than 100%";
        assert_eq!(said(199_999, 200_000, 100.0).as_deref(), Some(line));
        assert_eq!(said(71, 90, 78.88), None);
    }
}
