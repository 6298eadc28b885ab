//! The table of `llvm-cov report`, for each column and for all of them joined; and the lines that only
//! some archs ran.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};

use super::{MissingLines, breakdown, changed, excluded, uniformity};
use crate::coverage::figures::{Figure, Figures, Measure};
use crate::coverage::file::Line;
use crate::coverage::view::View;
use crate::support::paths::{below, common};
use crate::support::printable::printable;
use crate::term::line_ranges::ranges;
use crate::term::lines::Lines;

/// The headings of columns, in the order of llvm-cov.
const HEADINGS: [&str; 13] = [
    "Filename",
    "Regions",
    "Missed",
    "Cover",
    "Functions",
    "Missed",
    "Executed",
    "Lines",
    "Missed",
    "Cover",
    "Branches",
    "Missed",
    "Cover",
];
/// The heading of the lines that did not run.
const MISSING_HEADING: &str = "Missing";
/// The headings for MC/DC, if there is any.
const CONDITION_HEADINGS: [&str; 3] = ["MC/DC", "Missed", "Cover"];

pub(super) fn write(
    view: &View,
    headings: &BTreeMap<String, Vec<String>>,
    is_colored: bool,
    missing: MissingLines,
    out: &mut dyn Write,
) -> io::Result<()> {
    let out = &mut Lines::new(out);
    let total = &view.table().total;
    let base = common(view.paths_with_lines().map(|path| &**path));
    let uncovered = match missing.in_rows || missing.at_end {
        true => Uncovered::of(view),
        false => Uncovered::default(),
    };
    let table_row = |path: &str, figures: Figures, count: &dyn Fn(&Line) -> Option<u64>| TableRow {
        name: below(path, &base).into_owned(),
        figures,
        missing: missing.in_rows.then(|| uncovered.missed(path, count)),
    };
    for (index, column) in view.columns.iter().enumerate() {
        if index > 0 {
            out.gap()?;
        }
        match headings.get(&column.label) {
            Some(heading) => {
                heading.iter().try_for_each(|line| out.line(line))?;
            }
            None => out.line(&column.label)?,
        }
        out.gap()?;
        let rows = view.rows().filter_map(|(path, row)| {
            let figures = row.columns[index].filter(|it| it.functions.total > 0)?;
            Some(table_row(path, figures, &|line: &Line| line.counts[index]))
        });
        let total = total.columns[index].unwrap_or_default();
        write_table(rows.collect(), total, is_colored, out)?;
    }
    if view.columns.len() > 1 {
        let labels: Vec<_> = view.columns.iter().map(|it| it.label.as_str()).collect();
        out.gap()?;
        out.line(format_args!("all: {}", labels.join(", ")))?;
        out.gap()?;
        let rows = view.rows().map(|(path, row)| (path, row.all));
        let rows = rows.filter(|(_, figures)| figures.functions.total > 0);
        let joined = |line: &Line| view.joined(&line.counts);
        let rows = rows.map(|(path, figures)| table_row(path, figures, &joined));
        write_table(rows.collect(), total.all, is_colored, out)?;
    }
    if missing.at_end {
        write_missing(view, &uncovered, &base, out)?;
    }
    if view.columns.len() > 1 {
        write_differences(view, &base, out)?;
    }
    let carried = view.carried.iter().map(|it| {
        let shares = Measure::ALL.map(|measure| {
            let share = it.column.total.figure(measure).share_text();
            format!("{} {share}", measure.name())
        });
        let (label, age, date) = (&it.label, it.age(), &it.column.date);
        format!("  {label}, {age} ({date}): {}", shares.join(", "))
    });
    out.section("Carried forward:", carried)?;
    if let Some(excluded) = excluded(view) {
        out.gap()?;
        out.line(format_args!("excluded: {excluded} (--show marks them)"))?;
    }
    uniformity::write_text(view, &base, out)?;
    breakdown::write_text(view, out)?;
    if let Some(changed) = &view.changed {
        changed::write_text(view, changed, out)?;
    }
    Ok(())
}

/// The lines with code of each file, for the names of those that did not run.
#[derive(Default)]
struct Uncovered<'a>(BTreeMap<&'a str, Vec<Line>>);

impl<'a> Uncovered<'a> {
    fn of(view: &'a View) -> Self {
        let files = view.paths.iter();
        Self(files.map(|path| (&**path, view.file(path).lines)).collect())
    }

    /// The ranges of lines of a file that have this `count` and did not run.
    fn missed(&self, path: &str, count: &dyn Fn(&Line) -> Option<u64>) -> String {
        let lines = self.0.get(path).into_iter().flatten();
        let missed = lines.filter(|line| count(line) == Some(0));
        ranges(missed.map(|line| line.number)).join(", ")
    }
}

