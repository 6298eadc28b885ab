//! How much of something ran: covered of total, per kind of thing.

use serde::Serialize;

/// How many ran, of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Figure {
    pub(crate) total: u64,
    pub(crate) covered: u64,
}

impl Figure {
    /// Counts one more.
    pub(crate) fn count(&mut self, is_covered: bool) {
        self.covered += u64::from(is_covered);
        self.total += 1;
    }

    /// Of these things, those that are covered.
    pub(crate) fn of(things: impl IntoIterator<Item = bool>) -> Self {
        let mut figure = Self::default();
        things.into_iter().for_each(|it| figure.count(it));
        figure
    }

    /// How many did not run.
    pub(crate) fn missed(self) -> u64 {
        self.total - self.covered
    }

    /// Covered in percent of the total; `None` of nothing.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 lines")]
    pub(crate) fn percent(self) -> Option<f64> {
        (self.total > 0).then(|| self.covered as f64 / self.total as f64 * 100.0)
    }

    /// Of two parts, their sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            covered: self.covered + other.covered,
            total: self.total + other.total,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            covered: self.covered.max(other.covered),
            total: self.total.max(other.total),
        }
    }
}

/// The figures that llvm-cov knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) regions: Figure,
    pub(crate) functions: Figure,
    /// Functions, each instance of a template by itself.
    pub(crate) instantiations: Figure,
    pub(crate) lines: Figure,
    pub(crate) branches: Figure,
    /// MC/DC conditions.
    pub(crate) conditions: Figure,
}

impl Figures {
    /// Of two parts, their sum.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, Figure::plus)
    }

    /// Of two instances of a template, the larger of each: llvm-cov's rule, by which a template
    /// counts once, and as well as its best instance.
    pub(crate) fn max(&self, other: &Self) -> Self {
        self.with(other, Figure::max)
    }

    fn with(&self, other: &Self, combine: impl Fn(Figure, Figure) -> Figure) -> Self {
        Self {
            regions: combine(self.regions, other.regions),
            functions: combine(self.functions, other.functions),
            instantiations: combine(self.instantiations, other.instantiations),
            lines: combine(self.lines, other.lines),
            branches: combine(self.branches, other.branches),
            conditions: combine(self.conditions, other.conditions),
        }
    }
}
