//! Rows, and the Parquet files that hold them.

use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use rocov::support::diagnostic::{Diagnostic, fail};

use crate::schema::{ColumnKind, DataTable, VERSION};
use crate::storage::Storage;
use crate::storage::content::Content;

/// Text or bytes, which clones share.
pub use parquet::data_type::ByteArray as SharedBytes;

/// The key of the version in the metadata of a file.
const VERSION_KEY: &str = "rocov_dataset";
/// The key of the name of the files in other tables.
const PART_KEY: &str = "rocov_part";
/// The key of the names of files that do not count, with a space between them.
const ABANDONED_KEY: &str = "rocov_abandoned";

/// The next step for a file that cannot be read.
const REMEDY: &str = "restore it from a copy, or import the runs into a new data set";

/// The rows of a file in memory. A file has as many as an import wrote at once.
const ROWS_AT_ONCE: usize = 1 << 13;

/// The files that are open at a time. Those of a bucket are in memory.
const FILES_AT_ONCE: usize = 16;

/// The values of a column.
#[derive(Clone, Debug)]
enum Values {
    Bytes(Vec<SharedBytes>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Flag(Vec<bool>),
}

/// A value of a row.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text or bytes. A clone shares them.
    Bytes(SharedBytes),
    /// A number of 32 bits.
    Int(i32),
    /// A number of 64 bits, or a time.
    Long(i64),
    /// A flag.
    Flag(bool),
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Rows {
    pub(crate) table: &'static DataTable,
    columns: Vec<Values>,
    number: usize,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.into())
    }
}

impl From<&SharedBytes> for Value {
    fn from(bytes: &SharedBytes) -> Self {
        Self::Bytes(bytes.clone())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// A number of at most 31 bits. A larger one is the largest of these.
impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(number.try_into().unwrap_or(i32::MAX))
    }
}

/// A number of at most 31 bits. A larger one is the largest of these.
impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Int(number.try_into().unwrap_or(i32::MAX))
    }
}

/// A number of at most 63 bits. A larger one is the largest of these.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Long(number.try_into().unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl Values {
    fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Text | ColumnKind::Bytes => Self::Bytes(Vec::new()),
            ColumnKind::Int => Self::Int(Vec::new()),
            ColumnKind::Long | ColumnKind::Time => Self::Long(Vec::new()),
            ColumnKind::Flag => Self::Flag(Vec::new()),
        }
    }

    /// The values of a column that a file of an earlier version has not.
    fn defaults(kind: ColumnKind, number: usize) -> Self {
        match Self::new(kind) {
            Self::Bytes(_) => Self::Bytes(vec![SharedBytes::from(""); number]),
            Self::Int(_) => Self::Int(vec![0; number]),
            Self::Long(_) => Self::Long(vec![0; number]),
            Self::Flag(_) => Self::Flag(vec![false; number]),
        }
    }

    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Bytes(values), Value::Bytes(value)) => values.push(value),
            (Self::Int(values), Value::Int(value)) => values.push(value),
            (Self::Long(values), Value::Long(value)) => values.push(value),
            (Self::Flag(values), Value::Flag(value)) => values.push(value),
            (column, value) => unreachable!("{value:?} for a column of {column:?}"),
        }
    }

    fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Bytes(values), Self::Bytes(mut more)) => values.append(&mut more),
            (Self::Int(values), Self::Int(mut more)) => values.append(&mut more),
            (Self::Long(values), Self::Long(mut more)) => values.append(&mut more),
            (Self::Flag(values), Self::Flag(mut more)) => values.append(&mut more),
            (column, more) => unreachable!("{more:?} for a column of {column:?}"),
        }
    }

    fn write(&self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Bytes(values) => put::<ByteArrayType>(column, values),
            Self::Int(values) => put::<Int32Type>(column, values),
            Self::Long(values) => put::<Int64Type>(column, values),
            Self::Flag(values) => put::<BoolType>(column, values),
        }
    }
}

fn put<T: DataType>(column: &mut SerializedColumnWriter<'_>, values: &[T::T]) -> Result<()> {
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(())
}

