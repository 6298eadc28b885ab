//! Runs llvm-cov on device ELFs and their indexed profile, and reads its output.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::export;
use super::export::Export;
use crate::llvm::Tools;
use crate::system::command;

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

/// Runs `llvm-cov export` on `objects` and the indexed profile `merged`. Returns the export and the
/// warnings.
///
/// # Errors
///
/// Fails if llvm-cov fails.
pub(crate) fn export(
    tools: &Tools,
    objects: &[PathBuf],
    merged: &Path,
) -> Result<(Export, String)> {
    let mut command = llvm_cov(tools, "export", objects, merged);
    command::read(command.arg("-skip-expansions"), |text| {
        export::read(text).with_context(|| {
            let object = objects.first().map(|object| object.display().to_string());
            let object = object.unwrap_or_default();
            format!("cannot read the export of llvm-cov for {object}")
        })
    })
}
