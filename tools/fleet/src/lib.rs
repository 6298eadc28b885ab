//! Data sets: the counts of many runs in tables of Parquet files, which any engine reads.
//!
//! ```text
//! schema: the tables -> storage: files in a directory or bucket -> file: rows, and a file of them
//!     -> condition: the files that are wanted -> store: files that count together -> selection: the runs that are wanted
//!     -> sql: rows for an engine of SQL
//! ```
//!
//! The crate knows runs, code objects and counts as rows only. The command makes them of profiles and coverage, and back.

mod condition;
mod file;
mod schema;
mod selection;
#[cfg(feature = "query")]
mod sql;
mod storage;
mod store;

pub use condition::RunCondition;
#[cfg(feature = "query")]
pub use datafusion::arrow;
pub use file::{RowGroup, Rows, SharedBytes, TableFile, Value};
pub use schema::{
    BRANCH, CODE_OBJECT, COUNTER, DataTable, FUNCTION, LINE, PROFILE, REGION, RUN, TEST_LINE,
};
pub use selection::{SelectedRuns, no_run};
#[cfg(feature = "query")]
pub use sql::{SqlAnswer, SqlParameters, ask};
pub use store::{Added, CodeRows, DataSet, PartFile, RunRows, SharedProcesses, hashes};
