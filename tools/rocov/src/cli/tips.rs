//! Tips for words that users of other tools type.

use std::ffi::OsString;
use std::process;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::support::printable::printable;
use crate::term::print;

/// Options that users try, of cargo-llvm-cov, llvm-cov, lcov, gcovr and coverage.py too, which `rocov report` does not have,
/// and what has their effect.
const OPTIONS: [(&[&str], &str); 43] = [
    (&["--codecov"], "Codecov reads the tracefile of `--lcov`"),
    (
        &["--coveralls"],
        "Coveralls reads the tracefile of `--lcov`, with its own reporter",
    ),
    (
        &["--workspace"],
        "a report contains all programs that ran: leave it out, or use `--include GLOB` for some sources",
    ),
    (
        &["--output-dir"],
        "`--html DIR` names the directory of pages",
    ),
    (
        &["--html-details", "--html-nested"],
        "`--html DIR` writes a page for each source",
    ),
    (
        &["--html-self-contained", "--html-single-page"],
        "`--html FILE.html` writes all pages to a single file",
    ),
    (
        &["--html-title", "--project-title"],
        "`--title NAME` sets the title of the pages of `--html`",
    ),
    (
        &[
            "--remap-path-prefix",
            "--path-equivalence",
            "--compilation-dir",
            "--root",
        ],
        "`--path-map FROM=TO` names the location of moved sources",
    ),
    (
        &["--hide-instantiations"],
        "a report shows a template once: leave it out",
    ),
    (
        &["--show-instantiations"],
        "`--show` and `--html` show the instances of templates",
    ),
    (
        &["--show-branches", "--show-regions"],
        "`--show` and `--html` show branches, and the parts of lines that did not run",
    ),
    (
        &[
            "--branch",
            "--branches",
            "--branch-coverage",
            "--function-coverage",
        ],
        "clang's flags decide: a report contains functions, and branches if the code has them",
    ),
    (
        &["--mcdc", "--decisions"],
        "compile with -Xarch_device -fcoverage-mcdc: the report then contains MC/DC",
    ),
    (
        &["--ignore-filename", "--omit", "--remove", "--gcov-exclude"],
        "`--exclude GLOB` and `--ignore-filename-regex REGEX` leave out sources",
    ),
    (
        &["--filter", "-f", "--extract", "--only", "--no-external"],
        "`--include GLOB` reports only some sources",
    ),
    (
        &[
            "--exclude-lines-by-pattern",
            "--exclude-lines",
            "--exclude-also",
        ],
        "`--exclude-line REGEX` excludes the lines that match",
    ),
    (
        &["--exclude-functions", "--exclude-kernel"],
        "`--exclude-function REGEX` excludes the functions and kernels that match",
    ),
    (
        &[
            "--exclude-branches-by-pattern",
            "--exclude-throw-branches",
            "--exclude-unreachable-branches",
        ],
        "the comment LCOV_EXCL_BR_LINE excludes the branches of a line; code that is never reached is excluded by default",
    ),
    (
        &["--no-exclusions", "--no-markers", "--no-assert"],
        "`--no-default-exclusions` excludes only by comments and options, and `--as-llvm-cov` excludes nothing",
    ),
    (
        &["--excluded", "--exclusions", "--show-exclusions"],
        "`--show-excluded` lists the excluded code, with the reasons",
    ),
    (
        &["--never-ran", "--never-run", "--not-run", "--unexecuted"],
        "`rocov kernels --uncovered` lists the kernels that never ran, and `--show-missing` the lines",
    ),
    (
        &["--uncovered", "--uncovered-lines", "--missed", "--missing"],
        "`--show-missing` adds the lines that did not run, and `rocov kernels --uncovered` lists the kernels",
    ),
    (
        &["--kernels", "--by-kernel"],
        "`rocov kernels` lists the kernels",
    ),
    (
        &["--skip-covered"],
        "the table contains all sources: `--sort missed` puts those with missed lines first",
    ),
    (
        &["--skip-empty"],
        "a report contains no sources without code: leave it out",
    ),
    (
        &["--sort-uncovered", "--sort-percentage"],
        "`--sort missed` sorts by missed lines, and `--sort worst` by the share that ran",
    ),
    (
        &["--precision"],
        "the table has two decimals, and `--json` has all",
    ),
    (
        &["--txt"],
        "`--table FILE` writes the table to a file; `--show` prints annotated source",
    ),
    (&["--csv"], "`--json` writes the figures for programs"),
    (
        &[
            "--xml",
            "--xml-pretty",
            "--cobertura-pretty",
            "--clover",
            "--jacoco",
        ],
        "`--cobertura` writes XML",
    ),
    (
        &["--format"],
        "each format has its own option, such as `--html DIR` or `--lcov`; use several to write several formats",
    ),
    (
        &["--print-summary", "--summary"],
        "the table ends with the totals; `--json --summary-only` writes them for programs",
    ),
    (&["--output-file"], "`--output FILE` names the file"),
    (
        &["--no-color", "--use-color", "--colour"],
        "use `--color always` or `--color never`",
    ),
    (
        &[
            "--fail-under",
            "--min",
            "--minimum",
            "--threshold",
            "--gate",
        ],
        "`--fail-under-lines PERCENT` fails if a smaller share of lines ran; `--fail-under-functions`, `--fail-under-regions` and `--fail-under-branches` do so for others",
    ),
    (
        &["--fail-under-kernels"],
        "`--fail-uncovered-kernels` fails if a kernel never ran",
    ),
    (
        &["--max-missed", "--fail-uncovered"],
        "`--fail-uncovered-lines NUMBER` fails if more lines did not run",
    ),
    (
        &["--max-excluded"],
        "`--fail-excluded-lines NUMBER` fails if more lines are excluded",
    ),
    (
        &["--contexts", "--show-contexts", "--tests", "--by-test"],
        "`--per-test` reports figures for each test, and `rocov which FILE:LINE` prints the tests that reach a line",
    ),
    (
        &["--changed", "--compare-branch", "--diff-cover", "--pr"],
        "`--diff REV` reports the lines that changed since REV",
    ),
    (
        &["--since", "--fail-on-loss"],
        "`rocov diff BEFORE AFTER` prints the code that got worse, and `--html DIR --compare BEFORE` shows it in pages",
    ),
    (
        &["--rcfile", "--config"],
        "the file rocov.toml at the root of the project contains options for all reports",
    ),
    (
        &[
            "--instr-profile",
            "--data-file",
            "--directory",
            "--object-directory",
        ],
        "name the data directory, as in `rocov report DIR`; `rocov merge` writes profiles for llvm-cov",
    ),
];

