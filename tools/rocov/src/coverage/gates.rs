//! The limits that a report must reach: least percentages, and kernels that all ran.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use rocov::diagnostic;
use rocov::support::diagnostic::Diagnostic;

use super::figures::{Figure, Figures, Measure};
use super::function::{Place, symbol};
use super::line_table::place_of;
use super::part::Part;
use super::selection::{SourceGlobs, has_wildcard};
use super::view::{Column, Row, View};
use crate::support::demangle::shown;
use crate::support::paths::{below, here};
use crate::term::line_ranges::ranges;
use crate::term::plural::count;

/// The number of places that a message about a limit names.
const NAMED: usize = 5;

/// The limits that a report must reach, each on every arch and in all of them joined.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    /// The limits of figures.
    pub(crate) limits: Vec<Limit>,
    /// The least percentage of changed lines.
    pub(crate) changed_lines: Option<f64>,
    /// True if every kernel must have run.
    pub(crate) all_kernels: bool,
    /// The most lines that are excluded.
    pub(crate) excluded_lines: Option<usize>,
    /// True if a baseline must be reached.
    pub(crate) has_baseline: bool,
}

/// A limit of one kind of figure.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) measure: Measure,
    pub(crate) bound: Bound,
    /// The sources that it is of; `None` for all.
    pub(crate) of: Option<LimitedSources>,
}

/// The bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// The least percentage.
    LeastPercent(f64),
    /// The most things that did not run.
    MostMissed(u64),
}

/// The sources that a limit is of.
#[derive(Debug, Clone)]
pub(crate) struct LimitedSources {
    /// The word that the user gave: the name of a component, a source, a folder, or a glob.
    pub(crate) word: String,
    globs: SourceGlobs,
}

impl LimitedSources {
    /// The component of this name, or else the sources in the folder or of the name `word`, or each that matches it.
    ///
    /// # Errors
    ///
    /// Fails if it is not a glob.
    pub(crate) fn new(word: &str) -> Result<Self> {
        Ok(Self {
            word: word.to_owned(),
            globs: SourceGlobs::new(&[word.to_owned()])?,
        })
    }

    /// The figures that are limited: those of a component, of a folder, or of each file that matches.
    fn scopes(&self, view: &View) -> Vec<Scope> {
        let mut components = view.components.iter();
        if let Some(part) = components.find(|part| part.name == self.word) {
            return Vec::from_iter(Scope::from_part(part, view));
        }
        let is_wanted = |path: &str| self.globs.have(path);
        if !has_wildcard(&self.word) {
            let paths: Vec<_> = view
                .paths
                .iter()
                .filter(|path| is_wanted(path))
                .cloned()
                .collect();
            let has_some = !paths.is_empty();
            let scope = || Scope::new(Some(&self.word), paths, &view.sum(is_wanted), view);
            return Vec::from_iter(has_some.then(scope));
        }
        let here = here();
        let rows = view.rows().filter(|(path, _)| is_wanted(path));
        rows.map(|(path, row)| {
            let paths = vec![Arc::from(path)];
            Scope::new(Some(&below(path, &here)), paths, row, view)
        })
        .collect()
    }
}

/// Figures that a limit is of: in each column, and in all if there are several.
struct Scope {
    /// The place of the sources; `None` for all.
    place: Option<String>,
    /// The sources; none if code of a component is of others, too.
    paths: Vec<Arc<str>>,
    figures: Vec<Figures>,
}

impl Scope {
    fn new(place: Option<&str>, paths: Vec<Arc<str>>, row: &Row, view: &View) -> Self {
        Self {
            place: place.map(str::to_owned),
            paths,
            figures: view.each(|index| row.columns[index].unwrap_or_default(), row.all),
        }
    }

    /// The figures of a component; `None` if nothing of it is reported.
    fn from_part(part: &Part, view: &View) -> Option<Self> {
        let figures = |index: usize| {
            let label = &view.columns[index].label;
            let column = part.columns.iter().find(|column| column.label == *label);
            column.map(|column| column.figures).unwrap_or_default()
        };
        (!part.columns.is_empty()).then(|| Self {
            place: Some(part.name.clone()),
            paths: Vec::new(),
            figures: view.each(figures, part.all.unwrap_or_default()),
        })
    }

