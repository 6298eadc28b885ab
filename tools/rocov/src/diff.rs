//! `rocov diff`: what ran in one data directory and not in another.

use crate::cli::DiffArguments;
use crate::coverage::{By, Comparison, ComparisonFormat, View};
use crate::llvm_tools::Installed;
use crate::report;
use crate::status::{self, Outcome};
use anyhow::{Context, Result};
use std::path::Path;

/// Prints the comparison.
pub(crate) fn diff(arguments: &DiffArguments) -> Outcome {
    let mut installed = Installed::find(arguments.llvm_bin.as_deref())?;
    let (before, after) = (&arguments.before, &arguments.after);
    let mut read = |directory: &Path| {
        view(directory, arguments, &mut installed)
            .with_context(|| format!("cannot compare {}", directory.display()))
    };
    let comparison = Comparison::of([before, after], &read(before)?, &read(after)?);
    let format = match (arguments.json, arguments.markdown) {
        (true, _) => ComparisonFormat::Json,
        (_, true) => ComparisonFormat::Markdown,
        _ => ComparisonFormat::Text,
    };
    comparison.write(format, arguments.output_path.as_deref())?;
    if !arguments.fail_on_loss {
        return Ok(0);
    }
    let losses = comparison.losses();
    for line in &losses {
        eprintln!("rocov: gate: {line}");
    }
    Ok(if losses.is_empty() {
        0
    } else {
        status::GATE_BROKEN
    })
}

/// What a data directory has.
fn view(directory: &Path, arguments: &DiffArguments, installed: &mut Installed) -> Result<View> {
    let filters = &arguments.filters;
    let inputs = report::read(directory, &arguments.objects, &filters.arch)?;
    let (matching, _) = report::matched(&inputs, directory, &filters.arch, installed)?;
    let merged = report::merged(&matching, directory, installed)?;
    let selection = filters.selection()?;
    let (view, _) = report::of_device(&merged, &inputs).view(&selection, By::Arch, installed)?;
    Ok(view)
}
