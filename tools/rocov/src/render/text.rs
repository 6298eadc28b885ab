//! The table of `llvm-cov report`, for each column and for all of them joined; and the lines that only
//! some archs ran.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};

use super::excluded::{excluded, excluded_branches_of};
use super::grades::grade;
use super::{breakdown, changed, uniformity};
use crate::coverage::figures::{Figure, Figures};
use crate::coverage::line::Line;
use crate::coverage::view::View;
use crate::support::paths::{below, common};
use crate::support::printable::printable;
use crate::term::line_ranges::ranges;
use crate::term::lines::Lines;
use crate::term::look::{Bars, Look};
use crate::term::shorten::{first_of, shortened};

/// The heading of names.
const NAME: &str = "Filename";
/// The heading of the lines that did not run.
const MISSING_HEADING: &str = "Missing";
/// The smallest number of characters of a file's name, if a narrower layout has room for more.
const NARROWEST: usize = 24;
/// The number of characters that lines which did not run have at least, if they need so many.
const MISSING_ROOM: usize = 16;
/// The number of spaces before them.
const MISSING_GAP: usize = 3;
/// The numbers of characters of the shortest and of the longest bar.
const BAR: [usize; 2] = [5, 20];

/// The order of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    /// By name
    #[default]
    #[value(alias = "filename")]
    Name,
    /// Those with the least share of covered lines first
    #[value(alias = "uncovered-percent")]
    Worst,
    /// Those with the most missed lines first
    #[value(alias = "uncovered-number")]
    Missed,
}

/// The places of the table that name the lines that did not run, or are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MissingLines {
    /// A column.
    pub(crate) in_rows: bool,
    /// A list below the table.
    pub(crate) at_end: bool,
    /// A list of the lines that are left out, below the table.
    pub(crate) excluded: bool,
}

/// How the table is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableStyle {
    pub(crate) look: Look,
    pub(crate) order: Order,
    pub(crate) missing: MissingLines,
}

pub(super) fn write(
    view: &View,
    headings: &BTreeMap<&str, Vec<&str>>,
    style: TableStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    let out = &mut Lines::new(out);
    let total = &view.table().total;
    let base = common(view.paths_with_lines().map(|path| &**path));
    let TableStyle {
        look,
        order,
        missing,
    } = style;
    let uncovered = match missing.in_rows || missing.at_end {
        true => Uncovered::new(view),
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
        match headings.get(&*column.label) {
            Some(heading) => {
                heading.iter().try_for_each(|line| out.line(line))?;
            }
            None => out.line(&column.label)?,
        }
        out.gap()?;
        let rows = view.rows().filter_map(|(path, row)| {
            let figures = row.columns[index].filter(|column| column.functions.total > 0)?;
            Some(table_row(path, figures, &|line: &Line| line.counts[index]))
        });
        let total = total.columns[index].unwrap_or_default();
        write_table(order.sorted(rows.collect()), total, look, out)?;
    }
    if view.columns.len() > 1 {
        let labels: Vec<_> = view
            .columns
            .iter()
            .map(|column| column.label.as_str())
            .collect();
        out.gap()?;
        out.line(format_args!("all: {}", labels.join(", ")))?;
        out.gap()?;
        let rows = view.rows().map(|(path, row)| (path, row.all));
        let rows = rows.filter(|(_, figures)| figures.functions.total > 0);
        let joined = |line: &Line| view.joined(&line.counts);
        let rows = rows.map(|(path, figures)| table_row(path, figures, &joined));
        write_table(order.sorted(rows.collect()), total.all, look, out)?;
    }
    if missing.at_end {
        write_missing(view, &uncovered, &base, out)?;
    }
    if view.columns.len() > 1 {
        write_differences(view, &base, out)?;
    }
    let carried = view.carried.iter().flat_map(|carried| {
        let components = carried.column.components.iter();
        let components = components
            .map(|(name, shares)| format!("    {name}: {}", breakdown::named_shares(shares)));
        [format!("  {}", breakdown::carried_total(carried))]
            .into_iter()
            .chain(components)
    });
    out.section("Carried forward:", carried)?;
    if let Some(excluded) = excluded(view) {
        out.gap()?;
        match missing.excluded {
            true => out.line(format_args!("excluded: {excluded}"))?,
            false => out.line(format_args!(
                "excluded: {excluded} (--show-excluded lists them)"
            ))?,
        }
    }
    if missing.excluded {
        write_excluded(view, &base, out)?;
        write_excluded_branches(view, &base, out)?;
    }
    uniformity::write_text(view, &base, out)?;
    breakdown::write_text(view, look, out)?;
    if let Some(changed) = &view.changed {
        changed::write_text(view, changed, out)?;
    }
    Ok(())
}

