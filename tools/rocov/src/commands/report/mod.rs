//! `rocov report`: prints which lines ran, or writes that in another format.

mod shown;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};

use crate::cli::{Output, ReportArguments, ReportOptions};
use crate::coverage::sources_to_show::SourcesToShow;
use crate::coverage::view::View;
use crate::coverage::{Report, SourceTexts};
use crate::data::components::Components;
use crate::data::match_elfs::NotOfComponents;
use crate::data::matched_elfs::MatchedElfs;
use crate::data::{DataListing, Origins, ReportableData};
use crate::dataset::DataSetInputs;
use crate::llvm::LlvmTools;
use crate::profdata::{CountUnit, MergedProfiles, host_counts, per_label, uniformity};
use crate::render::annotated;
use crate::render::annotated::AnnotatedSource;
use crate::support::demangle::first_shown;
use crate::term::exit_status::{CommandResult, Failure};
use crate::term::lines::Lines;
use crate::term::plural::count;
use crate::term::warnings::Warnings;
use crate::term::{exit_status, print};
use shown::{Compared, ShownReport};

/// Prints or writes the report.
pub(crate) fn report(mut arguments: ReportArguments) -> CommandResult {
    arguments.take_data_from_show(DataListing::is_at);
    if arguments.quiet {
        print::be_quiet();
    }
    match arguments.watch {
        true => watch::watch(&arguments.directories(), || report_once(&arguments)),
        false => report_once(&arguments),
    }
}

/// Prints or writes the report of the data as it is now.
fn report_once(arguments: &ReportArguments) -> CommandResult {
    print::warn(&arguments.options.doubts());
    let options = &arguments.options;
    let archs = &options.filters.arch;
    let texts = options.texts()?;
    let mut compared = Compared::read(options)?;
    let outputs = options.formats.outputs();
    let mut outputs = outputs.unwrap_or_else(|error| error.exit());
    // Annotated source replaces the table.
    if arguments.show.is_some() {
        outputs.clear();
    }
    let directories = arguments.directories();
    let inputs = DataSetInputs::read(&directories, &arguments.conditions)?;
    let data = Warnings::printing(|warnings| {
        DataListing::open(inputs.directories(), warnings)?
            .called(directories.clone())
            .complete(options.filters.all_builds, warnings)?
            .for_report(&arguments.objects, archs, warnings)
    })?;
    let mut origins = data.registries.origins();
    let components = Components::from_files(&options.component, &mut origins)?;
    let mut installed = LlvmTools::find_any(arguments.llvm_bin.as_deref())?;
    let mut matched = matched(&data, options, &components, &mut installed)?;
    matched.select_labels(&options.labels, &data)?;
    let mut merged = Warnings::printing(|warnings| {
        MergedProfiles::merge_data(&mut matched, &data, &installed, warnings)
    })?;
    if let Some(kind) = arguments.counts {
        merged.select_kind(kind, &data)?;
    }
    let absent = components.absent(|identity| merged.has(identity));
    print::warn(&absent);
    convert_counts(&mut merged, options)?;
    let mut report = Report::new(&merged, &data, &origins);
    report.follow(options.rules(), options.exclusions()?);
    add_host(&mut report, arguments, &data, &merged, &installed)?;
    if arguments.show.is_some() {
        show(arguments, &report, options.texts()?, &installed)?;
        if !options.gates().are_set() {
            return Ok(0);
        }
    }
    if options.uniformity {
        if !outputs.iter().any(|output| output.format.has_uniformity()) {
            print::warn(&[diagnostic!(
                "only the table and --json contain uniformity, but neither is written";
                "also use --table or --json"
            )]);
        }
        add_uniformity(&mut report, &data, &matched, &merged)?;
    }
    add_components(&mut report, options, &components)?;
    if options.per_test {
        add_tests(&mut report, options, &outputs, &data, &matched)?;
    }
    let mut missing = missing(options, &data, &matched, &components);
    missing.extend(absent);
    // The first page names what nothing ran on.
    if options.gates().all_kernels || options.formats.html.is_some() {
        compared.other_archs = other_archs(&data, &report, options, &components, &mut installed)?;
    }
    let mut shown = ShownReport::new(&report, arguments, compared, texts, &installed)?;
    let headings = report.headings(arguments.verbose);
    shown.write(&headings, &data.registries, &outputs)?;
    let mut broken = shown.broken()?;
    // All that is missing from the report breaks a gate.
    if options.gates().are_set() {
        broken.extend(missing);
    }
    for line in &broken {
        print::message(format_args!("gate: {line}"));
    }
    Ok(if broken.is_empty() {
        0
    } else {
        exit_status::GATE_BROKEN
    })
}

