//! The stored figures of a column in an earlier run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::{Figure, Figures, Measure};

/// The figures of one column.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BaselineColumn {
    /// The day of the report, in UTC: `2026-11-28`.
    pub(crate) date: String,
    pub(crate) total: Shares,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) components: BTreeMap<String, Shares>,
    /// By the path from the root of the repository.
    pub(crate) files: BTreeMap<String, Shares>,
}

/// How much of each kind ran: covered things, and all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shares {
    pub(super) lines: (u64, u64),
    pub(super) functions: (u64, u64),
    pub(super) regions: (u64, u64),
    pub(super) branches: (u64, u64),
}

impl Shares {
    pub(crate) fn from_figures(figures: &Figures) -> Self {
        let share = |measure: Measure| {
            let figure = measure.figure(figures);
            (figure.covered, figure.total)
        };
        Self {
            lines: share(Measure::Lines),
            functions: share(Measure::Functions),
            regions: share(Measure::Regions),
            branches: share(Measure::Branches),
        }
    }

    /// The figure of one kind.
    pub(crate) fn figure(&self, measure: Measure) -> Figure {
        let (covered, total) = match measure {
            Measure::Lines => self.lines,
            Measure::Functions => self.functions,
            Measure::Regions => self.regions,
            Measure::Branches => self.branches,
        };
        Figure { total, covered }
    }

    /// The sum of two parts.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let sum = |one: (u64, u64), other: (u64, u64)| (one.0 + other.0, one.1 + other.1);
        Self {
            lines: sum(self.lines, other.lines),
            functions: sum(self.functions, other.functions),
            regions: sum(self.regions, other.regions),
            branches: sum(self.branches, other.branches),
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        let figures = Measure::ALL.map(|measure| self.figure(measure));
        figures.iter().all(|figure| figure.covered <= figure.total)
    }
}

impl BaselineColumn {
    pub(super) fn shares(&self) -> impl Iterator<Item = &Shares> {
        let parts = self.components.values().chain(self.files.values());
        parts.chain([&self.total])
    }
}

/// A column of a baseline that a report has no runs of.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) label: String,
    pub(crate) column: BaselineColumn,
    /// The days from its date to that of the report.
    pub(crate) days: u64,
}

impl Carried {
    /// The age in words.
    pub(crate) fn age(&self) -> String {
        match self.days {
            0 => "of today".to_owned(),
            1 => "1 day old".to_owned(),
            days => format!("{days} days old"),
        }
    }
}
