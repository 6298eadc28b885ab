//! The figures of the functions of one code object.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;

use super::collect::read_objects;
use super::figures::Figure;
use super::function::symbol;
use super::function_coverage::FunctionCoverage;
use crate::llvm::LlvmTools;
use crate::profdata::BinaryCounts;
use crate::profdata::kinds::kinds;

/// The figures of a function that was compiled with coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionFigures {
    /// The number of entries.
    pub(crate) count: u64,
    /// Its lines.
    pub(crate) lines: Figure,
}

/// The functions of the code object in the files `objects`, by their symbols. A function with a coverage mapping has the
/// figures of that, even if rocov counts its machine code or its PTX, too.
///
/// # Errors
///
/// Fails if a file or the counts cannot be read.
pub(crate) fn functions(
    objects: &[PathBuf],
    counts: &BinaryCounts,
    installed: &LlvmTools,
) -> Result<BTreeMap<String, FunctionFigures>> {
    let kinds = kinds(objects, counts);
    let mut records = read_objects(objects, &kinds, counts, None, installed)?.records;
    // The last record of a function stays.
    records.sort_by_key(|record| record.function.line_table.is_none());
    let functions = records.iter().map(|record| {
        let function = FunctionFigures {
            count: record.counts.calls,
            lines: FunctionCoverage::figures_of(record).lines,
        };
        (symbol(&record.function.name).to_owned(), function)
    });
    Ok(functions.collect())
}