/// Pairs profiles with device ELFs.
///
/// # Errors
///
/// Fails if nothing is left. If there are profiles of other components only, a gate is broken.
fn matched<'a>(
    data: &'a ReportableData,
    options: &ReportOptions,
    components: &Components,
    installed: &mut LlvmTools,
) -> Result<MatchedElfs<'a>, Failure> {
    let matched = Warnings::printing(|warnings| {
        data.match_elfs(&options.filters.arch, components, installed, warnings)
    });
    match matched {
        Err(error) if options.gates().are_set() && error.is::<NotOfComponents>() => Err(
            Failure::new(exit_status::GATE_BROKEN, error.context("gate")),
        ),
        matched => Ok(matched?),
    }
}

/// Makes counts those that the user wants: estimates from a sample, or those of programs.
///
/// # Errors
///
/// Fails if rocov cannot scale the counts of a code object.
fn convert_counts(merged: &mut MergedProfiles<'_>, options: &ReportOptions) -> Result<()> {
    match options.scale {
        Some(scale) => merged.scale(scale)?,
        None => print::warn(&sampled(merged)),
    }
    if options.per == CountUnit::Program {
        print::warn(&per_thread(&merged.count_programs()));
    }
    Ok(())
}

/// Adds components to the report: those that are files with code, and those that are made of sources.
///
/// # Errors
///
/// Fails if the sources of one cannot be selected.
fn add_components(
    report: &mut Report<'_>,
    options: &ReportOptions,
    components: &Components,
) -> Result<()> {
    for component in components.iter() {
        let name = component.path.display().to_string();
        report.add_component(name, component.identities.clone());
    }
    for (name, globs) in options.source_components()? {
        report.add_sources(name, globs);
    }
    Ok(())
}

/// Adds tests to the report.
///
/// # Errors
///
/// Fails if no profile has a label.
fn add_tests<'a>(
    report: &mut Report<'a>,
    options: &ReportOptions,
    outputs: &[Output<'_>],
    data: &ReportableData,
    matched: &MatchedElfs<'a>,
) -> Result<()> {
    // Only pages show the tests of each line.
    let has_line_tests = options.formats.html.is_some();
    report.add_tests(per_label::tests(matched, data)?, has_line_tests);
    if outputs
        .iter()
        .any(|output| output.format.has_label_counts())
    {
        report.add_labels(per_label::apart(matched));
    }
    Ok(())
}

/// A line for each thing that is missing from a report with gates, and that no warning of the report names.
fn missing(
    options: &ReportOptions,
    data: &ReportableData,
    matched: &MatchedElfs<'_>,
    components: &Components,
) -> Vec<Diagnostic> {
    let mut missing = match options.gates().are_set() {
        true => data.missing(matched, &options.filters.arch, components),
        false => Vec::new(),
    };
    if !options.host_binary.is_empty() && data.files.without_host_counts().is_some() {
        missing.push(diagnostic!("host counts of processes left out"; "see above"));
    }
    missing
}

/// The view of the code for archs that nothing ran on, as `report` shows its own. `None` if there is none.
///
/// # Errors
///
/// Fails if the code cannot be read.
fn other_archs(
    data: &ReportableData,
    report: &Report<'_>,
    options: &ReportOptions,
    components: &Components,
    installed: &mut LlvmTools,
) -> Result<Option<View>> {
    Warnings::printing(|warnings| {
        let archs = &options.filters.arch;
        let Some(other) = data.other_archs(archs, components, warnings)? else {
            return Ok(None);
        };
        let data = other.data;
        let mut matched = data.match_elfs(&[], &Components::default(), installed, warnings)?;
        let merged = MergedProfiles::merge_data(&mut matched, &data, installed, warnings)?;
        let other = Report::new(&merged, &data, &Origins::default());
        let view = report.view_of(&other, &options.filters.selection()?, installed)?;
        Ok(Some(view))
    })
}

/// A line for each code object whose counts may be of a sample.
fn sampled(merged: &MergedProfiles<'_>) -> Vec<Diagnostic> {
    let sampled = merged.objects().filter(|object| object.may_be_sampled());
    let lines = sampled.map(|object| {
        diagnostic!(
            "{}: the counts may cover only one workgroup in 8: by default, LLVM's own device code counts no more",
            object.name();
            "compile with the flags that `rocov flags` prints, or estimate with --scale 8"
        )
    });
    lines.collect()
}

