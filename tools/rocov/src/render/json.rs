//! llvm-cov's own JSON (llvm.coverage.json.export): an export for each column, in the order of
//! `rocov.columns`, which describes them.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{breakdown, changed, uniformity};
use crate::coverage::baseline_column::{Carried, Shares};
use crate::coverage::figures::{Figure, Figures, Measure};
use crate::coverage::function::{DecisionOutcome, Function, Location, Marks, Region, Sides};
use crate::coverage::model::Record;
use crate::coverage::report_json::{Head, SavedLines};
use crate::coverage::view::{Column, View};

/// The version of the format: that of LLVM 22, which lists the values that MC/DC saw.
const VERSION: &str = "3.1.0";

pub(super) fn write(view: &View, contents: JsonContents, out: &mut dyn Write) -> io::Result<()> {
    let summary_only = contents == JsonContents::Summary;
    let columns = view
        .columns
        .iter()
        .map(|column| head(view, column, contents));
    let mut rocov = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "columns": columns.collect::<Vec<_>>(),
    });
    for (name, parts) in [("components", &view.components), ("tests", &view.tests)] {
        if !parts.is_empty() {
            rocov[name] = breakdown::json(parts, summary_only, summary);
        }
    }
    if let Some(uniformity) = uniformity::json(view, summary_only) {
        rocov["uniformity"] = uniformity;
    }
    match view.excluded_lines() {
        0 => {}
        lines => rocov["excluded_lines"] = json!(lines),
    }
    if !summary_only && view.excluded_lines() > 0 {
        rocov["exclusions"] = exclusions(view);
    }
    let branches = excluded_branches(view);
    if !summary_only && !branches.is_empty() {
        rocov["excluded_branches"] = branches.into();
    }
    if !view.carried.is_empty() {
        rocov["carried_forward"] = view.carried.iter().map(carried).collect();
    }
    if let Some(changed) = &view.changed {
        rocov["changed_lines"] = changed::json(view, changed);
    }
    write!(
        out,
        r#"{{"rocov":{rocov},"type":"llvm.coverage.json.export","#
    )?;
    write!(out, r#""version":"{VERSION}","data":["#)?;
    for (index, column) in view.columns.iter().enumerate() {
        separate(index, out)?;
        write_export(view, index, column, contents, out)?;
    }
    writeln!(out, "]}}")
}

/// The lines that are left out of each file, by the reasons.
fn exclusions(view: &View) -> Value {
    let files = view.paths.iter().flat_map(|path| {
        let by_reason = view.excluded_by_reason(path).into_iter();
        by_reason.map(move |(reason, lines)| {
            let mut value = json!({
                "filename": &**path,
                "lines": lines,
                "kind": reason.kind(),
                "words": reason.words(),
            });
            if let Some(line) = reason.line() {
                value["line"] = json!(line);
            }
            if let Some(note) = reason.note() {
                value["note"] = json!(note);
            }
            value
        })
    });
    files.collect()
}

/// The sides of conditions that are left out, of lines that stay.
fn excluded_branches(view: &View) -> Vec<Value> {
    let branches = view.paths.iter().flat_map(|path| {
        let branches = view.excluded_branches(path).into_iter();
        branches.flat_map(move |(place, branch)| {
            let sides = [true, false].into_iter().zip(&branch.sides);
            let excluded = sides.filter_map(|(side, reason)| Some((side, reason.as_ref()?)));
            let excluded = excluded.map(|(side, reason)| {
                json!({
                    "filename": &**path,
                    "line": place.line,
                    "column": place.column,
                    "side": side,
                    "kind": reason.kind(),
                    "reason": reason.to_string(),
                })
            });
            excluded.collect::<Vec<_>>()
        })
    });
    branches.collect()
}

/// The figures of a column of earlier runs.
fn carried(carried: &Carried) -> Value {
    let column = &carried.column;
    let mut value = json!({
        "name": carried.label,
        "date": column.date,
        "days": carried.days,
        "summary": shares(&column.total),
    });
    if !column.components.is_empty() {
        let components = column.components.iter();
        let components = components.map(|(name, of)| json!({"name": name, "summary": shares(of)}));
        value["components"] = components.collect();
    }
    value
}

/// The figures of a part of a column of earlier runs.
fn shares(shares: &Shares) -> Value {
    let mut summary = json!({});
    for measure in Measure::ALL {
        let figure = shares.figure(measure);
        summary[measure.name()] = json!({
            "count": figure.total,
            "covered": figure.covered,
            "percent": figure.percent().unwrap_or_default(),
        });
    }
    summary
}

