//! Figures and counts as the pages show them.

use std::cmp::Ordering;
use std::iter;

use crate::coverage::Earlier;
use crate::coverage::baseline_column::Shares;
use crate::coverage::changed::covered::ChangedSource;
use crate::coverage::earlier::EarlierShares;
use crate::coverage::figures::{Figure, Figures, Measure};
use crate::coverage::file::File;
use crate::coverage::view::{Row, View};
use crate::render::grades::grade;

/// A kind of thing that is counted.
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// The key in classes and names of a page.
    pub(super) key: &'static str,
    of: fn(&Cell) -> Figure,
    /// The kind that an earlier report has, too.
    measure: Option<Measure>,
}

/// All kinds, in the order that they are shown in.
static METRICS: [Metric; 7] = [
    Metric {
        name: "Changed lines",
        key: "changed",
        of: |cell| cell.changed,
        measure: None,
    },
    Metric {
        name: "Lines",
        key: "lines",
        of: |cell| cell.figures.lines,
        measure: Some(Measure::Lines),
    },
    Metric {
        name: "Functions",
        key: "functions",
        of: |cell| cell.figures.functions,
        measure: Some(Measure::Functions),
    },
    Metric {
        name: "Regions",
        key: "regions",
        of: |cell| cell.figures.regions,
        measure: Some(Measure::Regions),
    },
    Metric {
        name: "Branches",
        key: "branches",
        of: |cell| cell.figures.branches,
        measure: Some(Measure::Branches),
    },
    Metric {
        name: "MC/DC",
        key: "mcdc",
        of: |cell| cell.figures.conditions,
        measure: None,
    },
    Metric {
        name: "Kernels",
        key: "kernels",
        of: |cell| cell.kernels,
        measure: None,
    },
];

/// The figures of a file, a directory or all files, in one column or in all joined.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    figures: Figures,
    kernels: Figure,
    /// Lines that a change touched.
    changed: Figure,
}

impl Cell {
    pub(super) fn misses_lines(&self) -> bool {
        self.figures.lines.missed() > 0
    }
}

/// The figures in each column.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// `None` if there is no code in a column.
    pub(super) columns: Vec<Option<Cell>>,
    /// The cell of all columns joined.
    pub(super) all: Cell,
    /// The figures of an earlier report for each column, and last for all joined; empty if there is none.
    before: Vec<Before>,
}

/// The figures of an earlier report in a column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Before {
    /// The earlier report does not have the column.
    #[default]
    Unknown,
    /// The column had no such code.
    Absent,
    Known(Shares),
}

impl Before {
    /// Those of a source, for each column.
    fn cells(earlier: &Earlier, file: Option<&EarlierShares>) -> Vec<Self> {
        let known = earlier.known().iter().enumerate();
        let before = known.map(
            |(index, is_known)| match file.and_then(|file| file[index]) {
                _ if !is_known => Self::Unknown,
                None => Self::Absent,
                Some(shares) => Self::Known(shares),
            },
        );
        before.collect()
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => Self::Known(one.plus(&other)),
            (known @ Self::Known(_), _) | (_, known @ Self::Known(_)) => known,
            (Self::Absent, _) | (_, Self::Absent) => Self::Absent,
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }
}

/// The difference of a share to that of an earlier report.
pub(super) struct Difference {
    /// In percentage points with a sign, or `new`.
    pub(super) text: String,
    /// The class of its colour.
    pub(super) class: &'static str,
    /// The earlier share.
    pub(super) before: String,
}

impl Difference {
    /// `None` if the shares are equal.
    fn between(before: Figure, now: Figure) -> Option<Self> {
        let Some(earlier) = before.percent() else {
            return Some(Self {
                text: "new".to_owned(),
                class: "new",
                before: "not there before".to_owned(),
            });
        };
        let points = now.percent()? - earlier;
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        let shares = [
            product(before.covered, now.total),
            product(now.covered, before.total),
        ];
        let (sign, class) = match shares[0].cmp(&shares[1]) {
            Ordering::Less => ("+", "up"),
            Ordering::Equal => return None,
            Ordering::Greater => ("−", "down"),
        };
        Some(Self {
            text: format!("{sign}{:.2}", points.abs()),
            class,
            before: format!("{} before", before.share_text()),
        })
    }
}

