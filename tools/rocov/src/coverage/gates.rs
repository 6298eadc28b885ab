//! What a report must reach: least percentages, and kernels that all ran.

use super::figures::{Figure, Figures};
use super::view::View;
use crate::demangle::shown;
use clap::Args;

/// Least percentages of what ran, each for every arch and for all of them joined.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct Gates {
    /// Fail when less than PERCENT of the lines ran, on an arch or in all
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_lines: Option<f64>,

    /// The same of functions
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_functions: Option<f64>,

    /// The same of regions
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_regions: Option<f64>,

    /// The same of branches
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "show")]
    fail_under_branches: Option<f64>,

    /// Fail when a kernel did not run, on an arch that it was compiled for
    #[arg(long, conflicts_with = "show")]
    fail_uncovered_kernels: bool,
}

/// The least percentage of something.
struct Least {
    what: &'static str,
    percent: f64,
    of: Of,
}

/// What a percentage is taken of.
type Of = fn(&Figures) -> Figure;

impl Gates {
    /// Whether there is anything to reach: then what is left out of a report is a failure too.
    pub(crate) fn are_set(&self) -> bool {
        self.fail_uncovered_kernels || self.least().next().is_some()
    }

    /// One line for each thing that was not reached.
    pub(crate) fn broken(&self, view: &View) -> Vec<String> {
        if !self.are_set() {
            return Vec::new();
        }
        if view.paths.is_empty() {
            return vec!["no source file is left to report".to_owned()];
        }
        let mut broken = self.too_low(view);
        if self.fail_uncovered_kernels {
            broken.extend(uncovered_kernels(view));
        }
        broken
    }

    /// The least percentages that are set.
    fn least(&self) -> impl Iterator<Item = Least> {
        let all: [(_, _, Of); 4] = [
            ("lines", self.fail_under_lines, |it| it.lines),
            ("functions", self.fail_under_functions, |it| it.functions),
            ("regions", self.fail_under_regions, |it| it.regions),
            ("branches", self.fail_under_branches, |it| it.branches),
        ];
        let set = |(what, percent, of): (_, Option<f64>, _)| {
            percent.map(|percent| Least { what, percent, of })
        };
        all.into_iter().filter_map(set)
    }

    fn too_low(&self, view: &View) -> Vec<String> {
        let total = &view.table().total;
        let labels = view.columns.iter().map(|column| column.label.as_str());
        let mut totals: Vec<_> = labels.zip(total.columns.iter().flatten()).collect();
        if totals.len() > 1 {
            totals.push(("all", &total.all));
        }
        let mut broken = Vec::new();
        for (label, figures) in totals {
            for least in self.least() {
                let figure = (least.of)(figures);
                // Of no branches, none is missed.
                if let Some(percent) = figure.percent()
                    && percent < least.percent
                {
                    broken.push(format!(
                        "{label}: {percent:.2}% of {} ran ({} of {} did not), less than {}%",
                        least.what,
                        figure.missed(),
                        figure.total,
                        least.percent,
                    ));
                }
            }
        }
        broken
    }
}

/// The kernels in the files shown that did not run, per column.
fn uncovered_kernels(view: &View) -> Vec<String> {
    let mut broken = Vec::new();
    for column in &view.columns {
        for path in &view.paths {
            for record in column.defined_in(path) {
                let function = &record.function;
                if record.counts.calls == 0 && column.kernels.contains(&*function.name) {
                    broken.push(format!(
                        "{}: kernel {} did not run ({path}:{})",
                        column.label,
                        shown(&function.name),
                        function.start().line,
                    ));
                }
            }
        }
    }
    broken
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected 0 to 100".to_owned()),
    }
}
