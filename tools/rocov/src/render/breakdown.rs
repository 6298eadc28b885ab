//! Tables of components and of tests, in each format that has them.

use std::collections::BTreeSet;
use std::io;

use serde_json::{Value, json};

use super::markdown_text::{Inline, Markdown};
use crate::coverage::baseline_column::{Carried, Shares};
use crate::coverage::figures::{Figure, Figures, Measure};
use crate::coverage::part::{OfColumn, Only, Part};
use crate::coverage::view::View;
use crate::term::lines::Lines;
use crate::term::look::Look;
use crate::term::table::{Heading, Narrowing};

/// The heading of the tests that some of a test's counts may be of.
pub(crate) const SHARED: &str = "Shared with";

/// The columns of regions and of functions are the first that a narrow terminal lacks, and then the number of lines.
const NARROWING: Narrowing<'_> = Narrowing {
    left_out: &[5, 6, 9, 3, 4, 8, 1, 10],
    names: 0,
};

/// The heading of the names of components.
const COMPONENT: &str = "Component";

/// Parts of one kind, with the heading of their names: empty if a report has none.
fn kinds(view: &View) -> [(&'static str, &[Part]); 2] {
    [(COMPONENT, &view.components), ("Test", &view.tests)]
}

/// The labels of the columns that parts are in.
fn labels(parts: &[Part]) -> BTreeSet<&str> {
    let columns = parts.iter().flat_map(|part| &part.columns);
    columns.map(|column| column.label.as_str()).collect()
}

/// The parts with their figures in the column of this label.
fn in_column<'a>(parts: &'a [Part], label: &str) -> Vec<(&'a Part, &'a OfColumn)> {
    let of = |part: &'a Part| {
        let column = part.columns.iter().find(|column| column.label == label)?;
        Some((part, column))
    };
    parts.iter().filter_map(of).collect()
}

/// Returns whether some counts may be of several of these parts.
fn are_shared(parts: &[Part]) -> bool {
    parts.iter().any(|part| !part.shared_with.is_empty())
}

/// A table for each kind of part in each column.
pub(super) fn write_text(view: &View, look: Look, out: &mut Lines<'_>) -> io::Result<()> {
    for (kind, parts) in kinds(view) {
        for label in labels(parts) {
            let rows = in_column(parts, label);
            out.gap()?;
            out.line(format_args!("{label} by {}:", kind.to_lowercase()))?;
            out.gap()?;
            write_table(kind, &rows, are_shared(parts), look, out)?;
        }
    }
    Ok(())
}

fn write_table(
    kind: &str,
    rows: &[(&Part, &OfColumn)],
    are_shared: bool,
    look: Look,
    out: &mut Lines<'_>,
) -> io::Result<()> {
    let [word, number] = [false, true].map(|is_number| move |text| Heading { text, is_number });
    let mut headings = vec![word(kind)];
    headings.extend(
        [
            "Lines",
            "Covered",
            "Functions",
            "Covered",
            "Regions",
            "Covered",
        ]
        .map(number),
    );
    let has_only = rows.iter().any(|(_, column)| column.only.is_some());
    if has_only {
        headings.extend(["Lines only here", "Functions", "Regions"].map(number));
    }
    if are_shared {
        headings.push(word(SHARED));
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|(part, OfColumn { figures, only, .. })| {
            let mut cells = vec![part.name.clone()];
            for figure in [figures.lines, figures.functions, figures.regions] {
                cells.push(figure.total.to_string());
                cells.push(figure.percent_text());
            }
            if let Some(only) = only {
                cells.extend(numbers(*only).map(|number| number.to_string()));
            }
            cells.push(part.shared_with.join(", "));
            cells
        })
        .collect();
    out.table_in(headings, rows, NARROWING, look)
}

/// A table of all parts of one kind: a row for each in each column of figures.
pub(super) struct Listing<'a> {
    /// The kind of the parts.
    pub(super) kind: &'static str,
    /// The headings of the cells after the column's label.
    pub(super) headings: Vec<&'static str>,
    pub(super) rows: Vec<ListingRow<'a>>,
}

/// A part in one column.
pub(super) struct ListingRow<'a> {
    /// The index of the part among those of its kind.
    pub(super) part: usize,
    pub(super) name: &'a str,
    /// The label of the column, and the cells below the headings.
    pub(super) cells: Vec<String>,
}

/// The table of components, if the report has some.
pub(super) fn components(view: &View) -> Option<Listing<'_>> {
    let [(kind, parts), _] = kinds(view);
    (!parts.is_empty()).then(|| Listing::new(kind, parts))
}

/// The table of tests, if the report has some.
pub(super) fn tests(view: &View) -> Option<Listing<'_>> {
    let [_, (kind, parts)] = kinds(view);
    (!parts.is_empty()).then(|| Listing::new(kind, parts))
}