/// A line with the kernels whose counts are per thread in a report of programs, if there are some.
fn per_thread(kernels: &BTreeSet<String>) -> Vec<Diagnostic> {
    let line = || {
        diagnostic!(
            "the counts of {} are per thread ({}): their code does not fix the number of threads, as Triton's PTX \
             does with .reqntid",
            count(kernels.len(), "kernel"), first_shown(kernels);
            "leave out --per to report all counts per thread"
        )
    };
    Vec::from_iter((!kernels.is_empty()).then(line))
}

/// Adds the uniformity of the code objects that have uniform counters to the report.
///
/// # Errors
///
/// Fails if no code object has them.
fn add_uniformity(
    report: &mut Report<'_>,
    data: &ReportableData,
    matched: &MatchedElfs<'_>,
    merged: &MergedProfiles<'_>,
) -> Result<()> {
    let profiles = uniformity::profiles(merged);
    let total = matched.archs.values().map(BTreeMap::len).sum::<usize>();
    if profiles.is_empty() {
        fail!(
            "no profile in {data} has uniform counters";
            "compile all of the GPU code with clang 23 or later and the flags of `rocov flags --uniformity`, and run the \
             program again, or leave out --uniformity"
        );
    }
    let without = total - profiles.len();
    if without > 0 {
        print::warn(&[diagnostic!(
            "{without} of {} without uniform counters: the report does not show the uniformity of their lines",
            count(total, "code object");
            "compile all of their units with clang 23 or later and the flags of `rocov flags --uniformity`"
        )]);
    }
    report.add_uniformity(&profiles);
    Ok(())
}

/// Adds host code to the report, if the user named some.
///
/// # Errors
///
/// Fails if there is no profile of it, or a tool fails.
fn add_host(
    report: &mut Report<'_>,
    arguments: &ReportArguments,
    data: &ReportableData,
    merged: &MergedProfiles<'_>,
    installed: &LlvmTools,
) -> Result<()> {
    let binaries = &arguments.options.host_binary;
    if binaries.is_empty() {
        return Ok(());
    }
    let profiles: Vec<_> = data.files.host.iter().map(PathBuf::as_path).collect();
    let lost = data.files.without_host_counts();
    if profiles.is_empty() {
        if lost.is_some() {
            fail!(
                "no counts of host code in {data}, because its processes were killed or aborted";
                "run them again"
            );
        }
        fail!(
            "no profile of host code in {data}";
            "compile with the flags that `rocov flags --host` prints"
        );
    }
    print::warn(lost.as_slice());
    let part = merged.directory().join("host.profdata");
    let (counts, said) = host_counts(&profiles, part, installed)?;
    print::warn(&said);
    report.add_host(binaries, counts, profiles.len());
    Ok(())
}

/// Prints annotated source, one arch after the other.
///
/// # Errors
///
/// Fails if none of the sources can be shown.
fn show(
    arguments: &ReportArguments,
    report: &Report<'_>,
    texts: SourceTexts,
    installed: &LlvmTools,
) -> Result<()> {
    let options = &arguments.options;
    let selection = options.filters.selection()?;
    let (mut view, warnings) = report.view(&selection, options.by, installed)?;
    view.texts.with_others_of(texts);
    // A gate prints them.
    let has_gates = options.gates().are_set();
    if !has_gates {
        print::warn(&warnings);
    }
    let wanted = arguments.show.as_deref().unwrap_or_default();
    let shown = SourcesToShow::find(&view, wanted)?;
    print::warn(&shown.left_out);
    if shown.paths.is_empty() {
        fail!("no source can be shown"; "leave out --show to print the table");
    }
    if !has_gates {
        print::warn(&report.idle_exclusions());
    }
    let headings = report.headings(arguments.verbose);
    let output = options.formats.output();
    print::to_file_or_stdout(output, |out| {
        for column in &view.columns {
            if let Some(heading) = headings.get(&*column.label) {
                let mut lines = Lines::new(out);
                heading.iter().try_for_each(|line| lines.line(line))?;
                lines.gap()?;
            }
            let sources = shown.paths.iter().filter(|path| column.has(path));
            let sources = sources.map(|path| {
                let text = view.texts.read(Path::new(path))?;
                Ok(AnnotatedSource { path, text })
            });
            let sources: Vec<_> = sources.collect::<Result<_>>()?;
            annotated::write(column, &sources, options.formats.is_colored(output), out)?;
        }
        Ok(())
    })?;
    if !has_gates {
        print::warn(&shown.stale(&view));
    }
    Ok(())
}