    /// The first places that did not run in a column, or in all of them, as the end of a message.
    fn missed(&self, measure: Measure, view: &View, column: Option<usize>) -> String {
        let is_missed = |counts: &[Option<u64>]| match column {
            Some(column) => counts[column] == Some(0),
            None => {
                counts.iter().any(Option::is_some)
                    && counts.iter().flatten().all(|count| *count == 0)
            }
        };
        let here = here();
        let mut places = self.paths.iter().flat_map(|path| {
            let file = view.file(path);
            let lines = match measure {
                Measure::Lines => file.lines,
                Measure::Functions => file.calls(),
                Measure::Regions | Measure::Branches => Vec::new(),
            };
            let missed = lines.iter().filter(|line| is_missed(&line.counts));
            let missed = ranges(missed.map(|line| line.number));
            let path = below(path, &here).into_owned();
            missed
                .into_iter()
                .map(move |lines| format!("{path}:{lines}"))
        });
        let first: Vec<_> = places.by_ref().take(NAMED).collect();
        let more = if places.next().is_some() { ", ..." } else { "" };
        match first.is_empty() {
            true => String::new(),
            false => format!(": {}{more}", first.join(", ")),
        }
    }

    /// The name of the things in it, such as `lines in src`.
    fn name(&self, measure: Measure) -> String {
        match &self.place {
            Some(place) => format!("{} in {place}", measure.name()),
            None => measure.name().to_owned(),
        }
    }
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
    /// The part without which figures of this kind are not known.
    fn new(measure: Measure) -> Self {
        match measure {
            Measure::Lines => Self::Lines,
            Measure::Functions => Self::Nothing,
            Measure::Regions | Measure::Branches => Self::Regions,
        }
    }

