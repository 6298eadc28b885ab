//! The view that a report writes, and what it is judged by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};

use crate::cli::{Output, ReportArguments, ReportOptions};
use crate::coverage;
use crate::coverage::misfit::Misfit;
use crate::coverage::view::View;
use crate::coverage::{
    Baseline, Change, Earlier, Provenance, Report, Selection, SourceTexts, ViewInput, misfit,
    staleness,
};
use crate::data::Registries;
use crate::llvm::LlvmTools;
use crate::render;
use crate::support::time;
use crate::term::plural::count;
use crate::term::print;

/// The things that a report is compared with.
pub(super) struct Compared {
    /// The change whose lines are reported.
    change: Option<Change>,
    /// The figures that must be reached.
    baseline: Option<Baseline>,
    /// The figures of archs that did not run.
    carried: Option<Baseline>,
    /// The code for archs that nothing ran on.
    pub(super) other_archs: Option<View>,
}

impl Compared {
    /// Reads what the options name.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be read.
    pub(super) fn read(options: &ReportOptions) -> Result<Self> {
        Ok(Self {
            change: options.change()?,
            baseline: options.baseline().map(Baseline::read).transpose()?,
            carried: options.carried().map(Baseline::read).transpose()?,
            other_archs: None,
        })
    }
}

/// The view of a report, as it is written.
pub(super) struct ShownReport<'a> {
    arguments: &'a ReportArguments,
    selection: Selection,
    view: View,
    /// The warnings about the view. If there are gates, each breaks one.
    warnings: Vec<Diagnostic>,
    change: Option<Change>,
    baseline: Option<Baseline>,
}

impl<'a> ShownReport<'a> {
    /// Makes the view.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(super) fn new(
        report: &Report<'_>,
        arguments: &'a ReportArguments,
        Compared {
            change,
            baseline,
            carried,
            other_archs,
        }: Compared,
        texts: SourceTexts,
        installed: &LlvmTools,
    ) -> Result<Self> {
        let options = &arguments.options;
        let selection = options.filters.selection()?;
        let (mut view, warnings) = report.view(&selection, options.by, installed)?;
        // A gate prints them.
        if !options.gates().are_set() {
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
        if let Some(carried) = carried {
            let is_reported = |label: &str| is_reported(options, label);
            view.carried = carried.carried(&view, is_reported, &today()?);
        }
        view.other_archs = other_archs.map(Box::new);
        Ok(Self {
            arguments,
            selection,
            view,
            warnings,
            change,
            baseline,
        })
    }

    /// Writes the report in each format. `headings` are the lines before the table of each arch.
    ///
    /// # Errors
    ///
    /// Fails if the report is empty or cannot be written.
    pub(super) fn write(
        &mut self,
        headings: &BTreeMap<&str, Vec<&str>>,
        registries: &Registries,
        outputs: &[Output<'_>],
    ) -> Result<()> {
        let options = &self.arguments.options;
        let has_gates = options.gates().are_set();
        let html = options.formats.html.as_deref();
        let earlier = self.earlier()?;
        let view = &mut self.view;
        if html.is_some() || has_gates {
            let misfits = staleness::misfits(view);
            view.misfits.extend(misfits);
        }
        // A gate reports an empty view itself, and a change need not have GPU code.
        let is_judged = has_gates || self.change.is_some();
        if view.paths.is_empty() && (html.is_some() || !is_judged) {
            fail!(
                "no source file is left to report: nothing was written";
                "check --include, --exclude, --exclude-function, --exclude-line and --arch"
            );
        }
        // A gate prints them.
        if html.is_some() || !has_gates {
            print::warn(&misfit::about_all(unreported(view)));
        }
        if let Some(directory) = html {
            let provenance = Provenance::find(view, registries, options.repository())?;
            let page = render::write_html(
                view,
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
                print::warn(&[diagnostic!(
                    "cannot open {} in a browser: {error}", page.display();
                    "open it yourself"
                )]);
            }
        }
        for output in outputs {
            print::to_file_or_stdout(output.path, |out| {
                render::write(view, output.format, headings, out)
            })?;
        }
        let has_no_line = !view.paths.is_empty() && view.paths_with_lines().next().is_none();
        if has_no_line && outputs.iter().any(|output| output.format.is_of_lines()) {
            print::warn(&[diagnostic!(
                "the report is empty, because no code has a line table";
                "compile with -gline-tables-only, or nvcc's code with -lineinfo, or omit the format option to see \
                 the functions"
            )]);
        }
        Ok(())
    }

    /// Returns a line for each gate that does not hold.
    ///
    /// # Errors
    ///
    /// Fails if the time of the report is not valid.
    pub(super) fn broken(mut self) -> Result<Vec<Diagnostic>> {
        let gates = self.arguments.options.gates();
        let mut broken = gates.broken(&self.view);
        if let Some(baseline) = self.baseline.take() {
            broken.extend(self.losses(baseline)?);
        }
        if gates.are_set() {
            let stale = unreported(&self.view).filter(|(_, misfit)| misfit.stale().is_some());
            let stale = misfit::about_all(stale);
            let left_out = self.view.changed.into_iter();
            let left_out = left_out.flat_map(|changed| changed.left_out);
            broken.extend(self.warnings.into_iter().chain(stale).chain(left_out));
        }
        Ok(broken)
    }

    /// Returns a line for each figure of a baseline that is not reached.
    ///
    /// # Errors
    ///
    /// Fails if the time of the report is not valid.
    fn losses(&self, baseline: Baseline) -> Result<Vec<Diagnostic>> {
        let (options, view) = (&self.arguments.options, &self.view);
        let root = coverage::baseline::root(options.repository());
        let now = Baseline::new(view, &root, &today()?);
        let file = options.baseline().unwrap_or(Path::new(""));
        let lowering = coverage::baseline::lowering(file, &self.arguments.directories());
        let is_selected = |path: &str| self.selection.admits(path);
        let (baseline, left_out) = baseline.with_sources(&root, is_selected);
        if left_out > 0 {
            print::warn(&[diagnostic!(
                "{}: this report's options leave out {} of the baseline",
                file.display(), count(left_out, "source");
                "run it without filters to check everything"
            )]);
        }
        let mut losses = Vec::from_iter(baseline.losses(&now, &lowering));
        let absent = baseline.absent_sources(&now, &root, &lowering);
        let is_wanted = |label: &str| is_reported(options, label) && !view.carries(label);
        let absent = absent.into_iter().chain(baseline.absent(&now, is_wanted));
        losses.extend(absent);
        Ok(losses)
    }

    /// Reads the report or the baseline that pages show the difference to, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    fn earlier(&self) -> Result<Option<Earlier>> {
        let Some(before) = self.arguments.options.compared() else {
            return Ok(None);
        };
        let read = earlier(before, self.arguments, &self.view, &self.selection);
        let read = read.with_context(|| format!("cannot compare with {}", before.display()));
        read.map(Some)
    }
}

/// Returns whether a report has the arch of this label.
fn is_reported(options: &ReportOptions, label: &str) -> bool {
    let archs = &options.filters.arch;
    archs.is_empty() || archs.iter().any(|arch| arch == label)
}

/// The day of the report.
///
/// # Errors
///
/// Fails if the time of the report is not valid.
fn today() -> Result<String> {
    Ok(time::day(time::report_time()?))
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
