//! `rocov diff`: what ran in one data directory, or report in JSON, and not in another.

use crate::child;
use crate::cli::DiffArguments;
use crate::components::Components;
use crate::coverage::{self, By, Comparison, ComparisonFormat, View};
use crate::data::{DataDirectory, Origins};
use crate::llvm_tools::Installed;
use crate::report;
use crate::status::{self, Outcome};
use anyhow::{Context, Result, anyhow};
use std::path::Path;

/// Prints the comparison.
pub(crate) fn diff(arguments: &DiffArguments) -> Outcome {
    let (before, after) = (&arguments.before, &arguments.after);
    let read = |path: &Path| {
        view(path, arguments).with_context(|| format!("cannot compare {}", path.display()))
    };
    let views = [read(before)?, read(after)?];
    if views.iter().all(|view| view.paths.is_empty()) {
        return Err(anyhow!(
            "nothing to compare: of the sources in {} and {} none is left by --include and --exclude",
            before.display(),
            after.display()
        )
        .into());
    }
    let comparison = Comparison::of([before, after], &views[0], &views[1]);
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

/// What a data directory has, or a report in JSON.
fn view(path: &Path, arguments: &DiffArguments) -> Result<View> {
    let filters = &arguments.filters;
    let selection = filters.selection()?;
    if path.is_file() {
        let mut sources = coverage::read_saved(path, |path| selection.place(path))?;
        report::check_archs(
            sources.iter().map(|it| &*it.arch),
            &filters.arch,
            &path.display(),
        )?;
        sources.retain(|source| filters.arch.is_empty() || filters.arch.contains(&source.arch));
        return Ok(View::new(sources, By::Arch, |path| selection.admits(path)));
    }
    let mut installed = Installed::find(arguments.llvm_bin.as_deref())?;
    let inputs = report::read(
        DataDirectory::open_builds(&[path], filters.all_builds)?,
        &arguments.objects,
        &filters.arch,
    )?;
    let all = Components::default();
    let (mut matching, _) = report::matched(&inputs, &filters.arch, &all, &mut installed)?;
    let (merged, _) = report::merged(&mut matching, &inputs, &installed)?;
    let report = report::of_device(&merged, &inputs, &Origins::default());
    let (view, warnings) = report.view(&selection, By::Arch, &installed)?;
    child::say(&warnings);
    Ok(view)
}
