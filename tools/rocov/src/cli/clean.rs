//! The command line of `rocov clean`.

use std::path::PathBuf;

use clap::Args;

use super::DEFAULT_DATA_DIRECTORY;

/// Remove the files that rocov wrote, and nothing else
///
/// Removes profiles, device ELFs, kernel registries, the files of `rocov merge` and `rocov export`, and the partial
/// files of killed processes. It also removes the files next to the profiles of your own `LLVM_PROFILE_FILE`. rocov
/// recognizes its files by their names and, if necessary, by their first bytes. It keeps everything else, with its
/// directories, and does not follow links.
///
/// With --cache, rocov removes its caches and no data directory: that of device code in host files, and that of `rocov
/// run --instrument`, with the results of Triton in it.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, even if there was nothing to remove; 1 if something could not be removed, \
which standard error names; 2 for a usage error.")]
pub(crate) struct CleanArguments {
    /// The directory that `rocov run` wrote to, or the directory of your own `LLVM_PROFILE_FILE`
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// Remove the caches in `$XDG_CACHE_HOME/rocov` or `~/.cache/rocov`, and in `$ROCOV_CACHE`, instead
    #[arg(long, conflicts_with = "directory")]
    pub(crate) cache: bool,

    /// Remove nothing, and list the files that would be removed
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}
