//! `rocov export`: kernels and counts for other tools.

#[cfg(feature = "fleet")]
mod profraw;
mod rocpd;
mod rocpd_schema;
#[cfg(feature = "fleet")]
mod runs;

use crate::cli::{ExportArguments, ExportFormat};
use crate::term::exit_status::CommandResult;

/// Writes the file, or the directory.
pub(crate) fn export(arguments: &ExportArguments) -> CommandResult {
    arguments.check();
    match arguments.format {
        ExportFormat::Rocpd => rocpd::export(arguments),
        #[cfg(feature = "fleet")]
        ExportFormat::Parquet => runs::export(arguments),
        #[cfg(feature = "fleet")]
        ExportFormat::Profraw => profraw::export(arguments),
        #[cfg(not(feature = "fleet"))]
        ExportFormat::Parquet | ExportFormat::Profraw => {
            let error = anyhow::Error::new(crate::dataset::without_data_sets());
            Err(error.context("cannot export this format").into())
        }
    }
}
