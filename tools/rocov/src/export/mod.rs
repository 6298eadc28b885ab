//! `rocov export`: the kernel registries for other tools.

mod rocpd;
mod schema;

use crate::cli::{ExportArguments, Format};
use crate::data::DataDirectory;
use crate::status::{FAILED, Outcome};
use crate::words::count;
use crate::{child, files};
use anyhow::Context;
use std::path::Path;

/// File that is written where none is named, in the data directory.
const DEFAULT_FILE: &str = "rocpd.db";

/// Writes the file.
pub(crate) fn export(arguments: &ExportArguments) -> Outcome {
    let registries = DataDirectory::open(&[&arguments.directory])?.registries()?;
    let is_partial = registries.say_unread();
    let document = &registries.document;
    let output = arguments.output.clone();
    let output = output.unwrap_or_else(|| arguments.directory.join(DEFAULT_FILE));
    let write = |path: &Path| {
        let written = match arguments.format {
            Format::Rocpd => rocpd::write(document, path),
        };
        written.with_context(|| format!("cannot write {}", output.display()))
    };
    if arguments.force {
        files::replace(&output, write)?;
    } else {
        files::create(&output, write)?;
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
    child::print(line.as_bytes())?;
    Ok(if is_partial { FAILED } else { 0 })
}
