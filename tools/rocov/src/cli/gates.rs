//! The options of `rocov report` that make it fail.

use std::path::PathBuf;

use clap::Args;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use crate::coverage::{Bound, Gates, Limit, LimitedSources, Measure};

/// Limits, each for every arch and for all of them joined. Before `=` stands the part of the sources that a limit is
/// of.
#[derive(Debug, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GateArguments {
    /// Fail when less than PERCENT of the lines ran, on any arch or on all of them together. WHAT can be a component, a
    /// source, a folder, or a glob that is checked for each matching source: src/solver=90, '**=60'. Can be repeated
    #[arg(long, value_name = "[WHAT=]PERCENT", value_parser = percent)]
    fail_under_lines: Vec<Limited<f64>>,

    /// Fail when less than PERCENT of the functions ran
    #[arg(long, value_name = "[WHAT=]PERCENT", value_parser = percent)]
    fail_under_functions: Vec<Limited<f64>>,

    /// Fail when less than PERCENT of the regions ran
    #[arg(long, value_name = "[WHAT=]PERCENT", value_parser = percent)]
    fail_under_regions: Vec<Limited<f64>>,

    /// Fail when less than PERCENT of the branches ran
    #[arg(long, value_name = "[WHAT=]PERCENT", value_parser = percent)]
    fail_under_branches: Vec<Limited<f64>>,

    /// With --diff, fail when less than PERCENT of the changed lines ran, or a changed file is not
    /// reported
    #[arg(long, value_name = "PERCENT", value_parser = plain_percent, requires = "diff")]
    fail_under_changed_lines: Option<f64>,

    /// Fail when more than NUMBER lines did not run, on any arch or on all of them together
    #[arg(long, value_name = "[WHAT=]NUMBER", value_parser = number)]
    fail_uncovered_lines: Vec<Limited<u64>>,

    /// Fail when more than NUMBER functions did not run
    #[arg(long, value_name = "[WHAT=]NUMBER", value_parser = number)]
    fail_uncovered_functions: Vec<Limited<u64>>,

    /// Fail when more than NUMBER regions did not run
    #[arg(long, value_name = "[WHAT=]NUMBER", value_parser = number)]
    fail_uncovered_regions: Vec<Limited<u64>>,

    /// Fail when more than NUMBER sides of branches did not run
    #[arg(long, value_name = "[WHAT=]NUMBER", value_parser = number)]
    fail_uncovered_branches: Vec<Limited<u64>>,

    /// Fail when a kernel did not run on an arch that it was compiled for, even if nothing ran there. With --arch, only the
    /// named archs are checked
    #[arg(long)]
    fail_uncovered_kernels: bool,

    /// Fail when less ran than in this file from `rocov baseline`: the percentage is lower, and more code did not run
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Fail when more than NUMBER lines are excluded
    #[arg(long, value_name = "NUMBER")]
    fail_excluded_lines: Option<usize>,
}

/// A number, and the sources that it limits.
#[derive(Debug, Clone)]
struct Limited<T> {
    of: Option<LimitedSources>,
    number: T,
}

impl<T> Limited<T> {
    /// Reads `[WHAT=]NUMBER`.
    fn parse(text: &str, number: impl Fn(&str) -> Result<T, String>) -> Result<Self, String> {
        let (of, written) = match text.rsplit_once('=') {
            Some((word, written)) => (Some(word), written),
            None => (None, text),
        };
        if of == Some("") {
            return Err("expected a component, a source, a folder or a glob before =".to_owned());
        }
        let of = of.map(LimitedSources::new).transpose();
        Ok(Self {
            of: of.map_err(|error| error.to_string())?,
            number: number(written)?,
        })
    }
}

/// The limits of one kind of figure: the least percentages, and the largest numbers of things that did not run.
type Limits<'a> = (Measure, &'a [Limited<f64>], &'a [Limited<u64>]);

impl GateArguments {
    /// The limits of each kind of figure.
    fn limits(&self) -> [Limits<'_>; 4] {
        [
            (
                Measure::Lines,
                &self.fail_under_lines,
                &self.fail_uncovered_lines,
            ),
            (
                Measure::Functions,
                &self.fail_under_functions,
                &self.fail_uncovered_functions,
            ),
            (
                Measure::Regions,
                &self.fail_under_regions,
                &self.fail_uncovered_regions,
            ),
            (
                Measure::Branches,
                &self.fail_under_branches,
                &self.fail_uncovered_branches,
            ),
        ]
    }

    /// A line for each percentage that looks like a share of 1.
    pub(super) fn doubts(&self) -> Vec<Diagnostic> {
        let percentages = self.limits().into_iter();
        let percentages = percentages.flat_map(|(measure, limits, _)| {
            let limits = limits.iter();
            limits.map(move |limit| (measure.name(), limit.of.as_ref(), limit.number))
        });
        let changed = self.fail_under_changed_lines;
        let changed = changed.map(|percent| ("changed-lines", None, percent));
        let small = percentages
            .chain(changed)
            .filter(|(_, _, percent)| 0.0 < *percent && *percent < 1.0);
        let lines = small.map(|(name, of, percent)| {
            // Shares of two or three digits have no others in percent.
            let meant = (percent * 100_000.0).round() / 1000.0;
            let of = of.map_or(String::new(), |of| format!("{}=", of.word));
            diagnostic!(
                "--fail-under-{name} {of}{percent} is {percent} percent";
                "use {of}{meant} for {meant} percent"
            )
        });
        lines.collect()
    }

    /// The gates that these options set.
    pub(super) fn gates(&self) -> Gates {
        let mut limits = Vec::new();
        for (measure, percentages, numbers) in self.limits() {
            limits.extend(percentages.iter().map(|limit| Limit {
                measure,
                bound: Bound::LeastPercent(limit.number),
                of: limit.of.clone(),
            }));
            limits.extend(numbers.iter().map(|limit| Limit {
                measure,
                bound: Bound::MostMissed(limit.number),
                of: limit.of.clone(),
            }));
        }
        Gates {
            limits,
            changed_lines: self.fail_under_changed_lines,
            all_kernels: self.fail_uncovered_kernels,
            excluded_lines: self.fail_excluded_lines,
            has_baseline: self.baseline.is_some(),
        }
    }
}

/// Reads a percentage, and the sources that it is of.
fn percent(text: &str) -> Result<Limited<f64>, String> {
    Limited::parse(text, plain_percent)
}

/// Reads a percentage.
fn plain_percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected 0 to 100".to_owned()),
    }
}

/// Reads a number, and the sources that it is of.
fn number(text: &str) -> Result<Limited<u64>, String> {
    Limited::parse(text, |number| {
        number
            .parse()
            .map_err(|_| "expected a number: 0 or more".to_owned())
    })
}
