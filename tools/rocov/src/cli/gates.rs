//! The options of `rocov report` that make it fail.

use clap::Args;

use crate::coverage::Gates;

/// Least percentages, each for every arch and for all of them joined.
#[derive(Debug, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GateArguments {
    /// Fail when less than PERCENT of the lines ran, on an arch or in all
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_lines: Option<f64>,

    /// Fail when less than PERCENT of the functions ran
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_functions: Option<f64>,

    /// Fail when less than PERCENT of the regions ran
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_regions: Option<f64>,

    /// Fail when less than PERCENT of the branches ran
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_branches: Option<f64>,

    /// With --diff, fail when less than PERCENT of the changed lines ran, or a changed file is not
    /// reported
    #[arg(long, value_name = "PERCENT", value_parser = percent, requires = "diff")]
    fail_under_changed_lines: Option<f64>,

    /// Fail when a kernel did not run, on an arch that it was compiled for
    #[arg(long, conflicts_with = "show")]
    fail_uncovered_kernels: bool,

    /// Fail when more than NUMBER lines are excluded
    #[arg(long, value_name = "NUMBER", conflicts_with = "show")]
    fail_excluded_lines: Option<usize>,
}

impl GateArguments {
    /// A line for each percentage that looks like a share of 1.
    pub(super) fn doubts(&self) -> Vec<String> {
        let percentages = [
            ("--fail-under-lines", self.fail_under_lines),
            ("--fail-under-functions", self.fail_under_functions),
            ("--fail-under-regions", self.fail_under_regions),
            ("--fail-under-branches", self.fail_under_branches),
            ("--fail-under-changed-lines", self.fail_under_changed_lines),
        ];
        let small = percentages.into_iter().filter_map(|(option, percent)| {
            Some((option, percent.filter(|it| 0.0 < *it && *it < 1.0)?))
        });
        let lines = small.map(|(option, percent)| {
            // Shares of two or three digits have no others in percent.
            let meant = (percent * 100_000.0).round() / 1000.0;
            format!("{option} {percent} is {percent} percent: give {meant} for {meant} percent")
        });
        lines.collect()
    }

    /// The gates that these options set.
    pub(super) fn gates(&self) -> Gates {
        Gates {
            lines: self.fail_under_lines,
            functions: self.fail_under_functions,
            regions: self.fail_under_regions,
            branches: self.fail_under_branches,
            changed_lines: self.fail_under_changed_lines,
            all_kernels: self.fail_uncovered_kernels,
            excluded_lines: self.fail_excluded_lines,
        }
    }
}

/// Parses a percentage.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected 0 to 100".to_owned()),
    }
}
