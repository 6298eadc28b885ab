//! Questions in SQL to a data set, which DataFusion answers.

mod table;

use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};
use datafusion::arrow::array::{Int32Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures_util::StreamExt;
use rocov::support::diagnostic::diagnostic;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use self::table::SqlTable;
use crate::condition::RunCondition;
use crate::schema::RUN;
use crate::selection::no_run;
use crate::store::DataSet;

/// The commits and lines that a question names, and its memory.
pub struct SqlParameters<'a> {
    /// The first commit in the table `parameter`, where an empty text stands for none.
    pub since: Option<&'a str>,
    /// The second commit in that table.
    pub until: Option<&'a str>,
    /// The table `changed`: files and lines.
    pub changed: &'a [(String, i32)],
    /// The most bytes of memory for rows of the engine.
    pub memory: usize,
    /// An empty directory for the files of rows that memory has no place for.
    pub spilled: TempDir,
}

/// The rows of an answer.
pub struct SqlAnswer {
    stream: SendableRecordBatchStream,
    memory: usize,
    runtime: Runtime,
    /// The files of rows that memory has no place for.
    _spilled: TempDir,
    /// Dropped here, not by a thread of the engine, which must not wait as the client of a bucket does.
    _set: Arc<DataSet>,
}

/// Asks a data set.
///
/// # Errors
///
/// Fails if the text is no question, if a file of the data set is damaged, or if no run has a commit of `parameters`.
pub fn ask(set: DataSet, sql: &str, parameters: SqlParameters<'_>) -> Result<SqlAnswer> {
    for commit in [parameters.since, parameters.until].into_iter().flatten() {
        let condition = format!("commit={commit}").parse::<RunCondition>();
        let condition = [condition.map_err(
            |error| diagnostic!("{commit:?} is not a commit: {error}"; "use one in the data set"),
        )?];
        if set.parts(&RUN, &condition)?.is_empty() {
            return Err(no_run(&set, &condition)?.into());
        }
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let environment = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(parameters.memory)))
        .with_temp_file_path(parameters.spilled.path())
        .build_arc();
    let environment = environment.map_err(|error| explained(&error, parameters.memory))?;
    let config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true);
    let context = SessionContext::new_with_config_rt(config, environment);
    let runtime = Builder::new_multi_thread().worker_threads(threads).build();
    let runtime = runtime.context("cannot start threads")?;
    let set = Arc::new(set);
    let stream = register(&context, &set, &parameters).and_then(|()| {
        let stream = runtime.block_on(stream(&context, sql));
        stream.map_err(|error| explained(&error, parameters.memory))
    })?;
    Ok(SqlAnswer {
        stream,
        memory: parameters.memory,
        runtime,
        _spilled: parameters.spilled,
        _set: set,
    })
}

/// Gives the engine the tables.
fn register(
    context: &SessionContext,
    set: &Arc<DataSet>,
    parameters: &SqlParameters<'_>,
) -> Result<()> {
    for (table, parts) in set.tables()? {
        let provider = SqlTable::new(Arc::clone(set), table, parts);
        context.register_table(table.name, Arc::new(provider))?;
    }
    let text = |value: Option<&str>| {
        Arc::new(StringViewArray::from_iter_values([
            value.unwrap_or_default()
        ]))
    };
    let parameter = RecordBatch::try_from_iter([
        ("since", text(parameters.since) as _),
        ("until", text(parameters.until) as _),
    ])?;
    context.register_batch("parameter", parameter)?;
    let files = parameters.changed.iter().map(|(file, _)| file);
    let lines = parameters.changed.iter().map(|(_, line)| *line);
    let changed = RecordBatch::try_from_iter([
        (
            "file",
            Arc::new(StringViewArray::from_iter_values(files)) as _,
        ),
        ("line", Arc::new(Int32Array::from_iter_values(lines)) as _),
    ])?;
    context.register_batch("changed", changed)?;
    Ok(())
}

/// Begins to answer. A question changes nothing.
async fn stream(
    context: &SessionContext,
    sql: &str,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let options = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let frame = context.sql_with_options(sql, options).await?;
    frame.execute_stream().await
}

/// The error of the engine, on one line.
fn explained(error: &DataFusionError, memory: usize) -> anyhow::Error {
    match error.find_root() {
        DataFusionError::External(inner) => {
            let mut text = inner.to_string();
            let mut cause = inner.source();
            while let Some(inner) = cause {
                text += &format!(": {inner}");
                cause = inner.source();
            }
            anyhow::Error::msg(text)
        }
        DataFusionError::ResourcesExhausted(_) => diagnostic!(
            "the answer needs more memory than {} MiB", memory >> 20;
            "allow more with --memory MIB"
        )
        .into(),
        other => {
            let text = other.strip_backtrace();
            let words: Vec<_> = text.split_whitespace().collect();
            diagnostic!("cannot run the query: {}", words.join(" "); "fix the SQL").into()
        }
    }
}

impl SqlAnswer {
    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

/// The rows, in parts. A part is an error if a file is damaged, or if the question cannot be answered.
impl Iterator for SqlAnswer {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.runtime.block_on(self.stream.next())?;
        Some(batch.map_err(|error| explained(&error, self.memory)))
    }
}
