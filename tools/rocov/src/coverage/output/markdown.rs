//! A summary in Markdown, for a comment on a pull request and for `$GITHUB_STEP_SUMMARY`.

use super::paths::{below, here, ranges};
use crate::coverage::figures::Figure;
use crate::coverage::view::{Row, View};
use std::io::{self, Write};

/// Ranges of lines that are shown of a file: a comment may have 65,536 characters.
const MOST_RANGES: usize = 12;

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let labels = labels(view);
    writeln!(out, "### Coverage of GPU code\n")?;
    writeln!(out, "| | Lines | Functions | Regions | Branches |")?;
    writeln!(out, "|---|---:|---:|---:|---:|")?;
    for (label, figures) in labels
        .iter()
        .zip(figures(&view.table().total, labels.len()))
    {
        let it = figures.unwrap_or_default();
        let cells = [it.lines, it.functions, it.regions, it.branches].map(share);
        writeln!(out, "| {label} | {} |", cells.join(" | "))?;
    }

    writeln!(out, "\n<details><summary>Files: lines</summary>\n")?;
    writeln!(out, "| File | {} | Not run |", labels.join(" | "))?;
    writeln!(out, "|---|{}---|", "---:|".repeat(labels.len()))?;
    let here = here();
    for (path, row) in view.rows() {
        if row.all.functions.total == 0 {
            continue;
        }
        let cells: Vec<_> = figures(row, labels.len())
            .map(|it| it.map_or("-".to_owned(), |it| percent(it.lines)))
            .collect();
        writeln!(
            out,
            "| `{}` | {} | {} |",
            below(path, &here),
            cells.join(" | "),
            missed(view, path)
        )?;
    }
    writeln!(out, "\n</details>")
}

/// Names of the columns, and of all of them where there are several.
fn labels(view: &View) -> Vec<String> {
    let mut labels: Vec<_> = view.columns.iter().map(|it| it.label.clone()).collect();
    if labels.len() > 1 {
        labels.push("**all**".to_owned());
    }
    labels
}

/// What the labels are of.
fn figures(
    row: &Row,
    labels: usize,
) -> impl Iterator<Item = Option<crate::coverage::figures::Figures>> {
    let all = (labels > row.columns.len()).then_some(Some(row.all));
    row.columns.iter().copied().chain(all)
}

/// The lines that ran in no column, then those that ran in another.
fn missed(view: &View, path: &str) -> String {
    let file = view.file(path);
    let nowhere = file
        .lines
        .iter()
        .filter(|line| view.joined(&line.counts) == Some(0));
    let mut parts = vec![shortened(ranges(nowhere.map(|line| line.number)))];
    for (index, column) in view.columns.iter().enumerate() {
        let here = file
            .lines
            .iter()
            .filter(|line| line.counts[index] == Some(0) && view.joined(&line.counts) > Some(0));
        let here = shortened(ranges(here.map(|line| line.number)));
        if !here.is_empty() {
            parts.push(format!("on {}: {here}", column.label));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

fn shortened(mut ranges: Vec<String>) -> String {
    if ranges.len() > MOST_RANGES {
        ranges.truncate(MOST_RANGES);
        ranges.push("…".to_owned());
    }
    ranges.join(", ")
}

fn share(figure: Figure) -> String {
    format!("{} ({}/{})", percent(figure), figure.covered, figure.total)
}

fn percent(figure: Figure) -> String {
    let percent = figure.percent();
    percent.map_or("-".to_owned(), |percent| format!("{percent:.2}%"))
}
