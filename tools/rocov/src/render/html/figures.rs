//! Figures and counts as the pages show them.

use crate::coverage::changed::covered::ChangedSource;
use crate::coverage::figures::{Figure, Figures};
use crate::coverage::file::File;
use crate::coverage::view::{Row, View};
use crate::render::grades::grade;

/// A kind of thing that is counted.
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// The key in classes and names of a page.
    pub(super) key: &'static str,
    of: fn(&Cell) -> Figure,
}

/// All kinds, in the order that they are shown in.
static METRICS: [Metric; 7] = [
    Metric {
        name: "Changed lines",
        key: "changed",
        of: |it| it.changed,
    },
    Metric {
        name: "Lines",
        key: "lines",
        of: |it| it.figures.lines,
    },
    Metric {
        name: "Functions",
        key: "functions",
        of: |it| it.figures.functions,
    },
    Metric {
        name: "Regions",
        key: "regions",
        of: |it| it.figures.regions,
    },
    Metric {
        name: "Branches",
        key: "branches",
        of: |it| it.figures.branches,
    },
    Metric {
        name: "MC/DC",
        key: "mcdc",
        of: |it| it.figures.conditions,
    },
    Metric {
        name: "Kernels",
        key: "kernels",
        of: |it| it.kernels,
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
}

impl Shown {
    /// The cells of a row without figures.
    pub(super) fn none(columns: usize) -> Self {
        Self {
            columns: vec![None; columns],
            all: Cell::default(),
        }
    }

    /// The cells of a file with this row.
    pub(super) fn of(view: &View, row: &Row, file: &File, changed: Option<&ChangedSource>) -> Self {
        let kernels = Kernels::of(view, file);
        let changed = changed.map(|it| it.figures(view)).unwrap_or_default();
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
    }

    /// The kinds of things that there are.
    pub(super) fn metrics(&self) -> Vec<&'static Metric> {
        let has = |metric: &&Metric| (metric.of)(&self.all).total > 0;
        METRICS.iter().filter(has).collect()
    }

    /// The figures of each column, and of all joined if there are several.
    pub(super) fn cells(&self) -> Vec<Option<Cell>> {
        let mut cells = self.columns.clone();
        if cells.len() > 1 {
            cells.push(Some(self.all));
        }
        cells
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
    /// any are changed.
    pub(super) fn classes(&self) -> String {
        let missed = |cell: &Option<Cell>| cell.is_some_and(|it| it.misses_lines());
        let changed = if self.all.changed.total > 0 {
            "changed "
        } else {
            ""
        };
        classes("x", self.columns.iter().map(missed)) + changed
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
    pub(super) fn of(&self, cell: &Option<Cell>) -> Option<Share> {
        Share::of(cell.as_ref().map(self.of)?)
    }
}

impl Share {
    /// The share of a figure; `None` of nothing.
    pub(super) fn of(figure: Figure) -> Option<Self> {
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
    fn of(view: &View, file: &File) -> Self {
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
}

/// The meaning of a count, by the name of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ran,
    Partly,
    Missed,
    /// There is no such code in this column, and there is in another.
    Absent,
    /// There is no code.
    None,
}

impl Count {
    /// Makes the cell of `count`. If it `is_partly` missed, a part of the line did not run.
    pub(super) fn of(count: Option<u64>, is_partly: bool) -> Self {
        let state = match count {
            None => State::Absent,
            Some(0) => State::Missed,
            Some(_) if is_partly => State::Partly,
            Some(_) => State::Ran,
        };
        Self { count, state }
    }

    /// Makes the cell of a line without code.
    pub(super) fn none() -> Self {
        Self {
            count: None,
            state: State::None,
        }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.state {
            State::Ran => "ran",
            State::Partly => "part",
            State::Missed => "miss",
            State::Absent => "absent",
            State::None => "none",
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
        self.count.map(short).unwrap_or_default()
    }

    /// The number, if the text does not have all of it.
    pub(super) fn exact(&self) -> Option<u64> {
        self.count.filter(|count| *count > LONGEST)
    }

    /// The meaning of a count that is more than a number.
    pub(super) fn meaning(&self) -> &'static str {
        match self.state {
            State::Partly => "partly run",
            State::Missed => "not run",
            State::Absent => "no such code here",
            State::Ran | State::None => "",
        }
    }
}

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
            assert_eq!(Count::of(count, false).heat(), expected, "{count:?}");
        }
    }

    #[test]
    fn classes_name_the_columns() {
        assert_eq!(classes("x", [false, false]), "");
        assert_eq!(classes("x", [false, true, true]), "x x1 x2 ");
    }
}
