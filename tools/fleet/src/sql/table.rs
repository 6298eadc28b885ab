//! A table of a data set for DataFusion. It reads the files as a report does: those of runs that are not whole are
//! left out, and damage and other versions are named.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, AsArray, BinaryViewArray, BooleanArray, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringViewArray, StringViewBuilder, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, DataFusionError, Result as EngineResult};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

use crate::condition::RunKey;
use crate::file::{RowGroup, SharedBytes};
use crate::schema::{ColumnKind, DataTable};
use crate::store::{DataSet, PartFile};

/// The time zone of times.
const UTC: &str = "+00:00";

/// The batches that wait for the engine, for each share of a table.
const WAITING: usize = 2;

/// A table: its columns, and then those of its partitions.
#[derive(Debug)]
pub(super) struct SqlTable {
    set: Arc<DataSet>,
    table: &'static DataTable,
    keys: &'static [RunKey],
    schema: SchemaRef,
    parts: Vec<PartFile>,
}

/// Some files of a table, which one thread reads.
#[derive(Clone)]
struct TableShare {
    set: Arc<DataSet>,
    table: &'static DataTable,
    keys: &'static [RunKey],
    /// The columns that are wanted, by their places in the table.
    columns: Vec<usize>,
    schema: SchemaRef,
    parts: Vec<PartFile>,
}

impl SqlTable {
    /// A table of a data set, and its files that count.
    pub(super) fn new(set: Arc<DataSet>, table: &'static DataTable, parts: Vec<PartFile>) -> Self {
        // They are columns of text.
        let keys = table.partition.keys();
        let own = table
            .columns
            .iter()
            .map(|(name, kind)| (*name, data_type(*kind)));
        let of_keys = keys.iter().map(|key| (key.name(), DataType::Utf8View));
        let fields = own.chain(of_keys);
        let fields: Vec<_> = fields
            .map(|(name, kind)| Field::new(name, kind, false))
            .collect();
        Self {
            set,
            table,
            keys,
            schema: Arc::new(Schema::new(fields)),
            parts,
        }
    }

    /// Returns whether an expression is of partitions only.
    fn is_of_parts(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        let is_key = |name: &str| self.keys.iter().any(|key| key.name() == name);
        !columns.is_empty() && columns.iter().all(|column| is_key(column.name()))
    }

    /// The files whose partitions meet all `filters`.
    fn wanted(&self, state: &dyn Session, filters: &[Expr]) -> EngineResult<Vec<PartFile>> {
        let values = self.keys.iter().map(|key| {
            let values = self.parts.iter().map(|part| value(part, *key));
            let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
            (key.name(), values)
        });
        let values = RecordBatch::try_from_iter(values)?;
        let schema = DFSchema::try_from(values.schema())?;
        let mut parts: Vec<_> = self.parts.iter().map(Some).collect();
        for filter in filters.iter().filter(|filter| self.is_of_parts(filter)) {
            let filter = state.create_physical_expr(filter.clone(), &schema)?;
            let met = filter.evaluate(&values)?.into_array(parts.len())?;
            for (part, met) in parts.iter_mut().zip(met.as_boolean()) {
                *part = part.filter(|_| met == Some(true));
            }
        }
        Ok(parts.into_iter().flatten().cloned().collect())
    }
}

#[async_trait]
impl TableProvider for SqlTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        let supported = filters.iter().map(|filter| match self.is_of_parts(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        });
        Ok(supported.collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let parts = self.wanted(state, filters)?;
        let number = state.config().target_partitions().min(parts.len()).max(1);
        let mut shares = vec![Vec::new(); number];
        for (place, part) in parts.into_iter().enumerate() {
            shares[place % number].push(part);
        }
        let shares = shares.into_iter().map(|parts| {
            let share: Arc<dyn PartitionStream> = Arc::new(TableShare {
                set: Arc::clone(&self.set),
                table: self.table,
                keys: self.keys,
                columns: columns.clone(),
                schema: Arc::clone(&schema),
                parts,
            });
            share
        });
        let shares = shares.collect();
        let plan = StreamingTableExec::try_new(schema, shares, None, None, false, limit)?;
        Ok(Arc::new(plan))
    }
}