    /// A line for a column of a report that has none of it, or for all columns.
    fn absent(
        self,
        what: &str,
        label: &str,
        view: &View,
        column: Option<&Column>,
    ) -> Option<Diagnostic> {
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
            diagnostic!(
                "{label}: {what} are not known, because no code has {known_by}";
                "leave out the gate, or compile with {compile_with}"
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

impl Gates {
    /// Returns whether there is a limit. If there is one, an incomplete report is a failure too.
    pub(crate) fn are_set(&self) -> bool {
        self.all_kernels
            || self.excluded_lines.is_some()
            || self.has_baseline
            || self.changed_lines.is_some()
            || !self.limits.is_empty()
    }

    /// One line for each thing that was not reached.
    pub(crate) fn broken(&self, view: &View) -> Vec<Diagnostic> {
        if !self.are_set() {
            return Vec::new();
        }
        if view.paths.is_empty() {
            return vec![diagnostic!(
                "no source file is left to report";
                "check --include, --exclude, --exclude-function, --exclude-line and --arch"
            )];
        }
        let mut broken = self.beyond(view);
        if self.all_kernels {
            broken.extend(uncovered_kernels(view));
            broken.extend(uncovered_archs(view));
        }
        let excluded = view.excluded_lines();
        if let Some(most) = self.excluded_lines.filter(|most| excluded > *most) {
            let lines = count(excluded, "line");
            broken.push(diagnostic!(
                "all: {lines} excluded, more than {most}"; "look at the reasons with --show-excluded"
            ));
        }
        broken
    }

    /// One line for each figure that is beyond a limit, and for each limit that is of nothing.
    fn beyond(&self, view: &View) -> Vec<Diagnostic> {
        let mut broken = Vec::new();
        let mut limited = Vec::new();
        for limit in &self.limits {
            let scopes = match &limit.of {
                Some(sources) => sources.scopes(view),
                None => vec![Scope::new(
                    None,
                    view.paths.clone(),
                    &view.table().total,
                    view,
                )],
            };
            // A component without sources has its own line.
            let is_component = |word: &str| view.components.iter().any(|part| part.name == word);
            if let (Some(sources), true) = (&limit.of, scopes.is_empty())
                && !is_component(&sources.word)
            {
                broken.push(diagnostic!(
                    "the report contains no source of {}", sources.word;
                    "name another component, source, folder or glob"
                ));
            }
            limited.extend(scopes.into_iter().map(|scope| (limit, scope)));
        }
        broken.dedup();
        let changed = view.changed.as_ref().map(|changed| changed.totals(view));
        for (index, label) in view.labels("all").iter().enumerate() {
            let column = view.columns.get(index);
            for (limit, scope) in &limited {
                let measure = limit.measure;
                let name = scope.name(measure);
                let figure = measure.figure(&scope.figures[index]);
                let index = column.map(|_| index);
                let places = || scope.missed(measure, view, index);
                let beyond = || limit.bound.broken(&name, label, figure, places);
                let absent = Needs::new(measure).absent(&name, label, view, column);
                broken.extend(absent.or_else(beyond));
            }
            if let (Some(percent), Some(changed)) = (self.changed_lines, &changed) {
                let what = "changed lines";
                let low = || below_percent(percent, what, label, changed[index]);
                let absent = Needs::Lines.absent(what, label, view, column);
                broken.extend(absent.or_else(low));
            }
        }
        broken
    }
}

impl Bound {
    /// Returns a line if a figure is beyond it.
    fn broken(
        self,
        what: &str,
        label: &str,
        figure: Figure,
        places: impl FnOnce() -> String,
    ) -> Option<Diagnostic> {
        match self {
            Self::LeastPercent(percent) => below_percent(percent, what, label, figure),
            Self::MostMissed(most) => (figure.missed() > most).then(|| {
                let (missed, total) = (figure.missed(), figure.total);
                let places = places();
                Diagnostic::without_step(format!(
                    "{label}: {missed} of {total} {what} did not run, more than {most}{places}"
                ))
            }),
        }
    }
}

/// Returns a line if `figure` is below `least` percent. If there is nothing to cover, nothing is
/// missed.
fn below_percent(least: f64, what: &str, label: &str, figure: Figure) -> Option<Diagnostic> {
    let percent = figure.percent().filter(|percent| *percent < least)?;
    let percent = less(percent, least);
    Some(Diagnostic::without_step(format!(
        "{label}: {percent}% of {what} ran ({} of {} did not run), less than {least}%",
        figure.missed(),
        figure.total,
    )))
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
fn uncovered_kernels(view: &View) -> Vec<Diagnostic> {
    let columns = view.columns.iter();
    columns
        .flat_map(|column| uncovered_in(view, column))
        .collect()
}

/// The kernels for archs that nothing ran on, except those whose figures are carried forward; and a line for each of
/// these archs.
fn uncovered_archs(view: &View) -> Vec<Diagnostic> {
    let lines = view.idle_columns().flat_map(|(other, column)| {
        let mut lines = uncovered_in(other, column);
        if !lines.is_empty() {
            lines.push(diagnostic!(
                "{}: nothing ran on it", column.label;
                "run the programs on it, or use --arch to name the archs that code ran on"
            ));
        }
        lines
    });
    lines.collect()
}

/// The kernels in the files shown that did not run in a column.
fn uncovered_in(view: &View, column: &Column) -> Vec<Diagnostic> {
    let mut broken = Vec::new();
    for path in &view.paths {
        let mapped = view.mapped(path);
        let mut kernels: BTreeMap<(Place, &str), bool> = BTreeMap::new();
        for record in column.entries(path) {
            let function = &record.function;
            if column.kernels.contains(symbol(&function.name)) {
                *kernels.entry(mapped.key(function)).or_default() |= record.counts.calls > 0;
            }
        }
        let missed = kernels.into_iter().filter(|(_, ran)| !ran);
        broken.extend(missed.map(|((start, name), _)| {
            let (label, name) = (&column.label, shown(name));
            let place = place_of(path, start.line);
            Diagnostic::without_step(format!("{label}: kernel {name} did not run{place}"))
        }));
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
            below_percent(least, "lines", "all", figure).map(|message| message.to_string())
        };
        let line = "all: 78.889% of lines ran (19 of 90 did not run), less than 78.89%";
        assert_eq!(said(71, 90, 78.89).as_deref(), Some(line));
        let line = "all: 78.88889% of lines ran (19 of 90 did not run), less than 78.8889%";
        assert_eq!(said(71, 90, 78.8889).as_deref(), Some(line));
        let line = "all: 78.89% of lines ran (19 of 90 did not run), less than 79%";
        assert_eq!(said(71, 90, 79.0).as_deref(), Some(line));
        let line = "all: 99.999% of lines ran (1 of 200000 did not run), less than 100%";
        assert_eq!(said(199_999, 200_000, 100.0).as_deref(), Some(line));
        assert_eq!(said(71, 90, 78.88), None);
    }
}
