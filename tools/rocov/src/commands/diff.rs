//! `rocov diff`: compares the coverage of two data directories or reports in JSON.

use anyhow::{Context, Result};
use rocov::support::diagnostic::Diagnostic;

use crate::cli::{DiffArguments, DiffSide};
use crate::coverage::{Comparison, View};
use crate::render::comparison;
use crate::render::comparison::ComparisonFormat;
use crate::support::failure::failure;
use crate::term::exit_status::CommandResult;
use crate::term::{exit_status, print};

/// Prints the comparison.
pub(crate) fn diff(arguments: &DiffArguments) -> CommandResult {
    let [before, after] = arguments.sides();
    let read = |side| {
        view(side, arguments).with_context(|| format!("cannot compare {}", side.path.display()))
    };
    let [(before_view, idle), (after_view, idle_after)] = [read(before)?, read(after)?];
    let views = [before_view, after_view];
    if views.iter().all(|view| view.paths.is_empty()) {
        return Err(failure!(
            "nothing to compare: --include and --exclude leave none of the sources in {} and {}",
            before.path.display(), after.path.display();
            "use globs that match at least one"
        )
        .into());
    }
    // A pattern may be of one side only.
    let idle = idle.into_iter().filter(|line| idle_after.contains(line));
    print::warn(&idle.collect::<Vec<_>>());
    let comparison = Comparison::new(
        [before, after].map(|name| name.to_string()),
        &views[0],
        &views[1],
    );
    let format = match (arguments.json, arguments.markdown) {
        (true, _) => ComparisonFormat::Json,
        (_, true) => ComparisonFormat::Markdown,
        _ => ComparisonFormat::Text,
    };
    print::to_file_or_stdout(arguments.output.as_deref(), |out| {
        comparison::write(&comparison, format, out)
    })?;
    if !arguments.fail_on_loss {
        return Ok(0);
    }
    let losses = comparison.losses();
    for line in &losses {
        print::message(format_args!("gate: {line}"));
    }
    Ok(if losses.is_empty() {
        0
    } else {
        exit_status::GATE_BROKEN
    })
}

/// Reads a data directory, or a report in JSON. Returns also a line for each pattern that matches nothing there.
fn view(side: DiffSide<'_>, arguments: &DiffArguments) -> Result<(View, Vec<Diagnostic>)> {
    let (objects, llvm_bin) = (&arguments.objects, arguments.llvm_bin.as_deref());
    let filters = &arguments.filters;
    let (view, idle) = filters.view(&[side.path], side.labels, objects, llvm_bin)?;
    print::warn(&view.misfits_of(&side.path.display().to_string()));
    Ok((view, idle))
}
