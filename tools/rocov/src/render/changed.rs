//! The coverage of changed lines, as text, in Markdown and in JSON.

use std::io;

use serde_json::{Value, json};

use super::markdown_text::{Inline, Markdown};
use crate::coverage::changed::covered::{Changed, ChangedSource};
use crate::coverage::figures::Figure;
use crate::coverage::line::Line;
use crate::coverage::view::View;
use crate::support::paths::{below, here};
use crate::term::line_ranges::ranges;
use crate::term::lines::Lines;
use crate::term::table::Heading;

/// A table with the files, and the lines that did not run.
pub(super) fn write_text(view: &View, changed: &Changed, out: &mut Lines<'_>) -> io::Result<()> {
    out.gap()?;
    out.line(format_args!("Changed lines: {}", changed.base))?;
    out.gap()?;
    if let Some(reason) = nothing(changed) {
        out.line(reason)?;
    } else {
        let here = here();
        let labels = view.labels("all");
        let heading = |text, is_number| Heading { text, is_number };
        let numbers = labels.iter().map(|label| heading(label.as_str(), true));
        let headings: Vec<_> = [heading("Filename", false)]
            .into_iter()
            .chain(numbers)
            .collect();
        let row = |name: &str, figures: Vec<Figure>| {
            let cells = figures.into_iter().map(Figure::share_text);
            [name.to_owned()].into_iter().chain(cells).collect()
        };
        let files = changed.files.iter();
        let mut rows: Vec<_> = files
            .map(|file| row(&below(&file.path, &here), file.figures(view)))
            .collect();
        rows.push(row("TOTAL", changed.totals(view)));
        out.table(&headings, &rows)?;

        let mut missed = Vec::new();
        for file in &changed.files {
            let path = below(&file.path, &here);
            let lines = view.missed(&file.lines);
            if !lines.nowhere.is_empty() {
                missed.push(format!("  {path}: {}", ranges(lines.nowhere).join(", ")));
            }
            for (label, lines) in lines.here {
                let lines = ranges(lines).join(", ");
                missed.push(format!("  {path}, not on {label}: {lines}"));
            }
        }
        out.section("Changed lines that did not run:", missed)?;
    }
    for line in &changed.left_out {
        out.gap()?;
        out.line(format_args!("Left out: {line}"))?;
    }
    Ok(())
}

/// A section for a comment.
pub(super) fn write_markdown(
    view: &View,
    changed: &Changed,
    out: &mut Markdown<'_>,
) -> io::Result<()> {
    out.own("\n#### Changed lines\n")?;
    if let Some(reason) = nothing(changed) {
        out.own(reason)?;
    } else {
        let mut headings = vec![Inline::text("File")];
        headings.extend(Inline::labels(view));
        headings.push(Inline::text("Not run"));
        let last = headings.len() - 1;
        out.head(&headings, |column| column > 0 && column < last)?;
        let here = here();
        for file in &changed.files {
            let name = Inline::code(&below(&file.path, &here));
            let missed = super::missed_lines::missed(view, &file.lines);
            out.row(&row(name, file.figures(view), &missed))?;
        }
        if changed.files.len() > 1 {
            out.row(&row(Inline::bold("all"), changed.totals(view), ""))?;
        }
    }
    if !changed.left_out.is_empty() {
        out.own("")?;
    }
    for line in &changed.left_out {
        out.item(&line.to_string())?;
    }
    Ok(())
}

fn row(name: Inline, figures: Vec<Figure>, missed: &str) -> Vec<Inline> {
    let mut cells = vec![name];
    let figures = figures.into_iter().map(Figure::share_text);
    cells.extend(figures.map(|figure| Inline::text(&figure)));
    cells.push(Inline::text(missed));
    cells
}

/// The figures and missed lines of a change, which llvm-cov's format has no place for: for each column,
/// then for all of them.
pub(super) fn json(view: &View, changed: &Changed) -> Value {
    let figures = |figures: Vec<Figure>| -> Value {
        let each = figures.into_iter().map(|figure| {
            let percent = figure.percent();
            json!({"count": figure.total, "covered": figure.covered, "percent": percent})
        });
        each.collect()
    };
    let file = |file: &ChangedSource| {
        let is_missed = |count: Option<u64>| count == Some(0);
        let missed = |of: &dyn Fn(&Line) -> Option<u64>| -> Vec<u32> {
            let missed = file.lines.iter().filter(|line| is_missed(of(line)));
            missed.map(|line| line.number).collect()
        };
        let all = missed(&|line| view.joined(&line.counts));
        json!({
            "filename": *file.path,
            "lines": figures(file.figures(view)),
            "missed": view.each(|index| missed(&|line| line.counts[index]), all),
        })
    };
    json!({
        "base": changed.base,
        "names": view.labels("all"),
        "lines": figures(changed.totals(view)),
        "files": changed.files.iter().map(file).collect::<Vec<_>>(),
        "left_out": changed.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The reason why there is nothing to show.
fn nothing(changed: &Changed) -> Option<&'static str> {
    if changed.is_empty {
        Some("The diff adds and modifies no lines.")
    } else if changed.files.is_empty() {
        Some("None of them has GPU code that is reported.")
    } else {
        None
    }
}
