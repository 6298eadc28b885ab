//! An earlier report that a report is compared with inline: its figures of each source, and the lines and functions that
//! ran then or now only.
//!
//! A [`Baseline`] has only figures. A data directory or a report in JSON has lines and functions, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::baseline::Baseline;
use super::baseline_column::Shares;
use super::comparison::{Comparison, FunctionChange, FunctionFate, file_pairs};
use super::line_table::is_without_lines;
use super::view::View;
use crate::support::paths::below;

/// An earlier report.
#[derive(Debug)]
pub(crate) struct Earlier {
    /// The name that the user gave to it.
    pub(crate) name: String,
    /// The day of a baseline.
    pub(crate) date: Option<String>,
    /// True for each column that has earlier figures; the last entry is that of the joined ones.
    known: Vec<bool>,
    /// The figures by the path that the later report has for a source, or of a source that this one lacks.
    files: BTreeMap<String, EarlierShares>,
    /// `None` if the earlier report has only figures.
    comparison: Option<Comparison>,
}

/// The figures of each column, and last those of all joined. `None` if a column had no code.
pub(crate) type EarlierShares = Vec<Option<Shares>>;

/// The lines of a source that ran in one of two reports only.
#[derive(Debug, Default)]
pub(crate) struct TurnedLines {
    pub(crate) newly_missed: BTreeSet<u32>,
    pub(crate) newly_covered: BTreeSet<u32>,
}

impl Earlier {
    /// The figures of a baseline, whose paths are from `root` on, next to those of `now`. Takes the sources that are
    /// `is_wanted`.
    pub(crate) fn from_baseline(
        name: String,
        baseline: &Baseline,
        now: &View,
        root: &Path,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let labels = now.columns.iter().map(|column| &*column.label);
        let labels: Vec<_> = labels.collect();
        let columns = labels.iter().map(|label| baseline.column(label));
        let columns: Vec<_> = columns.chain([baseline.joined(&labels)]).collect();
        let paths = now.paths.iter();
        let paths: BTreeMap<_, _> = paths.map(|path| (below(path, root), &**path)).collect();
        let mut files: BTreeMap<String, EarlierShares> = BTreeMap::new();
        for (index, column) in columns.iter().enumerate() {
            for (path, shares) in column.iter().flat_map(|column| &column.files) {
                let path = paths.get(&**path).map_or_else(
                    || root.join(path).to_string_lossy().into_owned(),
                    |path| (*path).to_owned(),
                );
                if is_wanted(&path) {
                    let shares_of = files.entry(path);
                    shares_of.or_insert_with(|| vec![None; columns.len()])[index] = Some(*shares);
                }
            }
        }
        let dates = columns.iter().flatten().map(|column| column.date.clone());
        Self {
            name,
            date: dates.max(),
            known: columns.iter().map(Option::is_some).collect(),
            files,
            comparison: None,
        }
    }

    /// The figures, lines and functions of an earlier view next to those of `now`.
    pub(crate) fn from_view(name: String, before: &View, now: &View) -> Self {
        let comparison = Comparison::new([name.clone(), String::new()], before, now);
        let column = |label: &str| {
            before
                .columns
                .iter()
                .position(|column| column.label == label)
        };
        let columns = now.columns.iter().map(|shown| column(&shown.label));
        let columns: Vec<_> = columns.collect();
        // Other kinds of counts contain other lines.
        let is_known = columns
            .iter()
            .zip(&now.columns)
            .map(|(column, now)| column.is_some() && comparison.has_comparable_totals(&now.label));
        let mut known: Vec<_> = is_known.collect();
        let are_same = before.columns.len() == now.columns.len();
        known.push(are_same && known.iter().all(|is_known| *is_known));
        let pairs = file_pairs(before, now).into_iter();
        let later: BTreeMap<_, _> = pairs
            .filter_map(|pair| Some((pair.before?, pair.after?)))
            .collect();
        let files = before.rows().map(|(path, row)| {
            let shares = columns.iter().map(|column| {
                let figures = row.columns[(*column)?];
                figures.as_ref().map(Shares::from_figures)
            });
            let joined =
                Some(Shares::from_figures(&row.all)).filter(|shares| *shares != Shares::default());
            let path = later.get(path).copied().unwrap_or(path);
            (path.to_owned(), shares.chain([joined]).collect())
        });
        Self {
            name,
            date: None,
            files: files.collect(),
            known,
            comparison: Some(comparison),
        }
    }

    /// The figures of a source; `None` if it was not there.
    pub(crate) fn file(&self, path: &str) -> Option<&EarlierShares> {
        self.files.get(path)
    }

    /// The sources that `now` lacks.
    pub(crate) fn gone(&self, now: &View) -> impl Iterator<Item = (&str, &EarlierShares)> {
        let is_gone = |path: &str| {
            now.paths
                .binary_search_by(|known| (**known).cmp(path))
                .is_err()
        };
        let files = self.files.iter().map(|(path, shares)| (&**path, shares));
        files.filter(move |(path, _)| is_gone(path) && !is_without_lines(path))
    }

    /// True for each column that has earlier figures; the last entry is that of the joined ones.
    pub(crate) fn known(&self) -> &[bool] {
        &self.known
    }

    /// Returns whether lines are compared.
    pub(crate) fn has_lines(&self) -> bool {
        self.comparison.is_some()
    }

    /// The lines of a source that ran then or now only, for each column of `now`.
    pub(crate) fn lines(&self, path: &str, now: &View) -> Vec<TurnedLines> {
        let columns = now.columns.iter().map(|column| {
            let mut turned = TurnedLines::default();
            let changes = self
                .comparison
                .iter()
                .flat_map(|comparison| &comparison.lines);
            for change in
                changes.filter(|change| change.filename == path && change.arch == column.label)
            {
                turned.newly_missed.extend(&change.newly_missed);
                turned.newly_covered.extend(&change.newly_covered);
            }
            turned
        });
        columns.collect()
    }

    /// The functions that ran then and do not run now, on each column.
    pub(crate) fn lost_functions(&self) -> impl Iterator<Item = &FunctionChange> {
        let functions = self
            .comparison
            .iter()
            .flat_map(|comparison| &comparison.functions);
        functions.filter(|function| function.change == FunctionFate::Lost)
    }
}
