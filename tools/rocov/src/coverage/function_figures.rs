//! The figures of the functions of one code object.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::collect::read_objects;
use super::figures::Figure;
use super::function_coverage::FunctionCoverage;
use super::llvm_cov::symbol;
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

/// The functions of one device ELF, by their symbols.
///
/// # Errors
///
/// Fails if the device ELF or its counts cannot be read.
pub(crate) fn functions(
    elf: &Path,
    counts: &BinaryCounts,
    installed: &LlvmTools,
) -> Result<BTreeMap<String, FunctionFigures>> {
    let objects = [elf.to_path_buf()];
    let kinds = kinds(&objects, counts);
    let records = read_objects(&objects, &kinds, counts, None, installed)?.records;
    let functions = records.iter().map(|record| {
        let function = FunctionFigures {
            count: record.counts.calls,
            lines: FunctionCoverage::figures_of(record).lines,
        };
        (symbol(&record.function.name).to_owned(), function)
    });
    Ok(functions.collect())
}
