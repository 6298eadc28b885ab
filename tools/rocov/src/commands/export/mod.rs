//! `rocov export`: kernels and counts for other tools.

mod profraw;
mod rocpd;
mod rocpd_schema;
mod runs;

use crate::cli::{ExportArguments, ExportFormat};
use crate::term::exit_status::CommandResult;

/// Writes the file, or the directory.
pub(crate) fn export(arguments: &ExportArguments) -> CommandResult {
    arguments.check();
    match arguments.format {
        ExportFormat::Rocpd => rocpd::export(arguments),
        ExportFormat::Parquet => runs::export(arguments),
        ExportFormat::Profraw => profraw::export(arguments),
    }
}