impl Shown {
    /// The cells of a row without figures.
    pub(super) fn none(columns: usize) -> Self {
        Self {
            columns: vec![None; columns],
            all: Cell::default(),
            before: Vec::new(),
        }
    }

    /// The cells of a file with this row.
    pub(super) fn new(
        view: &View,
        earlier: Option<&Earlier>,
        path: &str,
        row: &Row,
        file: &File,
        changed: Option<&ChangedSource>,
    ) -> Self {
        let before = earlier.map(|earlier| Before::cells(earlier, earlier.file(path)));
        let kernels = Kernels::new(view, file);
        let changed = changed
            .map(|source| source.figures(view))
            .unwrap_or_default();
        let cell = |index: usize| {
            Some(Cell {
                figures: row.columns[index]?,
                kernels: kernels.columns[index],
                changed: changed.get(index).copied().unwrap_or_default(),
            })
        };
        Self {
            columns: (0..row.columns.len()).map(cell).collect(),
            all: Cell {
                figures: row.all,
                kernels: kernels.all,
                changed: changed.last().copied().unwrap_or_default(),
            },
            before: before.unwrap_or_default(),
        }
    }

    /// Cells without code of a source that only an earlier report has.
    pub(super) fn gone(earlier: &Earlier, file: &EarlierShares) -> Self {
        Self {
            before: Before::cells(earlier, Some(file)),
            ..Self::none(file.len() - 1)
        }
    }

    /// Adds those of another file.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |sum: &mut Cell, more: &Cell| {
            sum.figures = sum.figures.plus(&more.figures);
            sum.kernels = sum.kernels.plus(more.kernels);
            sum.changed = sum.changed.plus(more.changed);
        };
        add(&mut self.all, &other.all);
        for (sum, more) in self.columns.iter_mut().zip(&other.columns) {
            if let Some(more) = more {
                add(sum.get_or_insert_default(), more);
            }
        }
        if self.before.is_empty() {
            self.before = vec![Before::Unknown; other.before.len()];
        }
        for (sum, more) in self.before.iter_mut().zip(&other.before) {
            *sum = sum.plus(*more);
        }
    }

    /// The kinds of things that there are.
    pub(super) fn metrics(&self) -> Vec<&'static Metric> {
        let has = |metric: &&Metric| (metric.of)(&self.all).total > 0;
        METRICS.iter().filter(has).collect()
    }

    /// The figures of each column, and of all joined if there are several, each with the earlier ones.
    pub(super) fn cells(&self) -> Vec<(Option<Cell>, Before)> {
        let mut cells = self.columns.clone();
        if cells.len() > 1 {
            cells.push(Some(self.all));
        }
        let before = self.before.iter().copied();
        let before = before.chain(iter::repeat(Before::Unknown));
        cells.into_iter().zip(before).collect()
    }

    /// Returns whether a lower share of the lines ran than before, in any column.
    pub(super) fn is_worse(&self) -> bool {
        let cells = self.cells();
        let mut lines = cells
            .iter()
            .map(|(cell, before)| METRICS[1].difference(cell, *before));
        lines.any(|difference| difference.is_some_and(|shown| shown.class == "down"))
    }

    /// The lines of all columns joined.
    pub(super) fn lines(&self) -> Figure {
        self.all.figures.lines
    }

    /// Returns whether nothing is missed, in any column.
    pub(super) fn is_whole(&self) -> bool {
        let is_whole = |cell: &Cell| METRICS.iter().all(|metric| (metric.of)(cell).missed() == 0);
        self.columns
            .iter()
            .flatten()
            .chain([&self.all])
            .all(is_whole)
    }

    /// Classes that say in which columns lines are missed, `x` and `x1` for the second, and whether
    /// any are changed; and `worse` if fewer ran than before.
    pub(super) fn classes(&self) -> String {
        let missed = |cell: &Option<Cell>| cell.is_some_and(|cell| cell.misses_lines());
        let changed = if self.all.changed.total > 0 {
            "changed "
        } else {
            ""
        };
        let worse = if self.is_worse() { "worse " } else { "" };
        classes("x", self.columns.iter().map(missed)) + changed + worse
    }
}