/// The facts about a column that llvm-cov's export does not have.
fn head(view: &View, column: &Column, contents: JsonContents) -> Head {
    let has_functions = contents == JsonContents::All;
    let records = shown(view, column).enumerate();
    let folded = records.flat_map(|(function, record)| {
        let branches = record.function.branches.iter().enumerate();
        branches.flat_map(move |(index, branch)| {
            let sides = branch.folded.into_iter().enumerate();
            let folded = sides.filter(|(_, is_folded)| *is_folded);
            folded.map(move |(side, _)| (function, index, side))
        })
    });
    let mut kernels: Vec<_> = column.kernels.iter().cloned().collect();
    kernels.sort_unstable();
    Head {
        name: column.label.clone(),
        side: column.side,
        binaries: column.binaries.iter().cloned().collect(),
        kernels,
        kinds: column.kinds.clone(),
        per: column.unit,
        non_atomic: column.non_atomic,
        line_tables: shown(view, column)
            .enumerate()
            .filter(|_| has_functions)
            .filter_map(|(number, record)| SavedLines::from_record(number, record))
            .collect(),
        folded: folded.filter(|_| has_functions).collect(),
        marks: shown(view, column)
            .enumerate()
            .filter(|(_, record)| has_functions && record.function.marks != Marks::default())
            .map(|(number, record)| (number, record.function.marks.clone()))
            .collect(),
        excluded_lines: match contents {
            JsonContents::Summary => Default::default(),
            JsonContents::All | JsonContents::Files => {
                let excluded = column.excluded.iter();
                excluded
                    .map(|(path, lines)| (path.to_string(), lines.keys().copied().collect()))
                    .collect()
            }
        },
    }
}

/// The functions of a column that are defined in files that are shown.
fn shown<'a>(view: &'a View, column: &'a Column) -> impl Iterator<Item = &'a Record> {
    let is_shown = |record: &&Record| {
        let path = record.function.main_path();
        view.paths.binary_search(path).is_ok()
    };
    column.records.iter().filter(is_shown)
}

