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
mod sonar;
mod text;
mod uniformity;

pub(crate) use breakdown::SHARED;
pub(crate) use html::write as write_html;

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;

use crate::coverage::view::View;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text { is_colored: bool },
    Lcov,
    Cobertura,
    Json { summary_only: bool },
    Sonar,
    Markdown,
}

impl Format {
    /// Returns whether it knows files with lines only.
    pub(crate) fn is_of_lines(self) -> bool {
        matches!(self, Self::Lcov | Self::Cobertura | Self::Sonar)
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
    headings: &BTreeMap<String, String>,
    out: &mut dyn Write,
) -> Result<()> {
    match format {
        Format::Text { is_colored } => text::write(view, headings, is_colored, out)?,
        Format::Lcov => lcov::write(view, out)?,
        Format::Cobertura => cobertura::write(view, out)?,
        Format::Json { summary_only } => json::write(view, summary_only, out)?,
        Format::Sonar => sonar::write(view, out)?,
        Format::Markdown => markdown::write(view, out)?,
    }
    out.flush()?;
    Ok(())
}