/// `prefix` if any column has it, and `prefix` with the number of each column that has it.
pub(super) fn classes(prefix: &str, columns: impl IntoIterator<Item = bool>) -> String {
    let mut classes = String::new();
    for (index, _) in columns.into_iter().enumerate().filter(|(_, is_so)| *is_so) {
        if classes.is_empty() {
            classes += &format!("{prefix} ");
        }
        classes += &format!("{prefix}{index} ");
    }
    classes
}

impl Metric {
    /// One figure of a cell; `None` of nothing.
    pub(super) fn share(&self, cell: &Option<Cell>) -> Option<Share> {
        Share::new(cell.as_ref().map(self.of)?)
    }

    /// The difference of one figure of a cell to the earlier one; `None` if there is none.
    pub(super) fn difference(&self, cell: &Option<Cell>, before: Before) -> Option<Difference> {
        let measure = self.measure?;
        let now = cell.as_ref().map(self.of)?;
        now.percent()?;
        match before {
            Before::Unknown => None,
            Before::Absent => Difference::between(Figure::default(), now),
            Before::Known(shares) => Difference::between(shares.figure(measure), now),
        }
    }
}

impl Share {
    /// The share of a figure; `None` of nothing.
    pub(super) fn new(figure: Figure) -> Option<Self> {
        let percent = figure.percent()?;
        Some(Self {
            covered: figure.covered,
            total: figure.total,
            percent: format!("{percent:.2}"),
            grade: grade(percent),
        })
    }
}

/// The share of something that ran.
pub(super) struct Share {
    pub(super) covered: u64,
    pub(super) total: u64,
    pub(super) percent: String,
    /// The class of its colour.
    pub(super) grade: &'static str,
}

/// The number of kernels of a file that ran.
struct Kernels {
    columns: Vec<Figure>,
    all: Figure,
}

impl Kernels {
    fn new(view: &View, file: &File) -> Self {
        let mut kernels = Self {
            columns: vec![Figure::default(); view.columns.len()],
            all: Figure::default(),
        };
        for function in &file.functions {
            let mut ran_anywhere = None;
            for (index, column) in view.columns.iter().enumerate() {
                if let (Some(calls), true) = (
                    function.calls[index],
                    column.kernels.contains(&function.name),
                ) {
                    kernels.columns[index].count(calls > 0);
                    ran_anywhere = ran_anywhere.max(Some(calls > 0));
                }
            }
            if let Some(ran) = ran_anywhere {
                kernels.all.count(ran);
            }
        }
        kernels
    }
}

/// A count of one column.
pub(super) struct Count {
    /// `None` if it is not there.
    pub(super) count: Option<u64>,
    pub(super) state: State,
    /// True if it ran in an earlier report and does not now, or the other way round.
    pub(super) has_turned: bool,
}

/// The meaning of a count, by the name of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ran,
    Partly,
    Missed,
    /// There is no such code in this column, and there is in another.
    Absent,
    /// The code is left out.
    Excluded,
    /// There is no code.
    None,
}

impl Count {
    /// Makes the cell of `count`. If it `is_partly` missed, a part of the line did not run.
    pub(super) fn new(count: Option<u64>, is_partly: bool) -> Self {
        let state = match count {
            None => State::Absent,
            Some(0) => State::Missed,
            Some(_) if is_partly => State::Partly,
            Some(_) => State::Ran,
        };
        Self {
            count,
            state,
            has_turned: false,
        }
    }

    /// The cell with a mark, if an earlier report has it otherwise.
    pub(super) fn turned_if(self, has_turned: bool) -> Self {
        Self { has_turned, ..self }
    }

    /// Makes the cell of a line without code.
    pub(super) fn none() -> Self {
        Self {
            count: None,
            state: State::None,
            has_turned: false,
        }
    }

