//! `rocov report`: prints which lines ran, or writes that in another format.

mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cli::{Output, ReportArguments, ReportOptions};
use crate::coverage;
use crate::coverage::misfit::Misfit;
use crate::coverage::sources_to_show::SourcesToShow;
use crate::coverage::view::View;
use crate::coverage::{
    Baseline, Change, Earlier, Provenance, Report, Selection, SourceTexts, ViewInput, misfit,
    staleness,
};
use crate::data::components::Components;
use crate::data::match_elfs::NotOfComponents;
use crate::data::matched_elfs::MatchedElfs;
use crate::data::{DataListing, Origins, ReportableData};
use crate::dataset::DataSetInputs;
use crate::llvm::LlvmTools;
use crate::profdata::{CountUnit, MergedProfiles, host_counts, per_label, uniformity};
use crate::render;
use crate::render::annotated;
use crate::render::annotated::AnnotatedSource;
use crate::support::demangle::first_shown;
use crate::support::time;
use crate::term::exit_status::{CommandResult, Failure};
use crate::term::lines::Lines;
use crate::term::plural::count;
use crate::term::warnings::Warnings;
use crate::term::{exit_status, print};

/// The reason why a report of lines is empty.
const WITHOUT_LINES: &str = "the report is empty, because no code has a line table: compile with -gline-tables-only, \
                             or nvcc's code with -lineinfo, or leave out the format to see the functions";

/// The reason why a report lacks what the user asks for.
const WITHOUT_UNIFORMITY: &str = "only the table and --json contain uniformity, and neither is written: also give \
                                  --table or --json";

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
    let matched = Warnings::printing(|warnings| {
        data.match_elfs(archs, &components, &mut installed, warnings)
    });
    let mut matched = match matched {
        Err(error) if options.gates().are_set() && error.is::<NotOfComponents>() => {
            return Err(Failure::new(
                exit_status::GATE_BROKEN,
                error.context("gate"),
            ));
        }
        matched => matched?,
    };
    matched.select_labels(&options.labels, &data)?;
    let mut merged = Warnings::printing(|warnings| {
        MergedProfiles::merge_data(&mut matched, &data, &installed, warnings)
    })?;
    if let Some(kind) = arguments.counts {
        merged.select_kind(kind, &data)?;
    }
    let absent = components.absent(|identity| merged.has(identity));
    print::warn(&absent);
    match options.scale {
        Some(scale) => merged.scale(scale)?,
        None => print::warn(&sampled(&merged)),
    }
    if options.per == CountUnit::Program {
        print::warn(&per_thread(&merged.count_programs()));
    }
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
            print::warn(&[WITHOUT_UNIFORMITY.to_owned()]);
        }
        add_uniformity(&mut report, &data, &matched, &merged)?;
    }
    for component in components.iter() {
        let name = component.path.display().to_string();
        report.add_component(name, component.identities.clone());
    }
    for (name, globs) in options.source_components()? {
        report.add_sources(name, globs);
    }
    if options.per_test {
        // Only pages show the tests of each line.
        let has_line_tests = options.formats.html.is_some();
        report.add_tests(per_label::tests(&matched, &data)?, has_line_tests);
        if outputs
            .iter()
            .any(|output| output.format.has_label_counts())
        {
            report.add_labels(per_label::apart(&matched));
        }
    }
    let mut missing = match options.gates().are_set() {
        true => data.missing(&matched, archs, &components),
        false => Vec::new(),
    };
    if !options.host_binary.is_empty() && data.files.without_host_counts().is_some() {
        missing.push("host counts of processes left out: see above".to_owned());
    }
    missing.extend(absent);
    // The first page names what nothing ran on.
    if options.gates().all_kernels || options.formats.html.is_some() {
        compared.other_archs = Warnings::printing(|warnings| {
            let Some(other) = data.other_archs(archs, &components, warnings)? else {
                return Ok(None);
            };
            view_of(other.data, &report, options, &mut installed, warnings).map(Some)
        })?;
    }
    let mut broken = write(
        &report, &data, arguments, &outputs, compared, texts, &installed,
    )?;
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

/// The things that a report is compared with.
struct Compared {
    /// The change whose lines are reported.
    change: Option<Change>,
    /// The figures that must be reached.
    baseline: Option<Baseline>,
    /// The figures of archs that did not run.
    carried: Option<Baseline>,
    /// The code for archs that nothing ran on.
    other_archs: Option<View>,
}

