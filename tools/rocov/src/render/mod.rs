//! The formats that a report is written in.

#[cfg(test)]
mod against_llvm_cov;
pub(crate) mod annotated;
mod breakdown;
mod changed;
mod cobertura;
pub(crate) mod comparison;
mod html;
mod json;
mod lcov;
#[cfg(test)]
mod llvm_tests;
mod markdown;
mod markdown_text;
mod sonar;
mod text;
mod uniformity;
mod xml;

pub(crate) use breakdown::SHARED;
pub(crate) use html::write as write_html;
pub(crate) use text::Order;

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;

use crate::coverage::view::View;
use crate::term::look::Look;
use crate::term::plural::count;

/// The number of lines that are left out, as a text; `None` if there are none.
fn excluded(view: &View) -> Option<String> {
    let lines = view.excluded_lines();
    (lines > 0).then(|| count(lines, "line"))
}

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text {
        look: Look,
        order: Order,
    },
    /// With no count above a largest one.
    Lcov {
        max_count: u64,
    },
    Cobertura {
        max_count: u64,
    },
    Json {
        summary_only: bool,
    },
    Sonar,
    Markdown,
}

impl Format {
    /// Returns whether it has the uniformity of lines.
    pub(crate) fn has_uniformity(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Json { .. })
    }

    /// Returns whether it has the counts of each label.
    pub(crate) fn has_label_counts(self) -> bool {
        matches!(self, Self::Lcov { .. })
    }

    /// Returns whether it knows files with lines only.
    pub(crate) fn is_of_lines(self) -> bool {
        matches!(
            self,
            Self::Lcov { .. } | Self::Cobertura { .. } | Self::Sonar
        )
    }
}

/// Writes `view` in `format`. `headings` are the lines before the table of each column, in a text.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(crate) fn write(
    view: &View,
    format: Format,
    headings: &BTreeMap<&str, Vec<&str>>,
    out: &mut dyn Write,
) -> Result<()> {
    match format {
        Format::Text { look, order } => text::write(view, headings, look, order, out)?,
        Format::Lcov { max_count } => lcov::write(view, max_count, out)?,
        Format::Cobertura { max_count } => cobertura::write(view, max_count, out)?,
        Format::Json { summary_only } => json::write(view, summary_only, out)?,
        Format::Sonar => sonar::write(view, out)?,
        Format::Markdown => markdown::write(view, out)?,
    }
    out.flush()?;
    Ok(())
}