/// A row of the table.
struct TableRow {
    name: String,
    figures: Figures,
    /// The lines that did not run, if the table names them.
    missing: Option<String>,
}

fn write_table(
    mut rows: Vec<TableRow>,
    total: Figures,
    is_colored: bool,
    out: &mut Lines<'_>,
) -> io::Result<()> {
    let names_missing = rows.iter().any(|row| row.missing.is_some());
    rows.push(TableRow {
        name: "TOTAL".to_owned(),
        figures: total,
        missing: None,
    });
    let has_conditions = total.conditions.total > 0;
    let mut lines = vec![HEADINGS.map(str::to_owned).to_vec()];
    if has_conditions {
        lines[0].extend(CONDITION_HEADINGS.map(str::to_owned));
    }
    let mut missing = vec![names_missing.then(|| MISSING_HEADING.to_owned())];
    for row in rows {
        let TableRow {
            name, figures: it, ..
        } = row;
        missing.push(row.missing.filter(|lines| !lines.is_empty()));
        let mut cells = vec![printable(&name).into_owned()];
        // Line tables tell no regions and branches.
        let known =
            |figure: Figure| (it.regions.total > 0 || it.functions.total == 0).then_some(figure);
        let of_lines = (it.lines.total > 0 || it.functions.total == 0).then_some(it.lines);
        for figure in [
            known(it.regions),
            Some(it.functions),
            of_lines,
            known(it.branches),
        ] {
            cells.extend(figure.map_or(["-"; 3].map(str::to_owned), cells_of));
        }
        if has_conditions {
            cells.extend(cells_of(it.conditions));
        }
        lines.push(cells);
    }
    let widths: Vec<_> = (0..lines[0].len())
        .map(|index| lines.iter().map(|it| it[index].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    // Three columns belong together; more space stands before each three.
    let gap = |index: usize| if index % 3 == 1 { "   " } else { "  " };
    let width = (1..widths.len()).map(|index| gap(index).len() + widths[index]);
    let rule = "-".repeat(widths[0] + width.sum::<usize>());
    let last = lines.len() - 1;
    for (number, line) in lines.iter().enumerate() {
        if number == 1 || (number == last && last > 1) {
            out.line(&rule)?;
        }
        let mut parts = vec![(None, format!("{:<width$}", line[0], width = widths[0]))];
        for index in 1..line.len() {
            let (cell, width) = (&line[index], widths[index]);
            parts.push((None, gap(index).to_owned()));
            let color = color(cell).filter(|_| is_colored);
            parts.push((color, format!("{cell:>width$}")));
        }
        if let Some(lines) = &missing[number] {
            parts.push((None, format!("   {lines}")));
        }
        out.styled(parts)?;
    }
    Ok(())
}

/// The color that llvm-cov gives a percentage; none for other cells.
fn color(cell: &str) -> Option<Style> {
    let percent: f64 = cell.strip_suffix('%')?.parse().ok()?;
    let color = match percent {
        100.0 => AnsiColor::Green,
        80.0.. => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    Some(color.on_default())
}

fn cells_of(figure: Figure) -> [String; 3] {
    let percent = figure.percent();
    [
        figure.total.to_string(),
        figure.missed().to_string(),
        percent.map_or("-".to_owned(), |percent| format!("{percent:.2}%")),
    ]
}

/// The lines that ran nowhere.
fn write_missing(
    view: &View,
    uncovered: &Uncovered<'_>,
    base: &Path,
    out: &mut Lines<'_>,
) -> io::Result<()> {
    let files = view.paths.iter().map(|path| {
        let missed = uncovered.missed(path, &|line| view.joined(&line.counts));
        (below(path, base), missed)
    });
    let missed = files.filter(|(_, lines)| !lines.is_empty());
    let missed = missed.map(|(path, lines)| format!("  {path}: {lines}"));
    out.section("Lines that did not run:", missed)
}

/// The lines that ran in one column and did not in another that has them too.
fn write_differences(view: &View, base: &Path, out: &mut Lines<'_>) -> io::Result<()> {
    let differences = view.paths.iter().flat_map(|path| {
        let here = view.missed(&view.file(path).lines).here.into_iter();
        here.map(move |(label, lines)| {
            let (path, lines) = (below(path, base), ranges(lines).join(", "));
            format!("  {path}, not on {label}: {lines}")
        })
    });
    out.section("Lines that ran elsewhere:", differences)
}