impl Compared {
    /// Reads what the options name.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be read.
    fn read(options: &ReportOptions) -> Result<Self> {
        Ok(Self {
            change: options.change()?,
            baseline: options.baseline().map(Baseline::read).transpose()?,
            carried: options.carried().map(Baseline::read).transpose()?,
            other_archs: None,
        })
    }
}

/// The view of other data as `report` shows its own.
///
/// # Errors
///
/// Fails if the data cannot be read.
fn view_of(
    data: ReportableData,
    report: &Report<'_>,
    options: &ReportOptions,
    installed: &mut LlvmTools,
    warnings: &mut Warnings,
) -> Result<View> {
    let mut matched = data.match_elfs(&[], &Components::default(), installed, warnings)?;
    let merged = MergedProfiles::merge_data(&mut matched, &data, installed, warnings)?;
    let other = Report::new(&merged, &data, &Origins::default());
    report.view_of(&other, &options.filters.selection()?, installed)
}

/// A line for each code object whose counts may be of a sample.
fn sampled(merged: &MergedProfiles<'_>) -> Vec<String> {
    let sampled = merged.objects().filter(|object| object.may_be_sampled());
    let lines = sampled.map(|object| {
        format!(
            "{}: the counts may cover only one workgroup in 8: by default, LLVM's own device code counts no more; \
             compile with the flags that `rocov flags` prints, or estimate with --scale 8",
            object.name()
        )
    });
    lines.collect()
}

