//! The formats that a report is written in.

mod changed;
mod cobertura;
mod html;
mod json;
mod lcov;
mod markdown;
mod parts;
pub(super) mod paths;
mod sonar;
mod text;

pub(crate) use html::write as write_html;
pub(crate) use parts::SHARED;

use super::view::View;
use anyhow::Result;
use std::collections::BTreeMap;
use std::io::Write;

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

/// Writes `view` in `format`. `about` is what a text says of a column before its table.
///
/// # Errors
///
/// When it cannot be written.
pub(crate) fn write(
    view: &View,
    format: Format,
    about: &BTreeMap<String, String>,
    out: &mut dyn Write,
) -> Result<()> {
    match format {
        Format::Text { is_colored } => text::write(view, about, is_colored, out)?,
        Format::Lcov => lcov::write(view, out)?,
        Format::Cobertura => cobertura::write(view, out)?,
        Format::Json { summary_only } => json::write(view, summary_only, out)?,
        Format::Sonar => sonar::write(view, out)?,
        Format::Markdown => markdown::write(view, out)?,
    }
    out.flush()?;
    Ok(())
}
