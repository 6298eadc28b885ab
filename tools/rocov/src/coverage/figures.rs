//! The share of something that ran: covered of total, per kind of thing.

use serde::Serialize;

/// The number of things that ran, and of all.
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

    /// Counts all things: each is `true` if it is covered.
    pub(crate) fn count_all(things: impl IntoIterator<Item = bool>) -> Self {
        let mut figure = Self::default();
        things.into_iter().for_each(|thing| figure.count(thing));
        figure
    }

    /// The number of things that did not run.
    pub(crate) fn missed(self) -> u64 {
        self.total - self.covered
    }

    /// The covered share in percent; `None` if there is nothing to cover.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 lines")]
    pub(crate) fn percent(self) -> Option<f64> {
        (self.total > 0).then(|| self.covered as f64 / self.total as f64 * 100.0)
    }

    /// The sum of two parts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            covered: self.covered + other.covered,
            total: self.total + other.total,
        }
    }

    /// The figure in percent, such as `95.45%`; a dash if there is nothing to cover. It is rounded as llvm-cov does, but
    /// only all of it is `100.00%`.
    pub(crate) fn percent_text(self) -> String {
        let Some(percent) = self.percent() else {
            return "-".to_owned();
        };
        let text = format!("{percent:.2}%");
        match self.missed() > 0 && text == "100.00%" {
            true => "99.99%".to_owned(),
            false => text,
        }
    }

    /// The figure in percent with its numbers, such as `95.45% (21/22)`; a dash if there is nothing to
    /// cover.
    pub(crate) fn share_text(self) -> String {
        let percent = self.percent_text();
        match self.total {
            0 => percent,
            total => format!("{percent} ({}/{total})", self.covered),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            covered: self.covered.max(other.covered),
            total: self.total.max(other.total),
        }
    }
}

/// A kind of thing that gates and baselines are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    Lines,
    Functions,
    Regions,
    Branches,
}

impl Measure {
    /// All kinds, in the order that they are shown in.
    pub(crate) const ALL: [Self; 4] = [Self::Lines, Self::Functions, Self::Regions, Self::Branches];

    /// The name, in the plural.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Functions => "functions",
            Self::Regions => "regions",
            Self::Branches => "branches",
        }
    }

    /// The figure of this kind.
    pub(crate) fn figure(self, figures: &Figures) -> Figure {
        match self {
            Self::Lines => figures.lines,
            Self::Functions => figures.functions,
            Self::Regions => figures.regions,
            Self::Branches => figures.branches,
        }
    }
}

/// The figures that llvm-cov also reports.
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
    /// The sum of two parts.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, Figure::plus)
    }

    /// The larger figures of two instances of a template. By llvm-cov's rule a template counts once, as
    /// well as its best instance.
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