impl PartitionStream for TableShare {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), WAITING);
        let (share, sender) = (self.clone(), builder.tx());
        builder.spawn_blocking(move || {
            let mut is_wanted = true;
            let read = share.read(|batch| {
                is_wanted = sender.blocking_send(Ok(batch)).is_ok();
                is_wanted.then_some(()).context("nobody reads on")
            });
            match read {
                Err(error) if is_wanted => Err(DataFusionError::External(error.into())),
                _ => Ok(()),
            }
        });
        builder.build()
    }
}

impl fmt::Debug for TableShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files of {}", self.parts.len(), self.table.name)
    }
}

impl TableShare {
    /// Gives `take` the rows.
    ///
    /// # Errors
    ///
    /// Fails if a file is damaged, or if `take` fails.
    fn read(&self, mut take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let own = self.table.columns;
        let read = self.columns.iter().filter_map(|column| own.get(*column));
        let names: Vec<_> = read.map(|(name, _)| *name).collect();
        for opened in self.set.files(&self.parts, self.table) {
            let (part, file) = opened?;
            file.read(&names, |rows| {
                let batch = self.batch(part, rows);
                take(batch.with_context(|| self.set.damaged(part))?)
            })?;
        }
        Ok(())
    }

    /// The columns of rows in a file.
    fn batch(&self, part: &PartFile, rows: &RowGroup) -> Result<RecordBatch> {
        let own = self.table.columns;
        let mut place = 0;
        let arrays = self.columns.iter().map(|column| {
            let Some((_, kind)) = own.get(*column) else {
                let key = self.keys.get(column - own.len());
                let value = key.map(|key| value(part, *key)).unwrap_or_default();
                let values = std::iter::repeat_n(value, rows.number());
                let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
                return Ok(array);
            };
            place += 1;
            array(*kind, rows, place - 1)
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.number()));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// The value of a partition of a file.
fn value(part: &PartFile, key: RunKey) -> &str {
    match key {
        RunKey::Date => &part.date,
        RunKey::Commit => &part.commit,
        RunKey::Arch => &part.arch,
        RunKey::Run => &part.name,
    }
}

fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Text => DataType::Utf8View,
        ColumnKind::Bytes => DataType::BinaryView,
        ColumnKind::Int => DataType::Int32,
        ColumnKind::Long => DataType::Int64,
        ColumnKind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        ColumnKind::Flag => DataType::Boolean,
    }
}

/// The values of a column.
///
/// # Errors
///
/// Fails if a text is not UTF-8.
fn array(kind: ColumnKind, rows: &RowGroup, column: usize) -> Result<ArrayRef> {
    Ok(match kind {
        ColumnKind::Text => Arc::new(texts(rows.bytes(column))?),
        ColumnKind::Bytes => {
            let values = rows.bytes(column).iter().map(SharedBytes::data);
            Arc::new(BinaryViewArray::from_iter_values(values))
        }
        ColumnKind::Int => Arc::new(Int32Array::from(rows.ints(column).to_vec())),
        ColumnKind::Long => Arc::new(Int64Array::from(rows.longs(column).to_vec())),
        ColumnKind::Time => {
            let times = TimestampMicrosecondArray::from(rows.longs(column).to_vec());
            Arc::new(times.with_timezone(UTC))
        }
        ColumnKind::Flag => Arc::new(BooleanArray::from(rows.flags(column).to_vec())),
    })
}

fn texts(values: &[SharedBytes]) -> Result<StringViewArray> {
    let mut builder = StringViewBuilder::with_capacity(values.len());
    for value in values {
        let text = std::str::from_utf8(value.data());
        builder.append_value(text?);
    }
    Ok(builder.finish())
}