fn write_export(
    view: &View,
    index: usize,
    column: &Column,
    contents: JsonContents,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, r#"{{"files":["#)?;
    let rows = view.rows();
    let rows = rows.filter_map(|(path, row)| Some((path, row.columns[index]?)));
    for (number, (path, figures)) in rows.enumerate() {
        separate(number, out)?;
        let mut file = match contents {
            JsonContents::Summary => json!({}),
            JsonContents::All | JsonContents::Files => file(column, path),
        };
        file["filename"] = json!(path);
        file["summary"] = summary(&figures);
        serde_json::to_writer(&mut *out, &file)?;
    }
    write!(out, "]")?;
    if contents == JsonContents::All {
        write!(out, r#","functions":["#)?;
        for (number, record) in shown(view, column).enumerate() {
            separate(number, out)?;
            serde_json::to_writer(&mut *out, &function(record))?;
        }
        write!(out, "]")?;
    }
    let total = view.table().total.columns[index].unwrap_or_default();
    write!(out, r#","totals":{}}}"#, summary(&total))
}

fn separate(index: usize, out: &mut dyn Write) -> io::Result<()> {
    if index > 0 { write!(out, ",") } else { Ok(()) }
}

fn file(column: &Column, path: &str) -> Value {
    let segments = column.segments_with_listed(path);
    let segments = segments.iter().map(|segment| {
        let place = segment.place;
        json!([
            place.line,
            place.column,
            segment.count,
            segment.has_count,
            segment.is_entry,
            segment.is_gap
        ])
    });
    let mut branches = Vec::new();
    let mut decisions = Vec::new();
    let mut expansions = Vec::new();
    for record in column.touching(path) {
        let function = &record.function;
        let is_here = |location: Location| &**function.path(location.file) == path;
        branches.extend(branches_where(record, is_here));
        let folded = function.marks.folded_branches.iter();
        let folded = folded.filter(|branch| is_here(branch.location));
        branches.extend(
            folded.map(|branch| Value::from(counted(branch.location, [0; 2], branch.kind))),
        );
        decisions.extend(decisions_where(record, is_here));
        let main = function.main_file();
        if &**function.path(main) == path {
            for (region, count) in function.regions.iter().zip(&record.counts.regions) {
                if function
                    .expansions()
                    .any(|expansion| expansion == region.location)
                    && region.location.file == main
                {
                    expansions.push(json!({
                        "filenames": filenames(function),
                        "source_region": self::region(region, *count),
                        "target_regions": regions(record),
                        "branches": nested_branches(record, region.location.expanded),
                    }));
                }
            }
        }
    }
    let mut file = json!({
        "segments": segments.collect::<Vec<_>>(),
        "branches": branches,
        "mcdc_records": decisions,
        "expansions": expansions,
    });
    if let Some(activities) = column.activities.get(path) {
        let lines = activities.iter().map(|(line, activity)| {
            json!({
                "line": line,
                "instructions": activity.instructions,
                "lanes": activity.lanes,
                "all_lanes": activity.all_lanes,
            })
        });
        file["activity"] = lines.collect();
    }
    file
}

fn function(record: &Record) -> Value {
    json!({
        "name": *record.function.name,
        "count": record.counts.calls,
        "filenames": filenames(&record.function),
        "regions": regions(record),
        "branches": branches_where(record, |_| true),
        "mcdc_records": decisions_where(record, |_| true),
    })
}

fn filenames(function: &Function) -> Vec<&str> {
    function.filenames.iter().map(|path| &**path).collect()
}

fn regions(record: &Record) -> Vec<Value> {
    let counted = record.function.regions.iter().zip(&record.counts.regions);
    counted.map(|(it, count)| region(it, *count)).collect()
}

fn region(region: &Region, count: u64) -> Value {
    let Location {
        span,
        file,
        expanded,
    } = region.location;
    json!([
        span.start.line,
        span.start.column,
        span.end.line,
        span.end.column,
        count,
        file,
        expanded,
        region.kind as u8
    ])
}

fn branches_where(record: &Record, is_wanted: impl Fn(Location) -> bool) -> Vec<Value> {
    let branches = record.function.branches.iter().zip(&record.counts.branches);
    branches
        .filter(|(branch, _)| is_wanted(branch.location))
        .map(|(branch, count)| Value::from(counted(branch.location, *count, branch.kind)))
        .collect()
}

/// The branches in an expansion, after those of the expansions in it.
fn nested_branches(record: &Record, file: u32) -> Vec<Value> {
    let function = &record.function;
    let inner = function
        .expansions()
        .filter(|expansion| expansion.file == file);
    // Files come after those that they are expanded in.
    let inner = inner.filter(|expansion| expansion.expanded > file);
    let mut branches: Vec<_> = inner
        .flat_map(|expansion| nested_branches(record, expansion.expanded))
        .collect();
    branches.extend(branches_where(record, |location| location.file == file));
    branches
}

fn decisions_where(record: &Record, is_wanted: impl Fn(Location) -> bool) -> Vec<Value> {
    let decisions = record.decisions();
    decisions
        .filter(|(decision, _)| is_wanted(decision.location))
        .map(|(decision, outcome)| {
            let DecisionOutcome {
                branch,
                covered,
                vectors,
            } = outcome;
            let mut elements = counted(decision.location, *branch, decision.kind);
            elements.push(json!(covered));
            elements.extend(vectors.as_ref().map(|vectors| json!(vectors)));
            Value::from(elements)
        })
        .collect()
}

/// The elements that branches and decisions begin with.
fn counted(location: Location, sides: Sides, kind: u8) -> Vec<Value> {
    let span = location.span;
    let places = [span.start, span.end];
    let mut elements: Vec<Value> = places
        .iter()
        .flat_map(|place| [place.line.into(), place.column.into()])
        .collect();
    elements.extend(sides.map(Value::from));
    elements.extend([location.file, location.expanded, kind.into()].map(Value::from));
    elements
}

fn summary(figures: &Figures) -> Value {
    let short = |figure: Figure| {
        let percent = figure.percent().unwrap_or(0.0);
        json!({"count": figure.total, "covered": figure.covered, "percent": percent})
    };
    let long = |figure: Figure| {
        let mut value = short(figure);
        value["notcovered"] = figure.missed().into();
        value
    };
    json!({
        "lines": short(figures.lines),
        "functions": short(figures.functions),
        "instantiations": short(figures.instantiations),
        "regions": long(figures.regions),
        "branches": long(figures.branches),
        "mcdc": long(figures.conditions),
    })
}

/// The contents of a report in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonContents {
    All,
    /// No functions.
    Files,
    /// Figures only.
    Summary,
}