    /// The cell of code that is left out if it `is_excluded`, unless it has a count.
    pub(super) fn excluded_if(mut self, is_excluded: bool) -> Self {
        if is_excluded && self.count.is_none() {
            self.state = State::Excluded;
        }
        self
    }

    pub(super) fn class(&self) -> &'static str {
        match self.state {
            State::Ran => "ran",
            State::Partly => "part",
            State::Missed => "miss",
            State::Absent => "absent",
            State::Excluded => "excluded",
            State::None => "none",
        }
    }

    /// The class of a count that an earlier report has otherwise, after a space.
    pub(super) fn turned(&self) -> &'static str {
        match self.state {
            _ if !self.has_turned => "",
            State::Missed => " lost",
            _ => " won",
        }
    }

    /// The class of its power of ten, after a space; empty if it did not run.
    pub(super) fn heat(&self) -> &'static str {
        const HEATS: [&str; 7] = [" h0", " h1", " h2", " h3", " h4", " h5", " h6"];
        match (self.state, self.count.and_then(u64::checked_ilog10)) {
            (State::Ran | State::Partly, Some(power)) => {
                HEATS[HEATS.len().min(power as usize + 1) - 1]
            }
            _ => "",
        }
    }

    /// The text; empty if there is none.
    pub(super) fn short(&self) -> String {
        match self.state {
            State::Excluded => EXCLUDED.to_owned(),
            _ => self.count.map(short).unwrap_or_default(),
        }
    }

    /// The number, if the text does not have all of it.
    pub(super) fn exact(&self) -> Option<u64> {
        self.count.filter(|count| *count > LONGEST)
    }

    /// The meaning of a count that is more than a number.
    pub(super) fn meaning(&self) -> &'static str {
        match self.state {
            State::Missed if self.has_turned => "not run, but ran before",
            State::Ran if self.has_turned => "did not run before",
            State::Partly if self.has_turned => "partly run, and did not run before",
            State::Partly => "partly run",
            State::Missed => "not run",
            State::Absent => "no such code here",
            State::Excluded => "excluded",
            State::Ran | State::None => "",
        }
    }
}

/// The text of a cell of code that is left out.
const EXCLUDED: &str = "–";
/// The largest number that is shown as it is.
const LONGEST: u64 = 99_999;

/// A number that can be read at a glance: exact up to [`LONGEST`], then three digits of it.
fn short(number: u64) -> String {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    if number <= LONGEST {
        return number.to_string();
    }
    let (mut whole, mut rest, mut unit) = (number, 0, 0);
    while whole >= 1000 {
        (whole, rest, unit) = (whole / 1000, whole % 1000, unit + 1);
    }
    let unit = UNITS[unit];
    match whole {
        100.. => format!("{whole}{unit}"),
        10.. => format!("{whole}.{}{unit}", rest / 100),
        _ => format!("{whole}.{:02}{unit}", rest / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_shortened_and_never_made_larger() {
        for (number, expected) in [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100k"),
            (999_999, "999k"),
            (1_239_999, "1.23M"),
            (12_399_999, "12.3M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(short(number), expected);
        }
    }

    #[test]
    fn grades_are_of_exact_shares() {
        for (percent, expected) in [
            (100.0, "high"),
            (90.0, "high"),
            // Shown as 90.00.
            (89.996, "medium"),
            (75.0, "medium"),
            (74.996, "low"),
            (0.0, "low"),
        ] {
            assert_eq!(grade(percent), expected, "{percent}");
        }
    }

    #[test]
    fn the_heat_of_a_count_is_its_power_of_ten() {
        for (count, expected) in [
            (None, ""),
            (Some(0), ""),
            (Some(1), " h0"),
            (Some(9), " h0"),
            (Some(10), " h1"),
            (Some(999_999), " h5"),
            (Some(1_000_000), " h6"),
            (Some(u64::MAX), " h6"),
        ] {
            assert_eq!(Count::new(count, false).heat(), expected, "{count:?}");
        }
    }

    #[test]
    fn classes_name_the_columns() {
        assert_eq!(classes("x", [false, false]), "");
        assert_eq!(classes("x", [false, true, true]), "x x1 x2 ");
    }
}
