//! The table of `llvm-cov report`, for each column and for all of them joined; and the lines that only
//! some archs ran.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{breakdown, changed, uniformity};
use crate::coverage::figures::{Figure, Figures};
use crate::coverage::view::View;
use crate::support::paths::{below, common};
use crate::term::line_ranges::ranges;

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
/// The headings for MC/DC, if there is any.
const CONDITION_HEADINGS: [&str; 3] = ["MC/DC", "Missed", "Cover"];

pub(super) fn write(
    view: &View,
    headings: &BTreeMap<String, String>,
    is_colored: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let total = &view.table().total;
    let base = common(view.paths_with_lines().map(|path| &**path));
    for (index, column) in view.columns.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        match headings.get(&column.label) {
            Some(heading) => writeln!(out, "{heading}")?,
            None => writeln!(out, "{}\n", column.label)?,
        }
        let rows = view.rows().filter_map(|(path, row)| {
            let figures = row.columns[index].filter(|it| it.functions.total > 0)?;
            Some((below(path, &base).into_owned(), figures))
        });
        let total = total.columns[index].unwrap_or_default();
        write_table(rows.collect(), total, is_colored, out)?;
    }
    if view.columns.len() > 1 {
        let labels: Vec<_> = view.columns.iter().map(|it| it.label.as_str()).collect();
        writeln!(out, "\nall: {}\n", labels.join(", "))?;
        let rows = view.rows().map(|(path, row)| (path, row.all));
        let rows = rows
            .filter(|(_, figures)| figures.functions.total > 0)
            .map(|(path, figures)| (below(path, &base).into_owned(), figures));
        write_table(rows.collect(), total.all, is_colored, out)?;
        write_differences(view, &base, out)?;
    }
    uniformity::write_text(view, &base, out)?;
    breakdown::write_text(view, out)?;
    if let Some(changed) = &view.changed {
        changed::write_text(view, changed, out)?;
    }
    Ok(())
}

fn write_table(
    mut rows: Vec<(String, Figures)>,
    total: Figures,
    is_colored: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    rows.push(("TOTAL".to_owned(), total));
    let has_conditions = total.conditions.total > 0;
    let mut lines = vec![HEADINGS.map(str::to_owned).to_vec()];
    if has_conditions {
        lines[0].extend(CONDITION_HEADINGS.map(str::to_owned));
    }
    for (name, it) in rows {
        let mut cells = vec![name];
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
            writeln!(out, "{rule}")?;
        }
        write!(out, "{:<width$}", line[0], width = widths[0])?;
        for index in 1..line.len() {
            let (cell, width) = (&line[index], widths[index]);
            write!(out, "{}", gap(index))?;
            match color(cell).filter(|_| is_colored) {
                Some(color) => write!(out, "{color}{cell:>width$}{color:#}")?,
                None => write!(out, "{cell:>width$}")?,
            }
        }
        writeln!(out)?;
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

/// The lines that ran in one column and did not in another that has them too.
fn write_differences(view: &View, base: &std::path::Path, out: &mut dyn Write) -> io::Result<()> {
    let mut differences = String::new();
    for path in &view.paths {
        for (label, lines) in view.missed(&view.file(path).lines).here {
            let (path, lines) = (below(path, base), ranges(lines).join(", "));
            differences += &format!("  {path}, not on {label}: {lines}\n");
        }
    }
    if !differences.is_empty() {
        write!(out, "\nLines that ran elsewhere:\n{differences}")?;
    }
    Ok(())
}
