//! Tips for words that users of other tools type.

use std::ffi::OsString;
use std::process;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::support::printable::printable;
use crate::term::print;

/// Options that users try, of cargo-llvm-cov, llvm-cov and lcov too, which `rocov report` does not have, and what has their
/// effect.
const OPTIONS: [(&str, &str); 13] = [
    ("--codecov", "Codecov reads the tracefile of `--lcov`"),
    (
        "--coveralls",
        "Coveralls reads the tracefile of `--lcov`, by its own reporter",
    ),
    (
        "--workspace",
        "a report has all programs that ran: leave it out, or give `--include GLOB` for some sources",
    ),
    ("--output-dir", "`--html DIR` names the directory of pages"),
    (
        "--remap-path-prefix",
        "`--path-map FROM=TO` names the place of moved sources",
    ),
    (
        "--hide-instantiations",
        "a report shows a template once: leave it out",
    ),
    (
        "--show-instantiations",
        "`--show` and `--html` show the instances of templates",
    ),
    ("--show-branches", "`--show` and `--html` show branches"),
    (
        "--branch",
        "clang's flags decide: a report has branches if the code has them",
    ),
    (
        "--mcdc",
        "compile with -Xarch_device -fcoverage-mcdc: the report has MC/DC then",
    ),
    (
        "--ignore-filename",
        "`--exclude GLOB` and `--ignore-filename-regex REGEX` leave sources out",
    ),
    (
        "--since",
        "`rocov diff BEFORE AFTER` prints what got worse, and `--html DIR --compare BEFORE` shows it in pages",
    ),
    (
        "--instr-profile",
        "give the data directory; `rocov merge` makes profiles for llvm-cov",
    ),
];

/// Subcommands of other tools, and what has their effect.
const SUBCOMMANDS: [(&str, &str); 6] = [
    ("coverage", "`rocov report` reports the coverage"),
    ("cov", "`rocov report` reports the coverage"),
    ("test", "`rocov run -- ctest` runs tests"),
    ("html", "`rocov report --html DIR` writes pages"),
    ("lcov", "`rocov report --lcov` writes a tracefile"),
    (
        "capture",
        "`rocov report --lcov -o FILE` writes a tracefile",
    ),
];

/// Parses the command line, or ends the process with a usage error.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    let is_plain = |word: &OsString| !word.to_string_lossy().contains(char::is_control);
    let are_plain = arguments.iter().all(is_plain);
    Cli::try_parse_from(arguments).unwrap_or_else(|error| {
        let error = with_tip(error);
        if are_plain || !error.use_stderr() {
            error.exit();
        }
        // The error repeats words of the command line, which must not steer the terminal.
        for line in error.render().to_string().lines() {
            print::aside(&format!("{}\n", printable(line)));
        }
        process::exit(error.exit_code())
    })
}

/// The error with the tip for the word that is not known, in place of a word of like letters.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let (word, similar, tips) = match error.kind() {
        ErrorKind::UnknownArgument => (
            ContextKind::InvalidArg,
            ContextKind::SuggestedArg,
            &OPTIONS[..],
        ),
        ErrorKind::InvalidSubcommand => {
            let kinds = (
                ContextKind::InvalidSubcommand,
                ContextKind::SuggestedSubcommand,
            );
            (kinds.0, kinds.1, &SUBCOMMANDS[..])
        }
        _ => return error,
    };
    let Some(ContextValue::String(given)) = error.get(word) else {
        return error;
    };
    let is_of_report = error.kind() == ErrorKind::InvalidSubcommand || usage_of_report(&error);
    let known = tips.iter().find(|(word, _)| given == word);
    if let Some((_, tip)) = known.filter(|_| is_of_report) {
        error.remove(similar);
        error.remove(ContextKind::Suggested);
        let tip = ContextValue::StyledStrs(vec![(*tip).into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Returns whether it is an error of `rocov report`.
fn usage_of_report(error: &clap::Error) -> bool {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains("rocov report"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn each_tip_is_of_a_word_that_is_not_known_and_leads_to_what_is() {
        let cli = Cli::command();
        let report = cli.find_subcommand("report").unwrap();
        for (option, tip) in OPTIONS {
            let error = Cli::try_parse_from(["rocov", "report", option])
                .err()
                .unwrap();
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{option}");
            let said = with_tip(error).to_string();
            assert!(said.contains(&format!("tip: {tip}\n")), "{said}");
            assert_eq!(said.matches("tip:").count(), 1, "{said}");
            for word in tip.split([' ', '`']).filter(|word| word.starts_with("--")) {
                let mut all = cli.get_subcommands().flat_map(clap::Command::get_arguments);
                let is_known =
                    |argument: &clap::Arg| argument.get_long() == word.strip_prefix("--");
                assert!(
                    report.get_arguments().any(is_known) || all.any(is_known),
                    "{word}"
                );
            }
        }
        for (subcommand, tip) in SUBCOMMANDS {
            let error = Cli::try_parse_from(["rocov", subcommand]).err().unwrap();
            let said = with_tip(error).to_string();
            assert!(said.contains(&format!("tip: {tip}\n")), "{said}");
        }
        let error = Cli::try_parse_from(["rocov", "run", "--text"])
            .err()
            .unwrap();
        assert!(!with_tip(error).to_string().contains("annotated"));
    }
}