impl<'a> Listing<'a> {
    fn new(kind: &'static str, parts: &'a [Part]) -> Self {
        let columns = || {
            let parts = parts.iter().enumerate();
            parts.flat_map(|(number, part)| {
                let columns = part.columns.iter();
                columns.map(move |column| (number, part, column))
            })
        };
        let mut headings = vec!["Lines", "Functions", "Regions"];
        if columns().any(|(_, _, column)| column.only.is_some()) {
            headings.extend(["Only here: lines", "functions", "regions"]);
        }
        let are_shared = are_shared(parts);
        headings.extend(are_shared.then_some(SHARED));
        let rows = columns().map(|(number, part, column)| {
            let figures = &column.figures;
            let shares =
                [figures.lines, figures.functions, figures.regions].map(Figure::share_text);
            let only = column.only.into_iter().flat_map(numbers);
            let cells = [column.label.clone()].into_iter().chain(shares);
            let cells = cells.chain(only.map(|number| number.to_string()));
            let shared = are_shared.then(|| part.shared_with.join(", "));
            ListingRow {
                part: number,
                name: &part.name,
                cells: cells.chain(shared).collect(),
            }
        });
        Self {
            kind,
            headings,
            rows: rows.collect(),
        }
    }
}

/// Writes the tables in Markdown.
pub(super) fn write_markdown(view: &View, out: &mut Markdown<'_>) -> io::Result<()> {
    for Listing {
        kind,
        headings,
        rows,
    } in components(view).into_iter().chain(tests(view))
    {
        out.own("")?;
        out.own(match kind {
            COMPONENT => "<details><summary>Components</summary>\n",
            _ => "<details><summary>Tests</summary>\n",
        })?;
        let headings = [kind, ""].into_iter().chain(headings);
        let headings: Vec<_> = headings.map(Inline::text).collect();
        let width = headings.len();
        out.head(&headings, |column| column > 1)?;
        for ListingRow { name, cells, .. } in rows {
            let cells = cells.iter().map(|cell| Inline::text(cell));
            let row: Vec<_> = [Inline::code(name)].into_iter().chain(cells).collect();
            out.row(&row)?;
        }
        if kind == COMPONENT {
            write_carried(view, width, out)?;
        }
        out.own("\n</details>")?;
    }
    Ok(())
}

/// Shares by the names of what they are of: `lines 45.83% (11/24), functions 50.00% (2/4)`.
pub(super) fn named_shares(shares: &Shares) -> String {
    let shares = Measure::ALL.map(|measure| {
        let share = shares.figure(measure).share_text();
        format!("{} {share}", measure.name())
    });
    shares.join(", ")
}

/// The figures of a column of earlier runs: `gfx942, 7 days old (2026-11-21): lines 45.83% (11/24)`.
pub(super) fn carried_total(carried: &Carried) -> String {
    let (label, age, date) = (&carried.label, carried.age(), &carried.column.date);
    let total = named_shares(&carried.column.total);
    format!("{label}, {age} ({date}): {total}")
}

/// Writes a row for each component of archs that did not run, in a table of this width.
fn write_carried(view: &View, width: usize, out: &mut Markdown<'_>) -> io::Result<()> {
    for carried in &view.carried {
        let label = format!("{}, {}", carried.label, carried.age());
        for (name, shares) in &carried.column.components {
            let figures = [Measure::Lines, Measure::Functions, Measure::Regions];
            let figures = figures.map(|measure| shares.figure(measure).share_text());
            let mut row = vec![Inline::code(name), Inline::text(&label)];
            row.extend(figures.iter().map(|figure| Inline::text(figure)));
            row.resize(width, Inline::text(""));
            out.row(&row)?;
        }
    }
    Ok(())
}

/// The parts in JSON. `summary` writes figures. The files that a test ran are left out if only these are wanted.
pub(super) fn json(
    parts: &[Part],
    summary_only: bool,
    summary: impl Fn(&Figures) -> Value,
) -> Value {
    let column = |column: &OfColumn| {
        let mut value = json!({"name": column.label, "summary": summary(&column.figures)});
        if let Some(only) = column.only {
            value["only"] = json!({
                "lines": only.lines,
                "functions": only.functions,
                "regions": only.regions,
            });
        }
        if let Some(files) = column.files.as_ref().filter(|_| !summary_only) {
            let files: Vec<&str> = files.iter().map(|path| &**path).collect();
            value["files"] = json!(files);
        }
        value
    };
    let parts = parts.iter().map(|part| {
        let columns: Vec<_> = part.columns.iter().map(column).collect();
        let mut value = json!({"name": part.name, "columns": columns});
        if !part.shared_with.is_empty() {
            value["shared_with"] = json!(part.shared_with);
        }
        value
    });
    parts.collect()
}

fn numbers(only: Only) -> [usize; 3] {
    [only.lines, only.functions, only.regions]
}
