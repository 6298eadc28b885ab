//! A summary in Markdown, for a comment on a pull request and for `$GITHUB_STEP_SUMMARY`.

use std::io::{self, Write};
use std::path::Path;

use super::excluded::{excluded, excluded_branches_of};
use super::markdown_text::{Inline, Markdown};
use super::missed_lines::missed;
use super::{breakdown, changed};
use crate::coverage::figures::{Figures, Measure};
use crate::coverage::report::too_low;
use crate::coverage::view::{Row, View};
use crate::support::paths::{below, here};
use crate::term::line_ranges::ranges;

/// Writes the summary, with a list of excluded lines if that `has_excluded`.
pub(super) fn write(view: &View, has_excluded: bool, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Markdown::new(out);
    let labels = Inline::labels(view);
    out.own("### Coverage of GPU code\n")?;
    let headings = ["", "Lines", "Functions", "Regions", "Branches"];
    out.head(&headings.map(Inline::text), |column| column > 0)?;
    for (label, figures) in labels.iter().zip(figures(view, &view.table().total)) {
        let total = figures.unwrap_or_default();
        let figures = [total.lines, total.functions, total.regions, total.branches].into_iter();
        let mut cells = vec![label.clone()];
        cells.extend(figures.map(|figure| Inline::text(&figure.share_text())));
        out.row(&cells)?;
    }

    for carried in &view.carried {
        let name = Inline::text(&format!("{}, {}", carried.label, carried.age()));
        let shares = Measure::ALL.map(|measure| carried.column.total.figure(measure).share_text());
        let shares = shares.iter().map(|share| Inline::text(share));
        out.row(&[name].into_iter().chain(shares).collect::<Vec<_>>())?;
    }

    for column in view.columns.iter().filter(|column| column.non_atomic > 0) {
        let start = format!("Counts of {} are too low", column.label);
        out.note(&start, &format!("{}.", too_low(column.non_atomic)))?;
    }

    if let Some(excluded) = excluded(view) {
        out.note("Excluded", &format!("{excluded}."))?;
    }

    if let Some(changed) = &view.changed {
        changed::write_markdown(view, changed, out)?;
    }

    breakdown::write_markdown(view, out)?;

    out.own("\n<details><summary>Files: lines</summary>\n")?;
    let mut headings = vec![Inline::text("File")];
    headings.extend(labels);
    headings.push(Inline::text("Not run"));
    let last = headings.len() - 1;
    out.head(&headings, |column| column > 0 && column < last)?;
    let here = here();
    for (path, row) in view.rows() {
        if row.all.functions.total == 0 {
            continue;
        }
        let mut cells = vec![Inline::code(&below(path, &here))];
        cells.extend(figures(view, row).into_iter().map(|figures| {
            let percent = figures.map(|figures| figures.lines.percent_text());
            Inline::text(percent.as_deref().unwrap_or("-"))
        }));
        cells.push(Inline::text(&missed(view, &view.file(path).lines)));
        out.row(&cells)?;
    }
    out.own("\n</details>")?;
    if has_excluded {
        let paths = || view.paths.iter().map(|path| &**path);
        let lines = paths().flat_map(|path| {
            let by_reason = view.excluded_by_reason(path).into_iter();
            by_reason
                .map(move |(reason, lines)| (path, ranges(lines).join(", "), reason.to_string()))
        });
        write_excluded(
            "\n<details><summary>Excluded lines</summary>\n",
            &lines.collect::<Vec<_>>(),
            &here,
            out,
        )?;
        let branches = paths().flat_map(|path| {
            let branches = excluded_branches_of(view, path).into_iter();
            branches.map(move |(line, about)| (path, line.to_string(), about))
        });
        let branches: Vec<_> = branches.collect();
        write_excluded(
            "\n<details><summary>Excluded branches on other lines</summary>\n",
            &branches,
            &here,
            out,
        )?;
    }
    Ok(())
}

/// Writes what is left out behind the head of a part that opens: files, lines and reasons.
fn write_excluded(
    head: &'static str,
    all: &[(&str, String, String)],
    here: &Path,
    out: &mut Markdown<'_>,
) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    out.own(head)?;
    out.head(&["File", "Lines", "Reason"].map(Inline::text), |_| false)?;
    for (path, lines, reason) in all {
        let file = Inline::code(&below(path, here));
        out.row(&[file, Inline::text(lines), Inline::text(reason)])?;
    }
    out.own("\n</details>")
}

/// The figures of a row in each column, and in all of them.
fn figures(view: &View, row: &Row) -> Vec<Option<Figures>> {
    view.each(|index| row.columns[index], Some(row.all))
}
