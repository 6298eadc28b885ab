//! A summary in Markdown, for a comment on a pull request and for `$GITHUB_STEP_SUMMARY`.

use std::io::{self, Write};

use super::{breakdown, changed};
use crate::coverage::figures::{Figure, Figures};
use crate::coverage::file::Line;
use crate::coverage::report::too_low;
use crate::coverage::view::{Row, View};
use crate::support::paths::{below, here};
use crate::term::line_ranges::ranges;

/// Ranges of lines that are shown of a file: a comment may have 65,536 characters.
const MOST_RANGES: usize = 12;

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let labels = view.labels("**all**");
    writeln!(out, "### Coverage of GPU code\n")?;
    writeln!(out, "| | Lines | Functions | Regions | Branches |")?;
    writeln!(out, "|---|---:|---:|---:|---:|")?;
    for (label, figures) in labels.iter().zip(figures(view, &view.table().total)) {
        let it = figures.unwrap_or_default();
        let cells = [it.lines, it.functions, it.regions, it.branches].map(Figure::share_text);
        writeln!(out, "| {label} | {} |", cells.join(" | "))?;
    }

    for column in view.columns.iter().filter(|column| column.non_atomic > 0) {
        let (label, reason) = (&column.label, too_low(column.non_atomic));
        writeln!(out, "\n**Counts of {label} are too low**: {reason}.")?;
    }

    if let Some(changed) = &view.changed {
        changed::write_markdown(view, changed, out)?;
    }

    breakdown::write_markdown(view, out)?;

    writeln!(out, "\n<details><summary>Files: lines</summary>\n")?;
    writeln!(out, "| File | {} | Not run |", labels.join(" | "))?;
    writeln!(out, "|---|{}---|", "---:|".repeat(labels.len()))?;
    let here = here();
    for (path, row) in view.rows() {
        if row.all.functions.total == 0 {
            continue;
        }
        let cells: Vec<_> = figures(view, row)
            .into_iter()
            .map(|it| it.map_or("-".to_owned(), |it| it.lines.percent_text()))
            .collect();
        writeln!(
            out,
            "| `{}` | {} | {} |",
            below(path, &here),
            cells.join(" | "),
            missed(view, &view.file(path).lines)
        )?;
    }
    writeln!(out, "\n</details>")
}

/// The figures of a row in each column, and in all of them.
fn figures(view: &View, row: &Row) -> Vec<Option<Figures>> {
    view.each(|index| row.columns[index], Some(row.all))
}

/// The numbers of `lines` that ran in no column, then of those that ran in another one.
pub(super) fn missed(view: &View, lines: &[Line]) -> String {
    let missed = view.missed(lines);
    let mut parts = vec![shortened(ranges(missed.nowhere))];
    let here = missed.here.into_iter();
    parts.extend(here.map(|(label, lines)| format!("on {label}: {}", shortened(ranges(lines)))));
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
