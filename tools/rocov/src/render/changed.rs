//! The coverage of changed lines, as text, in Markdown and in JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::coverage::changed::{Changed, ChangedSource};
use crate::coverage::figures::Figure;
use crate::coverage::file::Line;
use crate::coverage::view::View;
use crate::support::paths::{below, here};
use crate::term::line_ranges::ranges;
use crate::term::table::{Heading, table};

/// A table with the files, and the lines that did not run.
pub(super) fn write_text(view: &View, changed: &Changed, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nChanged lines: {}\n", changed.base)?;
    if let Some(reason) = nothing(changed) {
        writeln!(out, "{reason}")?;
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
        write!(out, "{}", table(&headings, &rows))?;

        let mut missed = String::new();
        for file in &changed.files {
            let path = below(&file.path, &here);
            let lines = view.missed(&file.lines);
            if !lines.nowhere.is_empty() {
                missed += &format!("  {path}: {}\n", ranges(lines.nowhere).join(", "));
            }
            for (label, lines) in lines.here {
                missed += &format!("  {path}, not on {label}: {}\n", ranges(lines).join(", "));
            }
        }
        if !missed.is_empty() {
            write!(out, "\nChanged lines that did not run:\n{missed}")?;
        }
    }
    for line in &changed.left_out {
        writeln!(out, "\nLeft out: {line}")?;
    }
    Ok(())
}

/// A section for a comment.
pub(super) fn write_markdown(
    view: &View,
    changed: &Changed,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\n#### Changed lines\n")?;
    if let Some(reason) = nothing(changed) {
        writeln!(out, "{reason}")?;
    } else {
        let labels = view.labels("**all**");
        writeln!(out, "| File | {} | Not run |", labels.join(" | "))?;
        writeln!(out, "|---|{}---|", "---:|".repeat(labels.len()))?;
        let here = here();
        for file in &changed.files {
            let name = format!("`{}`", below(&file.path, &here));
            let missed = super::markdown::missed(view, &file.lines);
            write_row(&name, file.figures(view), &missed, out)?;
        }
        if changed.files.len() > 1 {
            write_row("**all**", changed.totals(view), "", out)?;
        }
    }
    if !changed.left_out.is_empty() {
        writeln!(out)?;
    }
    for line in &changed.left_out {
        writeln!(out, "- {line}")?;
    }
    Ok(())
}

fn write_row(
    name: &str,
    figures: Vec<Figure>,
    missed: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let cells: Vec<_> = figures.into_iter().map(Figure::share_text).collect();
    writeln!(out, "| {name} | {} | {missed} |", cells.join(" | "))
}

/// The figures and missed lines of a change, which llvm-cov's format has no place for: for each column,
/// then for all of them.
pub(super) fn json(view: &View, changed: &Changed) -> Value {
    let figures = |figures: Vec<Figure>| -> Value {
        let each = figures.into_iter().map(|it| {
            let percent = it.percent();
            json!({"count": it.total, "covered": it.covered, "percent": percent})
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
        "left_out": changed.left_out,
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
