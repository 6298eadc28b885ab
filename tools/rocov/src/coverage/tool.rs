//! What llvm-cov says of device ELFs and their indexed profile, as data.

use super::detail::Detail;
use super::export::{self, Export};
use super::figures::Figure;
use crate::child;
use crate::llvm_tools::Tools;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is known of a function that was compiled with coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// How often it was entered.
    pub(crate) count: u64,
    /// Its lines.
    pub(crate) lines: Figure,
}

/// A command of llvm-cov about `elfs` and the indexed profile `merged`; options and sources may
/// follow.
pub(crate) fn llvm_cov(tools: &Tools, verb: &str, elfs: &[PathBuf], merged: &Path) -> Command {
    let mut command = Command::new(&tools.cov);
    command.arg(verb).arg("-instr-profile").arg(merged);
    // The first object is the positional argument, and everything after it is a source.
    let mut elfs = elfs.iter();
    if let Some(first) = elfs.next() {
        command.arg(first);
    }
    for elf in elfs {
        command.arg("-object").arg(elf);
    }
    command
}

/// What `llvm-cov export` says of `objects` by the indexed profile `merged`; what it warned of comes
/// with the export.
///
/// # Errors
///
/// When llvm-cov fails.
pub(crate) fn export(
    tools: &Tools,
    objects: &[PathBuf],
    merged: &Path,
) -> Result<(Export, String)> {
    let mut command = llvm_cov(tools, "export", objects, merged);
    child::read(command.arg("-skip-expansions"), |text| {
        export::read(text).with_context(|| {
            let object = objects.first().map(|it| it.display().to_string());
            let object = object.unwrap_or_default();
            format!("cannot read what llvm-cov exported of {object}")
        })
    })
}

/// The source files that coverage is known of, as they were named when they were compiled.
///
/// # Errors
///
/// When llvm-cov fails.
pub(crate) fn sources(tools: &Tools, elfs: &[PathBuf], merged: &Path) -> Result<Vec<PathBuf>> {
    let mut command = llvm_cov(tools, "export", elfs, merged);
    let output = child::output(command.arg("-summary-only"))?;
    let summary: Summary = serde_json::from_slice(&output.stdout)
        .context("cannot read what `llvm-cov export` said")?;
    let files = summary.data.into_iter().flat_map(|data| data.files);
    Ok(files.map(|file| file.filename).collect())
}

/// The functions of one device ELF, by their symbols.
///
/// # Errors
///
/// When llvm-cov fails.
pub(crate) fn functions(
    tools: &Tools,
    elf: &Path,
    merged: &Path,
) -> Result<BTreeMap<String, Function>> {
    let (export, _) = export(tools, &[elf.to_path_buf()], merged)?;
    let functions = export.records.iter().map(|record| {
        let function = Function {
            count: record.counts.calls,
            lines: Detail::of(record).figures().lines,
        };
        (symbol(&record.function.name).to_owned(), function)
    });
    Ok(functions.collect())
}

/// The symbol in the name of a function in a profile, where a static one has its file before it:
/// `dir/a.hip;_ZL4stepi`, up to LLVM 17 `a.hip:_ZL4stepi`.
pub(crate) fn symbol(name: &str) -> &str {
    name.rsplit([':', ';']).next().unwrap_or(name)
}

/// The part of a summary in JSON that is used here.
#[derive(Deserialize)]
struct Summary {
    data: Vec<SummaryData>,
}

#[derive(Deserialize)]
struct SummaryData {
    files: Vec<SummaryFile>,
}

#[derive(Deserialize)]
struct SummaryFile {
    filename: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_function_is_found_by_its_symbol() {
        for name in ["_ZL4stepi", "a b.hip:_ZL4stepi", "/x/a.hip;_ZL4stepi"] {
            assert_eq!(symbol(name), "_ZL4stepi");
        }
    }
}
