//! The command line of `rocov clean`.

use std::path::PathBuf;

use clap::Args;

use super::DEFAULT_DATA_DIRECTORY;

/// Remove the files that rocov wrote, and nothing else
///
/// Removes profiles, device ELFs, kernel registries, the files of `rocov merge` and `rocov export`, and the partial
/// files of killed processes. If your own `LLVM_PROFILE_FILE` names the profiles, also removes the files next to them.
/// rocov recognizes its files by their names and, if necessary, by their first bytes. It keeps everything else,
/// including the directories that contain it, and does not follow links.
///
/// With --cache, rocov removes its caches instead of a data directory. These are the cache of device code in host
/// files, and the cache of `rocov run --instrument`, including Triton's results.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, even if there was nothing to remove; 1 if something could not be removed, \
which standard error names; 2 for a usage error.")]
pub(crate) struct CleanArguments {
    /// The directory that `rocov run` wrote to, or the directory that your own `LLVM_PROFILE_FILE` names
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// Instead, remove the caches in `$XDG_CACHE_HOME/rocov` or `~/.cache/rocov`, and in `$ROCOV_CACHE`
    #[arg(long, conflicts_with = "directory")]
    pub(crate) cache: bool,

    /// List the files that would be removed, without removing them
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}
