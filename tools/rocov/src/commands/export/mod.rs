//! `rocov export`: the kernel registries for other tools.

mod rocpd;
mod schema;

use std::path::Path;

use anyhow::Context;

use crate::cli::{ExportArguments, ExportFormat};
use crate::data::{DATABASE, DataDirectory};
use crate::support::atomic;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// Writes the file.
pub(crate) fn export(arguments: &ExportArguments) -> CommandResult {
    let registry = Warnings::printing(|warnings| {
        DataDirectory::open(&[&arguments.directory], warnings)?.merged_registry()
    })?;
    for error in &registry.unread {
        print::message(format_args!("left out: {}", explained(error)));
    }
    print::warn(registry.about_groups().as_slice());
    let is_partial = !registry.unread.is_empty();
    let document = &registry.document;
    let output = arguments.output.clone();
    let output = output.unwrap_or_else(|| arguments.directory.join(DATABASE));
    let write = |path: &Path| {
        let written = match arguments.format {
            ExportFormat::Rocpd => rocpd::write(document, path),
        };
        written.with_context(|| format!("cannot write {}", output.display()))
    };
    if arguments.force {
        atomic::replace(&output, write)?;
    } else {
        atomic::create(&output, write)?;
    }
    let loads = document.processes.iter().flat_map(|process| &process.loads);
    let kernels = loads.clone().map(|load| load.kernels.len()).sum();
    let line = format!(
        "{}: {} with {} and {}\n",
        output.display(),
        count(document.processes.len(), "process"),
        count(loads.count(), "loaded code object"),
        count(kernels, "kernel symbol"),
    );
    print::text(line.as_bytes())?;
    Ok(if is_partial { FAILED } else { 0 })
}
