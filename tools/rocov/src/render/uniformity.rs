//! The uniformity of code: a table for each column, and the lines that ran with idle lanes.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::coverage::uniformity::{ColumnUniformity, UniformLine, UniformityFigures};
use crate::coverage::view::View;
use crate::support::paths::below;
use crate::term::lines::Lines;
use crate::term::table::Heading;

/// The headings of numbers in the table.
const HEADINGS: [&str; 4] = ["Lines that ran", "Divergent", "Not known", "Uniform"];

pub(super) fn write_text(view: &View, base: &Path, out: &mut Lines<'_>) -> io::Result<()> {
    for uniformity in view.uniformity() {
        out.gap()?;
        out.line(format_args!("Uniformity on {}:", uniformity.column.label))?;
        out.gap()?;
        write_table(&uniformity, base, out)?;
        let divergent = uniformity.files.iter().flat_map(|(path, lines)| {
            let path = below(&path.to_string_lossy(), base).into_owned();
            let lines = lines.iter().filter(|line| line.is_divergent());
            lines.map(move |line| format!("  {path}:{}  {}", line.number, share(line)))
        });
        out.section(
            "Divergent lines, and the uniform share of their executions:",
            divergent,
        )?;
    }
    Ok(())
}

fn write_table(
    uniformity: &ColumnUniformity<'_>,
    base: &Path,
    out: &mut Lines<'_>,
) -> io::Result<()> {
    let [word, number] = [false, true].map(|is_number| move |text| Heading { text, is_number });
    let mut headings = vec![word("Filename")];
    headings.extend(HEADINGS.map(number));
    let files = uniformity.files.iter().map(|(path, lines)| {
        let name = below(&path.to_string_lossy(), base).into_owned();
        row(name, &UniformityFigures::from_lines(lines))
    });
    let total = row("TOTAL".to_owned(), &uniformity.total());
    let rows: Vec<_> = files.chain([total]).collect();
    out.table(&headings, &rows)
}

fn row(name: String, figures: &UniformityFigures) -> Vec<String> {
    let percent = figures.executions.percent();
    vec![
        name,
        figures.lines.to_string(),
        figures.divergent.to_string(),
        figures.unknown.to_string(),
        percent.map_or("-".to_owned(), percent_text),
    ]
}

fn share(line: &UniformLine) -> String {
    let percent = line
        .uniformity()
        .and_then(|uniformity| uniformity.percent());
    percent.map_or("-".to_owned(), percent_text)
}

/// A share in percent, rounded down: code with a divergent execution never has 100%.
fn percent_text(percent: f64) -> String {
    format!("{:.2}%", (percent * 100.0).floor() / 100.0)
}

/// The uniformity of each column in JSON; `None` if no column has it.
pub(super) fn json(view: &View, summary_only: bool) -> Option<Value> {
    let columns: Vec<_> = view
        .uniformity()
        .iter()
        .map(|uniformity| column_value(uniformity, summary_only))
        .collect();
    (!columns.is_empty()).then(|| columns.into())
}

fn column_value(uniformity: &ColumnUniformity<'_>, summary_only: bool) -> Value {
    let files = uniformity.files.iter().map(|(path, lines)| {
        let mut file = json!({
            "filename": path.to_string_lossy(),
            "summary": summary(&UniformityFigures::from_lines(lines)),
        });
        if !summary_only {
            let lines = lines.iter().map(|line| {
                json!({"line": line.number, "count": line.executions, "uniform": line.uniform})
            });
            file["lines"] = lines.collect();
        }
        file
    });
    json!({
        "name": uniformity.column.label,
        "files": files.collect::<Vec<_>>(),
        "totals": summary(&uniformity.total()),
    })
}

fn summary(figures: &UniformityFigures) -> Value {
    json!({
        "lines": figures.lines,
        "divergent": figures.divergent,
        "unknown": figures.unknown,
        "executions": {
            "count": figures.executions.known,
            "uniform": figures.executions.uniform,
            "percent": figures.executions.percent(),
        },
    })
}
