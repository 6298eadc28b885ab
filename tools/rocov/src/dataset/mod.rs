//! Data sets: the counts of many runs in tables of Parquet files, which any engine reads.
//!
//! ```text
//! schema: the tables -> storage: files in a directory or bucket -> file: rows, and a file of them
//!     -> condition: the files that are wanted -> store: files that count together -> code: rows of a code object
//!     -> import: rows of a run -> back: raw profiles again -> sql: rows for an engine of SQL
//! ```

mod back;
mod code;
mod condition;
mod file;
mod import;
mod schema;
#[cfg(feature = "query")]
mod sql;
mod storage;
mod store;

pub(crate) use self::back::{DataSetInputs, Taken, pool};
pub(crate) use self::condition::RunCondition;
pub(crate) use self::import::{ImportOptions, import};
#[cfg(feature = "query")]
pub(crate) use self::sql::{SqlAnswer, SqlParameters, ask};
pub(crate) use self::store::DataSet;