impl Order {
    /// The files in this order. Those that are equal by it stay in the order of their names.
    fn sorted(self, mut rows: Vec<TableRow>) -> Vec<TableRow> {
        let missed = |figures: &Figures| Reverse(measured(figures).missed());
        match self {
            Self::Name => {}
            Self::Missed => rows.sort_by_key(|row| missed(&row.figures)),
            Self::Worst => rows.sort_by(|one, other| {
                let [one, other] = [&one.figures, &other.figures];
                let share = |figures| measured(figures).percent().unwrap_or(100.0);
                let by_share = share(one).total_cmp(&share(other));
                by_share.then_with(|| missed(one).cmp(&missed(other)))
            }),
        }
        rows
    }
}

/// The figure that a file is judged by: its lines, or its functions if its lines are not known.
fn measured(figures: &Figures) -> Figure {
    match figures.lines.total {
        0 => figures.functions,
        _ => figures.lines,
    }
}

/// The columns of a table: all, or fewer if a terminal has no room for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Those of llvm-cov.
    Whole,
    /// Lines, and the shares of the others.
    Shares,
    /// Lines only.
    Lines,
}

/// A column of a table.
struct TextColumn {
    heading: &'static str,
    /// The number of spaces before it.
    gap: usize,
    /// The cells below the heading, the total's last.
    cells: Vec<String>,
}

impl TextColumn {
    fn width(&self) -> usize {
        let lengths = self.cells.iter().map(String::len);
        lengths.max().unwrap_or_default().max(self.heading.len())
    }

    fn whole_width(&self) -> usize {
        self.gap + self.width()
    }
}

