//! The command lines of `rocov completions` and `rocov man`, which are for packages.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print the completions of this command for a shell
///
/// For example, `rocov completions bash > /usr/share/bash-completion/completions/rocov`.
#[derive(Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Write the manual pages: rocov.1 and one for each subcommand
#[derive(Args)]
pub(crate) struct ManArguments {
    /// The directory for them, such as /usr/share/man/man1; rocov creates it if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
