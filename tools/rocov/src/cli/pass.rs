//! The command line of `rocov pass`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Build the compiler plugin for fast counters of GPU code
///
/// The plugin librocov_pass fits only one release of LLVM. `rocov flags` uses it for each compiler that it fits, and
/// `rocov doctor` lists these compilers.
#[derive(Args)]
pub(crate) struct PassArguments {
    #[command(subcommand)]
    pub(crate) command: PassCommand,
}

#[derive(Subcommand)]
pub(crate) enum PassCommand {
    Build(PassBuildArguments),
}

/// Compile the plugin for a clang (19 or later), and print its path
///
/// Requires the headers of that clang's LLVM. ROCm contains them; on Debian, they are in llvm-N-dev. The plugin is
/// compiled with that clang, or with $CXX if it is set. This takes about half a minute.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if the plugin exists and the compiler can load it; 1 otherwise; 2 for a usage error.")]
pub(crate) struct PassBuildArguments {
    /// The compiler that you use [default: the newest clang++ or amdclang++ found]
    #[arg(long, value_name = "CLANG")]
    pub(crate) clang: Option<PathBuf>,

    /// Write the plugin to this file [default: one named after LLVM's version in $XDG_DATA_HOME/rocov or
    /// ~/.local/share/rocov, where `rocov flags` finds it]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
