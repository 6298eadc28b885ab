//! The view of data directories, or of a report in JSON.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rocov::support::diagnostic::{Diagnostic, fail};

use super::exclusions::Exclusions;
use super::report::Report;
use super::report_json;
use super::selection::Selection;
use super::view::{By, Rules, View};
use crate::data::components::Components;
use crate::data::labels::LabelPattern;
use crate::data::{DataListing, Origins, check_archs};
use crate::llvm::LlvmTools;
use crate::profdata::MergedProfiles;
use crate::term::warnings::Warnings;

/// The input of a view, and the part of it that is shown.
pub(crate) struct ViewInput<'a> {
    /// Data directories, or one report in JSON.
    pub(crate) paths: &'a [&'a Path],
    /// The labels that have the counts; none for all.
    pub(crate) labels: &'a [LabelPattern],
    pub(crate) selection: &'a Selection,
    /// The archs; none for all.
    pub(crate) archs: &'a [String],
    /// Files that may have device ELFs.
    pub(crate) objects: &'a [PathBuf],
    pub(crate) all_builds: bool,
    /// The code that is left out of data directories. A report lacks that of its own.
    pub(crate) exclusions: Exclusions,
    pub(crate) rules: Rules,
    pub(crate) llvm_bin: Option<&'a Path>,
}

impl ViewInput<'_> {
    /// Reads it. Returns also a line for each pattern that matches nothing in it.
    ///
    /// # Errors
    ///
    /// Fails if it has nothing to report, or cannot be read.
    pub(crate) fn view(self) -> Result<(View, Vec<Diagnostic>)> {
        let Self {
            selection, archs, ..
        } = self;
        // A pipe or a device is no directory either, and reading it as a report names the fault.
        if let [path] = self.paths
            && path.exists()
            && !path.is_dir()
        {
            if !self.labels.is_empty() {
                fail!(
                    "{} is a report, which contains no labels", path.display();
                    "leave out --label, or name a data directory"
                );
            }
            let mut sources = report_json::read(path, |path| selection.place(path))?;
            let names = sources.iter().map(|source| &*source.arch);
            check_archs(names, archs, &path.display())?;
            sources.retain(|source| archs.is_empty() || archs.contains(&source.arch));
            let is_wanted = |path: &str| selection.admits(path);
            let none = Exclusions::none();
            let view = View::by_rules(self.rules, &none, sources, By::Arch, is_wanted);
            let idle = idle(selection, &view);
            return Ok((view, idle));
        }
        let mut installed = LlvmTools::find_any(self.llvm_bin)?;
        Warnings::printing(|warnings| {
            let data = DataListing::open(self.paths, warnings)?
                .complete(self.all_builds, warnings)?
                .for_report(self.objects, archs, warnings)?;
            let all = Components::default();
            let mut matched = data.match_elfs(archs, &all, &mut installed, warnings)?;
            matched.select_labels(self.labels, &data)?;
            let merged = MergedProfiles::merge_data(&mut matched, &data, &installed, warnings)?;
            let mut report = Report::new(&merged, &data, &Origins::default());
            report.follow(self.rules, self.exclusions);
            let (view, said) = report.view(selection, By::Arch, &installed)?;
            warnings.extend(said);
            let mut idle = idle(selection, &view);
            idle.extend(report.idle_exclusions());
            Ok((view, idle))
        })
    }
}

/// A line for each pattern of a selection that matches no source of a view.
fn idle(selection: &Selection, view: &View) -> Vec<Diagnostic> {
    let places: Vec<_> = view.everything().into_iter().map(PathBuf::from).collect();
    selection.idle(&places)
}
