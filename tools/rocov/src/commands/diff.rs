//! `rocov diff`: compares the coverage of two data directories or reports in JSON.

use anyhow::{Context, Result, anyhow, bail};

use crate::cli::{DiffArguments, DiffSide};
use crate::coverage;
use crate::coverage::{By, Comparison, Report, Rules, SourceTexts, View};
use crate::data::components::Components;
use crate::data::{DataDirectory, Origins, check_archs};
use crate::llvm::LlvmTools;
use crate::profdata::MergedProfiles;
use crate::render::comparison;
use crate::render::comparison::ComparisonFormat;
use crate::term::exit_status::CommandResult;
use crate::term::warnings::Warnings;
use crate::term::{exit_status, print};

/// Prints the comparison.
pub(crate) fn diff(arguments: &DiffArguments) -> CommandResult {
    let [before, after] = arguments.sides();
    let read = |side| {
        view(side, arguments).with_context(|| format!("cannot compare {}", side.path.display()))
    };
    let views = [read(before)?, read(after)?];
    if views.iter().all(|view| view.paths.is_empty()) {
        return Err(anyhow!(
            "nothing to compare: --include and --exclude leave none of the sources in {} and {}: give globs that \
             match some",
            before.path.display(),
            after.path.display()
        )
        .into());
    }
    let comparison = Comparison::of(
        [before, after].map(|it| it.to_string()),
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

/// Reads a data directory, or a report in JSON.
fn view(side: DiffSide<'_>, arguments: &DiffArguments) -> Result<View> {
    let DiffSide { path, labels } = side;
    let filters = &arguments.filters;
    let selection = filters.selection()?;
    // A pipe or a device is no directory either, and reading it as a report names the fault.
    if path.exists() && !path.is_dir() {
        if !labels.is_empty() {
            bail!(
                "{} is a report, which has no labels: leave out --label, or give a data directory",
                path.display()
            );
        }
        let mut sources = coverage::read_saved(path, |path| selection.place(path))?;
        check_archs(
            sources.iter().map(|it| &*it.arch),
            &filters.arch,
            &path.display(),
        )?;
        sources.retain(|source| filters.arch.is_empty() || filters.arch.contains(&source.arch));
        return Ok(View::new(sources, By::Arch, |path| selection.admits(path)));
    }
    let mut installed = LlvmTools::find_any(arguments.llvm_bin.as_deref())?;
    let (archs, objects) = (&filters.arch, &arguments.objects);
    Warnings::printing(|warnings| {
        let all_builds = filters.all_builds;
        let data = DataDirectory::for_report(&[path], all_builds, objects, archs, warnings)?;
        let all = Components::default();
        let mut matched = data.match_elfs(archs, &all, &mut installed, warnings)?;
        matched.select_labels(labels, &data)?;
        let merged = MergedProfiles::of_data(&mut matched, &data, &installed, warnings)?;
        let mut report = Report::of(&merged, &data, &Origins::default());
        report.follow(Rules::Own, filters.exclusions(SourceTexts::default()));
        let (view, said) = report.view(&selection, By::Arch, &installed)?;
        warnings.extend(said);
        Ok(view)
    })
}