impl Rows {
    /// No rows.
    pub fn new(table: &'static DataTable) -> Self {
        Self {
            table,
            columns: table
                .columns
                .iter()
                .map(|(_, kind)| Values::new(*kind))
                .collect(),
            number: 0,
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// Panics if the values are not those of the table's columns.
    pub fn push<const N: usize>(&mut self, row: [Value; N]) {
        assert_eq!(N, self.columns.len(), "columns of {}", self.table.name);
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
        self.number += 1;
    }

    /// Adds the rows of another value of this table.
    pub(crate) fn append(&mut self, more: Self) {
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            column.append(more);
        }
        self.number += more.number;
    }

    /// The number of rows.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The contents of a file with the rows.
    ///
    /// # Errors
    ///
    /// Fails if they are too many.
    pub(crate) fn file(&self, entry: Option<&Entry>) -> Result<Vec<u8>> {
        let schema = Arc::new(parse_message_type(&self.table.message())?);
        let mut contents = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut contents, schema, properties(entry))?;
        if self.number > 0 {
            let mut group = writer.next_row_group()?;
            for column in &self.columns {
                if let Some(mut writer) = group.next_column()? {
                    column.write(&mut writer)?;
                    writer.close()?;
                }
            }
            group.close()?;
        }
        writer.close()?;
        Ok(contents)
    }
}

/// The files of other tables that a file of runs or code objects names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name of the files there with its rows.
    pub(crate) part: String,
    /// The names of files there that do not count, now or later.
    pub(crate) abandoned: Vec<String>,
}

