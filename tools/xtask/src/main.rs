//! `cargo xtask COMMAND`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use xtask::{Outcome, bless, mutants, say, suite};

/// Runs a command with its arguments.
type Run = fn(&[String]) -> Outcome;

/// The commands, each with its first line of help.
const COMMANDS: [(&str, &str, Run); 3] = [
    (
        "bless",
        "write the records that tests compare: help texts, generated chapters, ...",
        bless::run,
    ),
    (
        "mutants",
        "check that tests notice small changes of the code",
        mutants::run,
    ),
    (
        "test",
        "check everything, as CI does: formatting, lints, all tests, fuzzing",
        suite::run,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let command = arguments.split_first().and_then(|(name, arguments)| {
        let found = COMMANDS.iter().find(|(known, ..)| known == name)?;
        Some((found.2, arguments))
    });
    let Some((run, arguments)) = command else {
        let asked = arguments.first().map(String::as_str);
        say("Usage: cargo xtask COMMAND [ARGUMENT...]\n");
        for (name, what, _) in COMMANDS {
            say(format_args!("  {name:7} {what}"));
        }
        say("\n`cargo xtask COMMAND --help` explains a command.");
        let is_help = matches!(asked, Some("help" | "-h" | "--help"));
        return ExitCode::from(if is_help { 0 } else { 2 });
    };
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "{failure}");
            ExitCode::from(failure.status())
        }
    }
}
