//! What llvm-cov says of device ELFs and their indexed profile, as data.

use crate::child;
use crate::llvm_tools::Tools;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The source files that coverage is known of, as they were named when they were compiled.
///
/// # Errors
///
/// When llvm-cov fails.
pub(crate) fn sources(tools: &Tools, elfs: &[PathBuf], merged: &Path) -> Result<Vec<PathBuf>> {
    let mut command = llvm_cov(tools, "export", elfs, merged);
    let data = export(command.arg("-summary-only"))?;
    Ok(data.files.into_iter().map(|file| file.filename).collect())
}

/// The part of `llvm-cov export`'s JSON that is used here.
#[derive(Deserialize)]
struct Export {
    data: Vec<ExportData>,
}

#[derive(Deserialize)]
struct ExportData {
    files: Vec<ExportFile>,
}

#[derive(Deserialize)]
struct ExportFile {
    filename: PathBuf,
}

fn export(command: &mut Command) -> Result<ExportData> {
    let output = child::output(command)?;
    let mut export: Export = serde_json::from_slice(&output.stdout)
        .context("cannot read what `llvm-cov export` said")?;
    export.data.pop().context("`llvm-cov export` said nothing")
}