/// Subcommands of other tools, and what has their effect.
const SUBCOMMANDS: [(&[&str], &str); 5] = [
    (&["coverage", "cov"], "`rocov report` reports the coverage"),
    (&["test"], "`rocov run -- ctest` runs tests"),
    (&["html"], "`rocov report --html DIR` writes pages"),
    (&["lcov"], "`rocov report --lcov` writes a tracefile"),
    (
        &["capture"],
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

/// The error with the tip for the word that is not known, instead of a word of like letters.
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
    let mut tips = tips.iter();
    let known = tips.find(|(words, _)| words.contains(&given.as_str()));
    if let Some((_, tip)) = known.filter(|(_, tip)| fits(tip, &error)) {
        error.remove(similar);
        error.remove(ContextKind::Suggested);
        let tip = ContextValue::StyledStrs(vec![(*tip).into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Returns whether a tip helps with the command of an error: `rocov report`, or `rocov kernels` if the tip is about its
/// options.
fn fits(tip: &str, error: &clap::Error) -> bool {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    error.kind() == ErrorKind::InvalidSubcommand
        || usage.contains("rocov report")
        || usage.contains("rocov kernels") && tip.contains("`rocov kernels --")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn each_tip_is_of_a_word_that_is_not_known_and_leads_to_what_is() {
        let cli = Cli::command();
        let report = cli.find_subcommand("report").unwrap();
        let tips = |of: &'static [(&[&str], &'static str)]| {
            let words = of.iter();
            words.flat_map(|(words, tip)| words.iter().map(|word| (*word, *tip)))
        };
        for (option, tip) in tips(&OPTIONS) {
            let error = Cli::try_parse_from(["rocov", "report", option])
                .err()
                .unwrap();
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{option}");
            let said = with_tip(error).to_string();
            assert!(said.contains(&format!("tip: {tip}\n")), "{said}");
            assert_eq!(said.matches("tip:").count(), 1, "{said}");
            for word in tip
                .split([' ', '`', ',', ';'])
                .filter(|word| word.starts_with("--"))
            {
                let mut all = cli.get_subcommands().flat_map(clap::Command::get_arguments);
                let is_known =
                    |argument: &clap::Arg| argument.get_long() == word.strip_prefix("--");
                assert!(
                    report.get_arguments().any(is_known) || all.any(is_known),
                    "{word}"
                );
            }
        }
        for (subcommand, tip) in tips(&SUBCOMMANDS) {
            let error = Cli::try_parse_from(["rocov", subcommand]).err().unwrap();
            let said = with_tip(error).to_string();
            assert!(said.contains(&format!("tip: {tip}\n")), "{said}");
        }
        for (arguments, has_tip) in [
            (["kernels", "--never-ran"], true),
            (["kernels", "--skip-covered"], false),
            (["run", "--txt"], false),
        ] {
            let error = Cli::try_parse_from(["rocov"].into_iter().chain(arguments));
            let said = with_tip(error.err().unwrap()).to_string();
            let mut all = tips(&OPTIONS);
            let found = all.any(|(_, tip)| said.contains(&format!("tip: {tip}\n")));
            assert_eq!(found, has_tip, "{said}");
        }
    }
}
