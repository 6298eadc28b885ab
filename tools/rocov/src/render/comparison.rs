//! A comparison as text, in Markdown and in JSON.

use std::io::Write;

use anyhow::Result;

use super::markdown_text::{Inline, Markdown};
use crate::coverage::comparison::{
    Comparison, FunctionChange, FunctionFate, KindChange, LineChange, Pair, Totals,
};
use crate::coverage::figures::Figure;
use crate::coverage::line_table::is_without_lines;
use crate::profdata::{CountKind, CountKinds};
use crate::support::paths::{below, here};
use crate::term::line_ranges::ranges;
use crate::term::lines::Lines;
use crate::term::plural::count;
use crate::term::table::Heading;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparisonFormat {
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
/// Fails if it cannot be written.
pub(crate) fn write(
    comparison: &Comparison,
    format: ComparisonFormat,
    out: &mut dyn Write,
) -> Result<()> {
    match format {
        ComparisonFormat::Text => write_text(comparison, out)?,
        ComparisonFormat::Markdown => write_markdown(comparison, out)?,
        ComparisonFormat::Json => {
            serde_json::to_writer(&mut *out, comparison)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

const HEADINGS: [&str; 5] = ["", "What", "Before", "After", "Change"];

fn write_text(comparison: &Comparison, out: &mut dyn Write) -> Result<()> {
    let out = &mut Lines::new(out);
    out.line(format_args!(
        "{} -> {}",
        comparison.before, comparison.after
    ))?;
    out.gap()?;
    let headings = HEADINGS.map(|text| Heading {
        text,
        is_number: !matches!(text, "" | "What"),
    });
    let rows = comparison
        .totals
        .iter()
        .flat_map(|total| rows(comparison, total));
    out.table(&headings, &rows.collect::<Vec<_>>())?;
    for (heading, lines) in sections(comparison) {
        let lines = lines.into_iter().map(|line| format!("  {line}"));
        out.section(&format!("{heading}:"), lines)?;
    }
    Ok(())
}

fn write_markdown(comparison: &Comparison, out: &mut dyn Write) -> Result<()> {
    let out = &mut Markdown::new(out);
    out.own("### Coverage of GPU code, before and after\n")?;
    out.head(&HEADINGS.map(Inline::text), |column| column > 1)?;
    for row in comparison
        .totals
        .iter()
        .flat_map(|total| rows(comparison, total))
    {
        let cells: Vec<_> = row.iter().map(|cell| Inline::text(cell)).collect();
        out.row(&cells)?;
    }
    for (heading, lines) in sections(comparison) {
        out.own("")?;
        out.title(heading)?;
        for line in lines {
            out.item(&line)?;
        }
    }
    Ok(())
}

/// A row for each kind of figure that there is any of.
fn rows(comparison: &Comparison, totals: &Totals) -> Vec<Vec<String>> {
    let rows = [
        ("lines", totals.lines),
        ("functions", totals.functions),
        ("regions", totals.regions),
        ("branches", totals.branches),
    ];
    let rows = rows
        .into_iter()
        .filter(|(_, pair)| pair.before.total + pair.after.total > 0);
    rows.map(|(what, pair)| {
        vec![
            totals.name.clone(),
            what.to_owned(),
            pair.before.share_text(),
            pair.after.share_text(),
            match comparison.has_comparable_totals(&totals.name) {
                true => difference(pair),
                false => "-".to_owned(),
            },
        ]
    })
    .collect()
}

/// The difference in percentage points, with a sign.
fn difference(figure: Pair<Figure>) -> String {
    match (figure.before.percent(), figure.after.percent()) {
        (Some(before), Some(after)) if figure.before == figure.after && before == after => {
            "=".to_owned()
        }
        (Some(before), Some(after)) => format!("{:+.2} points", after - before),
        _ => "-".to_owned(),
    }
}

/// The sections after the totals.
fn sections(comparison: &Comparison) -> Vec<Section> {
    let here = here();
    let place = |path: &str| below(path, &here).into_owned();
    let lines = |which: &dyn Fn(&LineChange) -> &Vec<u32>| -> Vec<String> {
        let changes = comparison
            .lines
            .iter()
            .filter(|line| !which(line).is_empty());
        let line = |change: &LineChange| {
            let ranges = ranges(which(change).iter().copied()).join(", ");
            format!("{}, on {}: {ranges}", place(&change.filename), change.arch)
        };
        changes.map(line).collect()
    };
    let functions = |change: FunctionFate| -> Vec<String> {
        let changes = comparison
            .functions
            .iter()
            .filter(|function| function.change == change);
        let line = |change: &FunctionChange| {
            let (what, name) = (change.what(), &change.name);
            if is_without_lines(&change.filename) {
                return format!("{what} {name}, on {}", change.arch);
            }
            let place = format!("{}:{}", place(&change.filename), change.line);
            let lines = match (change.lines.before, change.lines.after) {
                (Some(before), Some(after)) => {
                    format!("{} -> {} lines", share(before), share(after))
                }
                (None, Some(after)) => format!("new, {} lines", share(after)),
                (Some(before), None) => format!("had {} lines", share(before)),
                (None, None) => String::new(),
            };
            format!("{what} {name} ({place}), on {}: {lines}", change.arch)
        };
        changes.map(line).collect()
    };
    let files = comparison.files.iter().map(|file| {
        let share =
            |figure: Option<Figure>| figure.map_or("not there".to_owned(), Figure::share_text);
        let (before, after) = (share(file.lines.before), share(file.lines.after));
        format!(
            "{}, on {}: {before} -> {after}",
            place(&file.filename),
            file.arch
        )
    });
    let sections = [
        ("Archs that are gone", comparison.only_before.clone()),
        ("New archs", comparison.only_after.clone()),
        (
            "Counted differently, so totals are not compared",
            comparison.other_kinds.iter().map(other_kinds).collect(),
        ),
        ("Files whose lines changed", files.collect()),
        (
            "Newly covered lines",
            lines(&|change| &change.newly_covered),
        ),
        ("Newly missed lines", lines(&|change| &change.newly_missed)),
        ("Functions that now run", functions(FunctionFate::Gained)),
        (
            "Functions that no longer run",
            functions(FunctionFate::Lost),
        ),
        (
            "Functions that ran before, but are gone",
            functions(FunctionFate::Gone),
        ),
        (
            "New functions that do not run",
            functions(FunctionFate::New),
        ),
        (
            "Changed functions, whose lines are not compared",
            functions(FunctionFate::Changed),
        ),
    ];
    let has_any = |(_, lines): &Section| !lines.is_empty();
    sections.into_iter().filter(has_any).collect()
}

/// The kinds of counts of an arch, and the functions that are not compared in full.
fn other_kinds(change: &KindChange) -> String {
    let names = |kinds: &CountKinds| -> String {
        let names: Vec<_> = kinds.iter().copied().map(CountKind::name).collect();
        names.join(", ")
    };
    let (before, after) = (names(&change.kinds.before), names(&change.kinds.after));
    let mut text = format!("{}: {before} -> {after}", change.arch);
    for (number, what) in [
        (change.not_compared, "whose lines are not compared"),
        (change.left_out, "that only one side contains"),
    ] {
        if number > 0 {
            text += &format!("; {} {what}", count(number, "function"));
        }
    }
    text
}

fn share(figure: Figure) -> String {
    format!("{}/{}", figure.covered, figure.total)
}
