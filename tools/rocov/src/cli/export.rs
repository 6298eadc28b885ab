//! The command line of `rocov export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DEFAULT_DATA_DIRECTORY;

/// Write the kernels that programs loaded to a file for other tools
///
/// Reads the kernel registries of DIR, one for each process. The format rocpd is the SQLite database of
/// ROCm's rocprofv3, schema version 3: nodes, processes, agents, code objects and kernel symbols. Join
/// it with a database of rocprofv3 by URI and kernel name.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 if nothing could be written, or a registry could not be read and the rest is \
written; 2 for a usage error.")]
pub(crate) struct ExportArguments {
    /// The directory that `rocov run` wrote to
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// The format of the file
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,

    /// The file to write [default: rocpd.db in DIR]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
}

/// A file format of other tools.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// ROCm's database of a profile.
    Rocpd,
}
