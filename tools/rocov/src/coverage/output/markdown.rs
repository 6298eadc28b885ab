//! A summary in Markdown, for a comment on a pull request and for `$GITHUB_STEP_SUMMARY`.

use super::changed;
use super::parts;
use super::paths::{below, here, percent, ranges, share};
use crate::coverage::figures::Figures;
use crate::coverage::file::Line;
use crate::coverage::view::{Row, View};
use std::io::{self, Write};

/// Ranges of lines that are shown of a file: a comment may have 65,536 characters.
const MOST_RANGES: usize = 12;

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let labels = view.labels("**all**");
    writeln!(out, "### Coverage of GPU code\n")?;
    writeln!(out, "| | Lines | Functions | Regions | Branches |")?;
    writeln!(out, "|---|---:|---:|---:|---:|")?;
    for (label, figures) in labels.iter().zip(figures(view, &view.table().total)) {
        let it = figures.unwrap_or_default();
        let cells = [it.lines, it.functions, it.regions, it.branches].map(share);
        writeln!(out, "| {label} | {} |", cells.join(" | "))?;
    }

    if let Some(changed) = &view.changed {
        changed::write_markdown(view, changed, out)?;
    }

    parts::write_markdown(view, out)?;

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
            .map(|it| it.map_or("-".to_owned(), |it| percent(it.lines)))
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

/// What the columns and all of them have in a row.
fn figures(view: &View, row: &Row) -> Vec<Option<Figures>> {
    view.each(|index| row.columns[index], Some(row.all))
}

/// Those of `lines` that ran in no column, then those that ran in another.
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
