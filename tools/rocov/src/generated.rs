//! What is generated from the command line's description, for packages: `rocov completions` and `rocov
//! man`.

use crate::child;
use crate::cli::Cli;
use crate::status::Outcome;
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;

/// The name of the command, as it is typed.
const NAME: &str = "rocov";

/// Print a shell's completions of this command
///
/// For example `rocov completions bash > /usr/share/bash-completion/completions/rocov`.
#[derive(Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Write the manual pages: rocov.1 and one for each subcommand
#[derive(Args)]
pub(crate) struct ManArguments {
    /// Where they go, such as /usr/share/man/man1; made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the completions for a shell.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), NAME, &mut text);
    child::print(&text)?;
    Ok(0)
}

/// Writes the manual: a page for the command and one for each subcommand.
pub(crate) fn man(arguments: &ManArguments) -> Outcome {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    Ok(0)
}
