//! `rocov completions` and `rocov man`: files for packages, generated from the description of the
//! command line.

use std::fs;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArguments, ManArguments};
use crate::term::exit_status::CommandResult;
use crate::term::print;

/// The name of the command, as it is typed.
const NAME: &str = "rocov";

/// Prints the completions for a shell.
pub(crate) fn completions(arguments: &CompletionsArguments) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), NAME, &mut text);
    print::text(&text)?;
    Ok(0)
}

/// Writes the manual: a page for the command and one for each subcommand.
pub(crate) fn man(arguments: &ManArguments) -> CommandResult {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    Ok(0)
}