/// A line with the kernels whose counts are per thread in a report of programs, if there are some.
fn per_thread(kernels: &BTreeSet<String>) -> Vec<String> {
    let line = || {
        format!(
            "the counts of {} are per thread ({}): their code does not require a number of threads, as Triton's PTX \
             does with .reqntid: leave out --per to report all counts per thread",
            count(kernels.len(), "kernel"),
            first_shown(kernels),
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
        bail!(
            "no profile in {data} has uniform counters: compile the GPU code with clang 23 or later and run \
             the program again, or leave out --uniformity"
        );
    }
    let without = total - profiles.len();
    if without > 0 {
        print::warn(&[format!(
            "{without} of {} without uniform counters: the report has no uniformity of their lines; compile \
             them with clang 23 or later",
            count(total, "code object")
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
            bail!(
                "no counts of host code in {data}, because its processes were killed or aborted: run them again"
            );
        }
        bail!(
            "no profile of host code in {data}: compile with the flags that `rocov flags --host` prints"
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
        bail!("no source can be shown: leave out --show to print the table");
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

/// Writes the report in each format, and returns a line for each gate that does not hold. If there are gates, each
/// warning breaks one.
///
/// # Errors
///
/// Fails if a tool fails or the report cannot be written.
fn write(
    report: &Report<'_>,
    data: &ReportableData,
    arguments: &ReportArguments,
    outputs: &[Output<'_>],
    Compared {
        change,
        baseline,
        carried,
        other_archs,
    }: Compared,
    texts: SourceTexts,
    installed: &LlvmTools,
) -> Result<Vec<String>> {
    let options = &arguments.options;
    let gates = options.gates();
    let has_gates = gates.are_set();
    let selection = options.filters.selection()?;
    let (mut view, warnings) = report.view(&selection, options.by, installed)?;
    // A gate prints them.
    if !has_gates {
        print::warn(&warnings);
    }
    let reported = view.everything().into_iter().map(PathBuf::from);
    let changed = change.iter().flat_map(Change::places);
    print::warn(&selection.idle(&reported.chain(changed).collect::<Vec<_>>()));
    print::warn(&report.idle_exclusions());
    view.texts.with_others_of(texts);
    view.changed = change
        .as_ref()
        .map(|change| change.covered(&view, &selection));
    if let Some(changed) = &view.changed {
        print::warn(&changed.doubts);
        print::warn(&changed.left_out);
    }
    let archs = &options.filters.arch;
    let is_reported = |label: &str| archs.is_empty() || archs.iter().any(|arch| arch == label);
    let today = || Ok::<_, anyhow::Error>(time::day(time::report_time()?));
    if let Some(carried) = carried {
        view.carried = carried.carried(&view, is_reported, &today()?);
    }
    view.other_archs = other_archs.map(Box::new);
    let html = options.formats.html.as_deref();
    let mut earlier = None;
    if let Some(before) = options.compared() {
        let read = self::earlier(before, arguments, &view, &selection);
        let read = read.with_context(|| format!("cannot compare with {}", before.display()));
        earlier = Some(read?);
    }
    if html.is_some() || has_gates {
        let misfits = staleness::misfits(&view);
        view.misfits.extend(misfits);
    }
    // A gate reports an empty view itself, and a change need not have GPU code.
    let is_judged = has_gates || change.is_some();
    if view.paths.is_empty() && (html.is_some() || !is_judged) {
        bail!(
            "no source file is left to report: nothing was written: check --include, --exclude, --exclude-function, \
             --exclude-line and --arch"
        );
    }
    // A gate prints them.
    if html.is_some() || !has_gates {
        print::warn(&misfit::about_all(unreported(&view)));
    }
    if let Some(directory) = html {
        let provenance = Provenance::find(&view, &data.registries, options.repository())?;
        let page = render::write_html(
            &view,
            earlier.as_ref(),
            &provenance,
            options.formats.title.as_deref(),
            directory,
        )?;
        if outputs.iter().all(|output| output.path.is_some()) {
            print::text(format!("{}\n", page.display()).as_bytes())?;
        }
        if options.formats.open
            && let Err(error) = open::that_detached(&page)
        {
            print::warn(&[format!(
                "no browser opens {}: {error}; open it by hand",
                page.display()
            )]);
        }
    }
    let headings = report.headings(arguments.verbose);
    for output in outputs {
        print::to_file_or_stdout(output.path, |out| {
            render::write(&view, output.format, &headings, out)
        })?;
    }
    let has_no_line = !view.paths.is_empty() && view.paths_with_lines().next().is_none();
    if has_no_line && outputs.iter().any(|output| output.format.is_of_lines()) {
        print::warn(&[WITHOUT_LINES.to_owned()]);
    }
    let mut broken = gates.broken(&view);
    if let Some(baseline) = baseline {
        let root = coverage::baseline::root(options.repository());
        let now = Baseline::new(&view, &root, &today()?);
        let file = options.baseline().unwrap_or(Path::new(""));
        let lowering = coverage::baseline::lowering(file, &arguments.directories());
        let is_selected = |path: &str| selection.admits(path);
        let (baseline, left_out) = baseline.with_sources(&root, is_selected);
        if left_out > 0 {
            print::warn(&[format!(
                "{}: the options of this report leave out {} of the baseline: run it without filters to check everything",
                file.display(),
                count(left_out, "source")
            )]);
        }
        broken.extend(baseline.losses(&now, &lowering));
        broken.extend(baseline.absent_sources(&now, &root, &lowering));
        let is_wanted = |label: &str| is_reported(label) && !view.carries(label);
        broken.extend(baseline.absent(&now, is_wanted));
    }
    if has_gates {
        broken.extend(warnings);
        let stale = unreported(&view).filter(|(_, misfit)| misfit.stale().is_some());
        broken.extend(misfit::about_all(stale));
        broken.extend(
            view.changed
                .into_iter()
                .flat_map(|changed| changed.left_out),
        );
    }
    Ok(broken)
}

/// Reads the report or the baseline that pages show the difference to.
///
/// # Errors
///
/// Fails if it cannot be read.
fn earlier(
    before: &Path,
    arguments: &ReportArguments,
    now: &View,
    selection: &Selection,
) -> Result<Earlier> {
    let options = &arguments.options;
    let name = before.display().to_string();
    if Baseline::is_at(before) {
        let baseline = Baseline::read(before)?;
        let root = coverage::baseline::root(options.repository());
        let is_wanted = |path: &str| selection.admits(path);
        return Ok(Earlier::from_baseline(
            name, &baseline, now, &root, is_wanted,
        ));
    }
    let input = ViewInput {
        paths: &[before],
        labels: &[],
        selection,
        archs: &options.filters.arch,
        objects: &arguments.objects,
        all_builds: options.filters.all_builds,
        exclusions: options.exclusions()?,
        rules: options.rules(),
        llvm_bin: arguments.llvm_bin.as_deref(),
    };
    let (before, _) = input.view()?;
    print::warn(&before.misfits_of(&name));
    Ok(Earlier::from_view(name, &before, now))
}

/// The sources that do not fit the build and are not reported with a change.
fn unreported(view: &View) -> impl Iterator<Item = (&str, &Misfit)> {
    let is_reported = |path: &str| {
        let mut changed = view.changed.iter();
        changed.any(|changed| changed.stale.contains(path))
    };
    let misfits = view.misfits.iter().map(|(path, misfit)| (&**path, misfit));
    misfits.filter(move |(path, _)| !is_reported(path))
}