fn properties(entry: Option<&Entry>) -> WriterPropertiesPtr {
    let value = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut metadata = vec![value(VERSION_KEY, VERSION.to_string())];
    if let Some(entry) = entry {
        metadata.push(value(PART_KEY, entry.part.clone()));
        metadata.push(value(ABANDONED_KEY, entry.abandoned.join(" ")));
    }
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(Default::default()))
        .set_created_by(concat!("rocov ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(metadata));
    Arc::new(properties.build())
}

/// A file of a table.
pub struct TableFile {
    reader: SerializedFileReader<Content>,
    table: &'static DataTable,
    name: String,
    version: u32,
}

/// The values of some columns in a part of a file, in the order in which they were asked for.
pub struct RowGroup {
    values: Vec<Values>,
    number: usize,
}

impl TableFile {
    /// Opens files by their paths, in this order, several of a bucket at once. `None` for each that is not there.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, is damaged, or is of another version.
    pub(crate) fn open_all<'a, P: AsRef<str>>(
        storage: &'a Storage,
        paths: &'a [P],
        table: &'static DataTable,
    ) -> impl Iterator<Item = Result<(&'a P, Option<Self>)>> + 'a {
        paths.chunks(FILES_AT_ONCE).flat_map(move |paths| {
            let names: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
            let (contents, error) = match storage.read_all(&names) {
                Ok(contents) => (contents, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            let files = paths.iter().zip(contents).map(move |(path, content)| {
                let file =
                    content.map(|content| Self::new(content, storage.name(path.as_ref()), table));
                Ok((path, file.transpose()?))
            });
            files.chain(error)
        })
    }

    /// The file with the contents `content`.
    fn new(content: Content, name: String, table: &'static DataTable) -> Result<Self> {
        let reader = SerializedFileReader::new(content).with_context(|| damaged(&name))?;
        let version = value(&reader, VERSION_KEY);
        let known = version.and_then(|text| text.parse().ok());
        let Some(known @ 1..=VERSION) = known else {
            fail!(
                "{name} has data set version {}, expected 1 to {VERSION}",
                version.unwrap_or("(none)");
                "use the rocov that wrote it"
            );
        };
        let schema = reader.metadata().file_metadata().schema_descr();
        let columns = table.columns_of(known);
        let has_all = schema.num_columns() == columns.len()
            && (schema.columns().iter().zip(columns))
                .all(|(column, (name, _))| column.name() == *name);
        if !has_all {
            fail!("{name} does not contain the columns of {}", table.name; "{REMEDY}");
        }
        Ok(Self {
            reader,
            table,
            name,
            version: known,
        })
    }

    /// The files of other tables that it names. `None` if it is of version 1: then it has the name of the files there.
    pub(crate) fn entry(&self) -> Option<Entry> {
        let part = value(&self.reader, PART_KEY)?.to_owned();
        let abandoned = value(&self.reader, ABANDONED_KEY).unwrap_or_default();
        Some(Entry {
            part,
            abandoned: abandoned.split_whitespace().map(str::to_owned).collect(),
        })
    }

    /// Gives `take` the columns with these names, some thousand rows at a time.
    ///
    /// # Errors
    ///
    /// Fails if the file is damaged, or if `take` fails.
    pub fn read(
        &self,
        columns: &[&str],
        mut take: impl FnMut(&RowGroup) -> Result<()>,
    ) -> Result<()> {
        for group in 0..self.reader.num_row_groups() {
            let parts = self.parts(group, columns);
            let (mut readers, mut rest) = parts.with_context(|| damaged(&self.name))?;
            while rest > 0 {
                let number = rest.min(ROWS_AT_ONCE);
                let values = readers
                    .iter_mut()
                    .map(|reader| reader.next(number))
                    .collect::<Result<_>>();
                take(&RowGroup {
                    values: values.with_context(|| damaged(&self.name))?,
                    number,
                })?;
                rest -= number;
            }
        }
        Ok(())
    }

    /// The readers of columns in a group of rows, and the number of these rows.
    fn parts(&self, group: usize, columns: &[&str]) -> Result<(Vec<ColumnValues>, usize)> {
        let group = self.reader.get_row_group(group)?;
        let number = usize::try_from(group.metadata().num_rows())?;
        let readers = columns.iter().map(|name| {
            let place = self.table.column(name).context("no such column")?;
            let kind = self.table.columns[place].1;
            if place >= self.table.columns_of(self.version).len() {
                return Ok(ColumnValues::None(kind));
            }
            let reader = group.get_column_reader(place)?;
            Ok(match kind {
                ColumnKind::Text | ColumnKind::Bytes => {
                    ColumnValues::Bytes(get_typed_column_reader(reader))
                }
                ColumnKind::Int => ColumnValues::Int(get_typed_column_reader(reader)),
                ColumnKind::Long | ColumnKind::Time => {
                    ColumnValues::Long(get_typed_column_reader(reader))
                }
                ColumnKind::Flag => ColumnValues::Flag(get_typed_column_reader(reader)),
            })
        });
        Ok((readers.collect::<Result<_>>()?, number))
    }
}

/// The values of a column in a group of rows, in order.
enum ColumnValues {
    Bytes(ColumnReaderImpl<ByteArrayType>),
    Int(ColumnReaderImpl<Int32Type>),
    Long(ColumnReaderImpl<Int64Type>),
    Flag(ColumnReaderImpl<BoolType>),
    /// The file is of an earlier version, which has not this column.
    None(ColumnKind),
}

impl ColumnValues {
    /// The next values.
    fn next(&mut self, number: usize) -> Result<Values> {
        Ok(match self {
            Self::Bytes(reader) => Values::Bytes(take(reader, number)?),
            Self::Int(reader) => Values::Int(take(reader, number)?),
            Self::Long(reader) => Values::Long(take(reader, number)?),
            Self::Flag(reader) => Values::Flag(take(reader, number)?),
            Self::None(kind) => Values::defaults(*kind, number),
        })
    }
}

fn take<T: DataType>(reader: &mut ColumnReaderImpl<T>, number: usize) -> Result<Vec<T::T>> {
    // The number is that of a file, which may be damaged: the values decide how much memory they take.
    let mut values = Vec::new();
    while values.len() < number {
        let (records, ..) = reader.read_records(number - values.len(), None, None, &mut values)?;
        if records == 0 {
            fail!("{} values instead of {number}", values.len(); "write the data set again");
        }
    }
    Ok(values)
}

/// A value in the metadata of a file.
fn value<'a>(reader: &'a SerializedFileReader<Content>, key: &str) -> Option<&'a str> {
    let metadata = reader.metadata().file_metadata();
    let mut entries = metadata.key_value_metadata().into_iter().flatten();
    entries.find(|entry| entry.key == key)?.value.as_deref()
}

/// The error that a file is missing, though another one needs it.
pub(crate) fn missing(name: &str) -> Diagnostic {
    Diagnostic::new(format!("{name} is missing"), REMEDY)
}

/// The error that a file is damaged.
pub(crate) fn damaged(name: &str) -> Diagnostic {
    Diagnostic::new(format!("{name} is damaged"), REMEDY)
}

impl RowGroup {
    /// The number of rows.
    pub fn number(&self) -> usize {
        self.number
    }

    /// A column of text or bytes.
    pub fn bytes(&self, column: usize) -> &[SharedBytes] {
        match &self.values[column] {
            Values::Bytes(values) => values,
            others => unreachable!("{others:?} are not bytes"),
        }
    }

    /// A column of numbers of 32 bits.
    pub fn ints(&self, column: usize) -> &[i32] {
        match &self.values[column] {
            Values::Int(values) => values,
            others => unreachable!("{others:?} are not of 32 bits"),
        }
    }

    /// A column of numbers of 64 bits.
    pub fn longs(&self, column: usize) -> &[i64] {
        match &self.values[column] {
            Values::Long(values) => values,
            others => unreachable!("{others:?} are not of 64 bits"),
        }
    }

    /// A column of flags.
    pub fn flags(&self, column: usize) -> &[bool] {
        match &self.values[column] {
            Values::Flag(values) => values,
            others => unreachable!("{others:?} are not flags"),
        }
    }
}
