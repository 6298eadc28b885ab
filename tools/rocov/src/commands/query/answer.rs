//! Answers of the engine, as a table, CSV or JSON.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use rocov_fleet::arrow::array::RecordBatch;
use rocov_fleet::arrow::csv;
use rocov_fleet::arrow::json::WriterBuilder;
use rocov_fleet::arrow::json::writer::JsonArray;
use rocov_fleet::arrow::util::display::{ArrayFormatter, FormatOptions};
use rocov_fleet::{DataSet, SqlAnswer, SqlParameters, ask};

use super::old_lines::old_lines;
use crate::cli::{AnswerFormat, QueryArguments};
use crate::support::{mmap, temporary};
use crate::term::exit_status::CommandResult;
use crate::term::print::{self, Stdout};
use crate::term::table::{Heading, table};

/// The bytes of a MiB.
const MIB: usize = 1 << 20;

/// Prints the answer to the question `named`, or to that of `--sql`.
pub(super) fn answer(arguments: &QueryArguments, named: Option<&str>) -> CommandResult {
    let sql = match (named, &arguments.sql) {
        (Some(sql), _) => sql.to_owned(),
        (None, path) => read(path.as_deref().unwrap_or(Path::new("-")))?,
    };
    let changed = match &arguments.diff {
        None => Vec::new(),
        Some(path) => {
            let failed = || format!("cannot read the diff {}", path.display());
            old_lines(&read(path)?).with_context(failed)?
        }
    };
    let set = DataSet::open(&arguments.dataset)?;
    let parameters = SqlParameters {
        since: arguments.since.as_deref(),
        until: arguments.until.as_deref(),
        changed: &changed,
        memory: arguments.memory.get().saturating_mul(MIB),
        spilled: temporary::directory()?,
    };
    let answer = ask(set, &sql, parameters)?;
    match arguments.format {
        AnswerFormat::Table => as_table(answer)?,
        AnswerFormat::Csv => as_csv(answer)?,
        AnswerFormat::Json => as_json(answer)?,
    }
    Ok(0)
}

/// Reads the text of a file, or of standard input.
fn read(path: &Path) -> Result<String> {
    let text = match path == Path::new("-") {
        true => mmap::read_input_text().context("cannot read standard input")?,
        false => mmap::read_text(path)?,
    };
    String::from_utf8(text).with_context(|| format!("cannot read {}", path.display()))
}

fn as_table(answer: SqlAnswer) -> Result<()> {
    let schema = answer.schema();
    let headings = schema.fields().iter().map(|field| Heading {
        text: field.name(),
        is_number: field.data_type().is_numeric(),
    });
    let headings: Vec<_> = headings.collect();
    let mut rows = Vec::new();
    for batch in answer {
        let batch = batch?;
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns
                .iter()
                .map(|column| column.value(row).try_to_string());
            rows.push(cells.collect::<Result<Vec<_>, _>>()?);
        }
    }
    print::text(table(&headings, &rows).as_bytes())
}

fn as_csv(answer: SqlAnswer) -> Result<()> {
    let mut writer = csv::Writer::new(BufWriter::new(Stdout));
    // An answer without rows has a heading, too.
    writer.write(&RecordBatch::new_empty(answer.schema()))?;
    for batch in answer {
        writer.write(&batch?).context("cannot write CSV")?;
    }
    let written = writer.into_inner().flush();
    written.context("cannot write to standard output")
}

fn as_json(answer: SqlAnswer) -> Result<()> {
    let writer = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = writer.build::<_, JsonArray>(BufWriter::new(Stdout));
    for batch in answer {
        writer.write(&batch?).context("cannot write JSON")?;
    }
    writer.finish().context("cannot write JSON")?;
    let mut out = writer.into_inner();
    let written = out.write_all(b"\n").and_then(|()| out.flush());
    written.context("cannot write to standard output")
}
