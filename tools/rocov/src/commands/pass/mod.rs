//! `rocov pass`: makes the compiler plugin by which GPU code counts fast.

mod build;
mod headers;
mod sources;

use crate::cli::{PassArguments, PassCommand};
use crate::term::exit_status::CommandResult;

/// Runs the subcommand.
pub(crate) fn pass(arguments: &PassArguments) -> CommandResult {
    match &arguments.command {
        PassCommand::Build(arguments) => build::build(arguments),
    }
}
