//! The options that exclude code.

use clap::Args;
use regex::RegexSet;

use crate::coverage::{ExclusionRules, Exclusions, SourceTexts};

/// The exclusions that the user gives; comments exclude lines, too.
#[derive(Debug, Args)]
#[command(next_help_heading = "Contents")]
pub(crate) struct ExclusionArguments {
    /// Exclude lines that match; can be repeated. Comments exclude lines, too: LCOV_EXCL_LINE, LCOV_EXCL_START to
    /// LCOV_EXCL_STOP (also with GCOVR, GRCOV or ROCOV instead of LCOV), and `pragma: no cover`
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    exclude_line: Vec<String>,

    /// Exclude functions whose name matches, demangled or mangled; can be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    exclude_function: Vec<String>,

    /// Also report the failing side of `assert`, and code that ends at `__builtin_unreachable()`, at
    /// `__builtin_trap()`, at `std::unreachable()` or at a function that does not return
    #[arg(long)]
    no_default_exclusions: bool,
}

impl ExclusionArguments {
    /// The exclusions that these options and the comments in `texts` make.
    pub(crate) fn exclusions(&self, texts: SourceTexts) -> Exclusions {
        let rules = ExclusionRules {
            keeps_unreachable: self.no_default_exclusions,
            lines: set(&self.exclude_line, regex::bytes::RegexSet::new),
            functions: set(&self.exclude_function, RegexSet::new),
        };
        Exclusions::new(rules, texts)
    }
}

/// A set of patterns, each of which is valid; `None` if there is none.
fn set<'a, S>(
    patterns: &'a [String],
    new: impl FnOnce(&'a [String]) -> Result<S, regex::Error>,
) -> Option<S> {
    (!patterns.is_empty()).then(|| new(patterns).ok()).flatten()
}

/// Checks a regular expression.
fn pattern(text: &str) -> Result<String, regex::Error> {
    regex::bytes::Regex::new(text)?;
    regex::Regex::new(text)?;
    Ok(text.to_owned())
}
