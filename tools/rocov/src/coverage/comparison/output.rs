//! How a comparison is written: as text, in Markdown and in JSON.

use super::{Change, Comparison, FunctionChange, LineChange, Pair, Totals};
use crate::coverage::figures::Figure;
use crate::coverage::output::paths::{below, here, ranges, share};
use crate::table::{Heading, table};
use anyhow::Result;
use std::io::Write;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Markdown,
    Json,
}

/// A heading and the lines under it.
type Section = (&'static str, Vec<String>);

/// Writes a comparison.
///
/// # Errors
///
/// When it cannot be written.
pub(super) fn write(comparison: &Comparison, format: Format, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Text => write_text(comparison, out)?,
        Format::Markdown => write_markdown(comparison, out)?,
        Format::Json => {
            serde_json::to_writer(&mut *out, comparison)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

const HEADINGS: [&str; 5] = ["", "What", "Before", "After", "Change"];

fn write_text(comparison: &Comparison, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{} -> {}\n", comparison.before, comparison.after)?;
    let headings = HEADINGS.map(|text| Heading {
        text,
        is_number: !matches!(text, "" | "What"),
    });
    let rows = comparison.totals.iter().flat_map(rows);
    write!(out, "{}", table(&headings, &rows.collect::<Vec<_>>()))?;
    for (heading, lines) in comparison.sections() {
        writeln!(out, "\n{heading}:")?;
        for line in lines {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn write_markdown(comparison: &Comparison, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "### Coverage of GPU code, before and after\n")?;
    writeln!(out, "| {} |", HEADINGS.join(" | "))?;
    writeln!(out, "|---|---|---:|---:|---:|")?;
    for row in comparison.totals.iter().flat_map(rows) {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    for (heading, lines) in comparison.sections() {
        writeln!(out, "\n**{heading}**\n")?;
        for line in lines {
            writeln!(out, "- {line}")?;
        }
    }
    Ok(())
}

/// A row for each kind of figure that there is any of.
fn rows(totals: &Totals) -> Vec<Vec<String>> {
    let rows = [
        ("lines", totals.lines),
        ("functions", totals.functions),
        ("regions", totals.regions),
        ("branches", totals.branches),
    ];
    let rows = rows
        .into_iter()
        .filter(|(_, it)| it.before.total + it.after.total > 0);
    rows.map(|(what, it)| {
        vec![
            totals.name.clone(),
            what.to_owned(),
            share(it.before),
            share(it.after),
            difference(it),
        ]
    })
    .collect()
}

/// What was gained in percent, with a sign.
fn difference(figure: Pair<Figure>) -> String {
    match (figure.before.percent(), figure.after.percent()) {
        (Some(before), Some(after)) if figure.before == figure.after && before == after => {
            "=".to_owned()
        }
        (Some(before), Some(after)) => format!("{:+.2}%", after - before),
        _ => "-".to_owned(),
    }
}

impl Comparison {
    /// What there is to say beyond totals.
    fn sections(&self) -> Vec<Section> {
        let here = here();
        let place = |path: &str| below(path, &here).into_owned();
        let lines = |which: &dyn Fn(&LineChange) -> &Vec<u32>| -> Vec<String> {
            let changes = self.lines.iter().filter(|it| !which(it).is_empty());
            let line = |it: &LineChange| {
                let ranges = ranges(which(it).iter().copied()).join(", ");
                format!("{}, on {}: {ranges}", place(&it.filename), it.arch)
            };
            changes.map(line).collect()
        };
        let functions = |change: Change| -> Vec<String> {
            let changes = self.functions.iter().filter(|it| it.change == change);
            let line = |it: &FunctionChange| {
                let (what, name) = (it.what(), &it.name);
                let place = format!("{}:{}", place(&it.filename), it.line);
                let lines = match (it.lines.before, it.lines.after) {
                    (Some(before), Some(after)) => format!("{} -> {} lines", of(before), of(after)),
                    (None, Some(after)) => format!("new, {} lines", of(after)),
                    (Some(before), None) => format!("had {} lines", of(before)),
                    (None, None) => String::new(),
                };
                format!("{what} {name} ({place}), on {}: {lines}", it.arch)
            };
            changes.map(line).collect()
        };
        let files = self.files.iter().map(|it| {
            let share = |figure: Option<Figure>| figure.map_or("not there".to_owned(), share);
            let (before, after) = (share(it.lines.before), share(it.lines.after));
            format!(
                "{}, on {}: {before} -> {after}",
                place(&it.filename),
                it.arch
            )
        });
        let sections = [
            ("Archs that are gone", self.only_before.clone()),
            ("New archs", self.only_after.clone()),
            ("Files whose lines changed", files.collect()),
            ("Newly covered lines", lines(&|it| &it.newly_covered)),
            ("Newly missed lines", lines(&|it| &it.newly_missed)),
            ("Functions that now run", functions(Change::Gained)),
            ("Functions that no longer run", functions(Change::Lost)),
            ("Functions that ran and are gone", functions(Change::Gone)),
            ("New functions that do not run", functions(Change::New)),
            (
                "Changed functions, whose lines are not compared",
                functions(Change::Changed),
            ),
        ];
        let has_any = |(_, lines): &Section| !lines.is_empty();
        sections.into_iter().filter(has_any).collect()
    }

    /// One line for each thing that ran before, is still there and does not run any more, and for
    /// each arch and file with such things that is not there at all.
    pub(crate) fn losses(&self) -> Vec<String> {
        let archs = self.only_before.iter();
        let archs = archs.map(|arch| format!("{arch}: nothing of it is in {}", self.after));
        let gone = self
            .files
            .iter()
            .filter(|it| it.ran_before && it.lines.after.is_none());
        let files = gone.map(|it| {
            format!(
                "{}: {} ran and is not there any more: it was removed, or its code object was not \
                 loaded",
                it.arch, it.filename
            )
        });
        let lines = self.lines.iter().filter(|it| !it.newly_missed.is_empty());
        let lines = lines.map(|it| {
            let ranges = ranges(it.newly_missed.iter().copied()).join(", ");
            format!("{}: {}: lines {ranges} no longer run", it.arch, it.filename)
        });
        let functions = self.functions.iter().filter(|it| it.change == Change::Lost);
        let functions = functions.map(|it| {
            let (what, name) = (it.what(), &it.name);
            format!(
                "{}: {what} {name} no longer runs ({}:{})",
                it.arch, it.filename, it.line
            )
        });
        archs.chain(files).chain(lines).chain(functions).collect()
    }
}

impl FunctionChange {
    fn what(&self) -> &'static str {
        if self.is_kernel { "kernel" } else { "function" }
    }
}

fn of(figure: Figure) -> String {
    format!("{}/{}", figure.covered, figure.total)
}
