//! The figures of the functions of one code object.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;

use super::collect::read_objects;
use super::exclusions::Exclusions;
use super::figures::Figure;
use super::function::symbol;
use super::function_coverage::FunctionCoverage;
use super::source_text::SourceTexts;
use crate::llvm::LlvmTools;
use crate::profdata::BinaryCounts;
use crate::profdata::kinds::kinds;

/// The figures of a function that was compiled with coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionFigures {
    /// The number of entries.
    pub(crate) count: u64,
    /// Its lines, without those that are left out. If the whole function is, all of them.
    pub(crate) lines: Figure,
    /// The reason why the whole function is left out, if it is.
    pub(crate) excluded: Option<String>,
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
    exclusions: &Exclusions,
    installed: &LlvmTools,
) -> Result<BTreeMap<String, FunctionFigures>> {
    let kinds = kinds(objects, counts);
    let coverage = read_objects(objects, &kinds, counts, None, installed)?;
    let texts = SourceTexts::embedded([&coverage.texts]);
    let mut whole = coverage.records;
    let mut records = whole.clone();
    let excluded = exclusions.leave_out(&mut records, &texts);
    whole.retain(|record| excluded.functions.contains_key(&record.function.name));
    records.extend(whole);
    // The last record of a function stays.
    records.sort_by_key(|record| record.function.line_table.is_none());
    let functions = records.iter().map(|record| {
        let name = &record.function.name;
        let entry = || excluded.entries.get(name);
        let reason = excluded.functions.get(name).or_else(entry);
        let function = FunctionFigures {
            count: record.counts.calls,
            lines: FunctionCoverage::figures_of(record).lines,
            excluded: reason.map(ToString::to_string),
        };
        (symbol(&record.function.name).to_owned(), function)
    });
    Ok(functions.collect())
}