impl Layout {
    /// The columns for these rows, but that of their names.
    fn columns(self, rows: &[TableRow]) -> Vec<TextColumn> {
        let has_conditions = rows.iter().any(|row| row.figures.conditions.total > 0);
        // Line tables have no regions and branches.
        let has_regions =
            |figures: &Figures| figures.regions.total > 0 || figures.functions.total == 0;
        let has_lines = |figures: &Figures| figures.lines.total > 0 || figures.functions.total == 0;
        type Of = fn(&Figures) -> Figure;
        type Has<'a> = &'a dyn Fn(&Figures) -> bool;
        let lines: (&'static str, &'static str, Of, Has<'_>) =
            ("Lines", "Cover", |figures| figures.lines, &has_lines);
        let others: [(&'static str, &'static str, Of, Has<'_>); 3] = [
            ("Regions", "Cover", |figures| figures.regions, &has_regions),
            (
                "Functions",
                "Executed",
                |figures| figures.functions,
                &|_| true,
            ),
            (
                "Branches",
                "Cover",
                |figures| figures.branches,
                &has_regions,
            ),
        ];
        let conditions: (&'static str, &'static str, Of, Has<'_>) =
            ("MC/DC", "Cover", |figures| figures.conditions, &|_| true);
        let [regions, functions, branches] = others;
        let kinds = match self {
            Self::Whole => vec![regions, functions, lines, branches],
            Self::Shares => vec![lines, regions, functions, branches],
            Self::Lines => vec![lines],
        };
        let is_of_conditions = has_conditions && self != Self::Lines;
        let kinds = kinds
            .into_iter()
            .chain(is_of_conditions.then_some(conditions));
        let columns = kinds
            .enumerate()
            .flat_map(|(index, (name, share, of, has))| {
                let texts = rows.iter().map(|row| match has(&row.figures) {
                    true => cells_of(of(&row.figures)),
                    false => ["-"; 3].map(str::to_owned),
                });
                let texts: Vec<_> = texts.collect();
                let column = |place: usize, heading, gap| TextColumn {
                    heading,
                    gap,
                    cells: texts.iter().map(|texts| texts[place].clone()).collect(),
                };
                match (self, index) {
                    // Three columns belong together; more space comes before each three.
                    (Self::Whole, _) | (Self::Shares, 0) => vec![
                        column(0, name, 3),
                        column(1, "Missed", 2),
                        column(2, share, 2),
                    ],
                    (Self::Lines, _) => vec![column(1, "Missed", 2), column(2, "Lines", 2)],
                    (Self::Shares, _) => vec![column(2, name, 2)],
                }
            });
        columns.collect()
    }

    /// The place of the share of lines among the columns.
    fn share_of_lines(self) -> usize {
        match self {
            Self::Whole => 8,
            Self::Shares => 2,
            Self::Lines => 1,
        }
    }
}

/// The layout of a table that a terminal has room for.
struct Fitting {
    layout: Layout,
    columns: Vec<TextColumn>,
    /// True if names have enough room.
    fits: bool,
    /// The number of characters of names.
    names: usize,
    /// The number of characters of bars, if there are bars.
    bar: Option<usize>,
    /// The number of characters of lines that did not run, if the table names them.
    missing: Option<usize>,
}

impl Fitting {
    fn new(rows: &[TableRow], look: Look) -> Self {
        let missing = rows.iter().filter_map(|row| row.missing.as_ref());
        let missing = missing
            .map(|lines| lines.chars().count().max(MISSING_HEADING.len()))
            .max();
        // The room that they need, and that a layout leaves them at least.
        let needed = missing.map_or(0, |missing| missing + MISSING_GAP);
        let least = needed.min(MISSING_ROOM + MISSING_GAP);
        let longest = rows.iter().map(|row| row.name.chars().count()).max();
        let longest = longest.unwrap_or_default().max(NAME.len());
        let layouts = [Layout::Whole, Layout::Shares, Layout::Lines];
        let fittings = layouts.map(|layout| {
            let columns = layout.columns(rows);
            let taken: usize = columns.iter().map(TextColumn::whole_width).sum();
            let room = look
                .width
                .map_or(usize::MAX, |width| width.saturating_sub(taken + least));
            let names = longest.min(room).max(NAME.len());
            // The gap before a bar is one space.
            let left = look.width.map_or(BAR[1], |width| {
                width.saturating_sub(taken + names + needed + 1)
            });
            let is_drawn = look.bars.is_some() && left >= BAR[0];
            let rest = |width: usize| width.saturating_sub(taken + names + MISSING_GAP);
            let missing = missing.map(|missing| match (look.width, is_drawn) {
                (Some(width), false) => missing.min(rest(width)).max(MISSING_HEADING.len()),
                _ => missing,
            });
            Self {
                layout,
                columns,
                fits: room >= longest.min(NARROWEST),
                names,
                bar: is_drawn.then_some(left.min(BAR[1])),
                missing,
            }
        });
        let [whole, shares, lines] = fittings;
        let mut wide = [whole, shares].into_iter();
        wide.find(|fitting| fitting.fits).unwrap_or(lines)
    }
}

/// The lines with code of each file, for the names of those that did not run.
#[derive(Default)]
struct Uncovered<'a>(BTreeMap<&'a str, Vec<Line>>);

impl<'a> Uncovered<'a> {
    fn new(view: &'a View) -> Self {
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
    look: Look,
    out: &mut Lines<'_>,
) -> io::Result<()> {
    for row in &mut rows {
        row.name = printable(&row.name).into_owned();
    }
    let has_files = !rows.is_empty();
    rows.push(TableRow {
        name: "TOTAL".to_owned(),
        figures: total,
        missing: None,
    });
    let fitting = Fitting::new(&rows, look);
    let mark = look.bars.unwrap_or(Bars::Ascii).ellipsis();
    let names = fitting.names;
    let place_of_bar = fitting.bar.map(|_| fitting.layout.share_of_lines());
    let mut head = format!("{NAME:<names$}");
    let mut width = names;
    for (index, column) in fitting.columns.iter().enumerate() {
        head += &format!("{:>width$}", column.heading, width = column.whole_width());
        width += column.whole_width();
        if let Some(bar) = fitting.bar.filter(|_| place_of_bar == Some(index)) {
            head += &" ".repeat(bar + 1);
            width += bar + 1;
        }
    }
    if let Some(missing) = fitting.missing {
        head += &format!("{:MISSING_GAP$}{MISSING_HEADING}", "");
        width += MISSING_GAP + missing;
    }
    let rule = "-".repeat(width);
    out.line(head.trim_end())?;
    out.line(&rule)?;
    for (number, row) in rows.iter().enumerate() {
        if number + 1 == rows.len() && has_files {
            out.line(&rule)?;
        }
        let name = shortened(&row.name, names, mark);
        let mut parts = vec![(None, format!("{name:<names$}"))];
        for (index, column) in fitting.columns.iter().enumerate() {
            let cell = &column.cells[number];
            parts.push((None, " ".repeat(column.gap)));
            let color = color(cell).filter(|_| look.is_colored);
            parts.push((color, format!("{cell:>width$}", width = column.width())));
            if let (Some(bars), Some(bar), true) =
                (look.bars, fitting.bar, place_of_bar == Some(index))
            {
                let figure = row.figures.lines;
                let [covered, rest] = bars.draw(figure.covered, figure.total, bar);
                let dimmed = look.is_colored.then(|| Style::new().dimmed());
                parts.extend([(None, " ".to_owned()), (color, covered), (dimmed, rest)]);
            }
        }
        if let (Some(room), Some(lines)) = (fitting.missing, &row.missing)
            && !lines.is_empty()
        {
            let lines = first_of(lines, room, mark);
            parts.push((None, format!("{:MISSING_GAP$}{lines}", "")));
        }
        out.styled(parts)?;
    }
    Ok(())
}

/// The color of a percentage, by its grade; none for other cells.
fn color(cell: &str) -> Option<Style> {
    let percent: f64 = cell.strip_suffix('%')?.parse().ok()?;
    let color = match grade(percent) {
        "high" => AnsiColor::Green,
        "medium" => AnsiColor::Yellow,
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

/// The lines that are left out, by the reasons.
fn write_excluded(view: &View, base: &Path, out: &mut Lines<'_>) -> io::Result<()> {
    let files = view.paths.iter().flat_map(|path| {
        let by_reason = view.excluded_by_reason(path).into_iter();
        by_reason.map(move |(reason, lines)| {
            let (path, lines) = (below(path, base), ranges(lines).join(", "));
            format!("  {path}: {lines}: {reason}")
        })
    });
    let files: Vec<_> = files.collect();
    if files.is_empty() {
        out.gap()?;
        return out.line("excluded: no lines");
    }
    out.section("Excluded lines:", files)
}

/// The conditions on other lines of which a side is left out, with the reasons.
fn write_excluded_branches(view: &View, base: &Path, out: &mut Lines<'_>) -> io::Result<()> {
    let branches = view.paths.iter().flat_map(|path| {
        let branches = excluded_branches_of(view, path).into_iter();
        branches.map(move |(line, about)| format!("  {}:{line}: {about}", below(path, base)))
    });
    let branches: Vec<_> = branches.collect();
    match branches.is_empty() {
        true => Ok(()),
        false => out.section("Excluded branches on other lines:", branches),
    }
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
