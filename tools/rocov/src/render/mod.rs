//! The formats that a report is written in.

#[cfg(test)]
mod against_llvm_cov;
pub(crate) mod annotated;
mod badge;
mod breakdown;
mod changed;
mod cobertura;
pub(crate) mod comparison;
mod excluded;
mod grades;
mod html;
mod json;
mod lcov;
#[cfg(test)]
mod llvm_tests;
mod markdown;
mod markdown_text;
mod missed_lines;
mod sarif;
mod sonar;
mod text;
mod uniformity;
mod xml;

pub(crate) use breakdown::SHARED;
pub(crate) use html::write as write_html;
pub(crate) use json::JsonContents;
pub(crate) use text::{MissingLines, Order, TableStyle};

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;

use crate::coverage::view::View;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text(TableStyle),
    /// With no count above a largest one.
    Lcov {
        max_count: u64,
    },
    Cobertura {
        max_count: u64,
    },
    Json {
        contents: JsonContents,
    },
    Sonar,
    Markdown {
        /// True to list the excluded lines.
        has_excluded: bool,
    },
    /// The changed lines that did not run.
    Sarif,
    Badge,
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

    /// Returns whether it supports files with lines only.
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
        Format::Text(style) => text::write(view, headings, style, out)?,
        Format::Lcov { max_count } => lcov::write(view, max_count, out)?,
        Format::Cobertura { max_count } => cobertura::write(view, max_count, out)?,
        Format::Json { contents } => json::write(view, contents, out)?,
        Format::Sonar => sonar::write(view, out)?,
        Format::Markdown { has_excluded } => markdown::write(view, has_excluded, out)?,
        Format::Sarif => sarif::write(view, out)?,
        Format::Badge => badge::write(view, out)?,
    }
    out.flush()?;
    Ok(())
}
