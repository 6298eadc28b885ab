//! A report from merged profiles and their device ELFs: code objects, components and tests, collected to
//! a view.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::breakdown::Tests;
use super::checkouts::Checkouts;
use super::collect::{Collected, CountedBinary, collect};
use super::exclusions::Exclusions;
use super::joined_file::LabelCounts;
use super::model::Side;
use super::part::Part;
use super::selection::{Selection, SourceGlobs};
use super::test_coverage::TestEvaluator;
use super::view::{By, Rules, View};
use crate::data::device_elfs::ObjectFile;
use crate::data::{Origins, ReportableData};
use crate::llvm::LlvmTools;
use crate::profdata::kinds::in_words;
use crate::profdata::per_label::{LabelProfiles, TestProfiles};
use crate::profdata::uniformity::UniformityProfiles;
use crate::profdata::{
    BinaryCounts, CountKind, CountKinds, MergedArch, MergedObject, MergedProfiles,
};
use crate::support::parallel;
use crate::term::plural::count;
use crate::term::{print, progress};

/// The arch of a column of host code.
const HOST: &str = "host";

/// The contents of a report.
#[derive(Default)]
pub(crate) struct Report<'a> {
    binaries: Vec<CountedBinary>,
    /// The number of functions whose counts are too low, by the identity of their code object.
    non_atomic: BTreeMap<String, usize>,
    headings: BTreeMap<String, Heading>,
    components: Vec<ReportComponent>,
    /// The components that are made of sources, each with its name.
    sources: Vec<(String, SourceGlobs)>,
    tests: Vec<TestProfiles<'a>>,
    /// The profiles of each label, if the report has the counts of each.
    labels: Vec<LabelProfiles<'a>>,
    /// True if the report has the tests of each line.
    has_line_tests: bool,
    /// A directory for temporary files of tests.
    directory: PathBuf,
    rules: Rules,
    exclusions: Exclusions,
}

/// The lines before the table of an arch, in a text.
#[derive(Default)]
struct Heading {
    /// The lines that every text has: the numbers, and a warning if counts are too low.
    lines: Vec<String>,
    /// A line or more for each code object.
    objects: Vec<String>,
}

/// A component with its own figures: its name, and the identities of its code objects.
struct ReportComponent {
    name: String,
    identities: BTreeSet<String>,
}

impl<'a> Report<'a> {
    /// Makes a report of merged profiles. A code object is named by the file that the user gave, else by
    /// the file that it was loaded from.
    pub(crate) fn new(
        merged: &MergedProfiles<'_>,
        data: &ReportableData,
        origins: &Origins,
    ) -> Self {
        let binary = |object: &MergedObject<'_>| {
            let has = |file: &&ObjectFile| {
                let mut elfs = file.elfs.iter();
                elfs.any(|elf| elf.identity.as_str() == object.identity)
            };
            let named = data.named.iter().find(has);
            let named = named.map(|file| file.path.as_path());
            let known = named.or_else(|| origins.get(object.identity));
            known.unwrap_or(&object.file.path).to_path_buf()
        };
        let mut report = Self {
            directory: merged.directory().to_path_buf(),
            ..Self::default()
        };
        for arch in &merged.archs {
            report.binaries.extend(counted(arch, binary));
            for object in &arch.objects {
                let known = report.non_atomic.entry(object.identity.to_owned());
                let known = known.or_default();
                *known = object.non_atomic.max(*known);
            }
            report.headings.insert(arch.name.to_owned(), heading(arch));
        }
        report
    }

    /// Adds the uniformity of the code objects with these profiles, by arch and identity.
    pub(crate) fn add_uniformity(
        &mut self,
        profiles: &BTreeMap<(&str, &str), Arc<UniformityProfiles>>,
    ) {
        for binary in &mut self.binaries {
            let key = (&*binary.arch, &*binary.identity);
            binary.uniformity = profiles.get(&key).cloned();
        }
    }

    /// Makes the report follow these rules, and leave out what is excluded.
    pub(crate) fn follow(&mut self, rules: Rules, exclusions: Exclusions) {
        self.rules = rules;
        self.exclusions = exclusions;
    }

    /// A line for each exclusion of the user that has excluded nothing so far.
    pub(crate) fn idle_exclusions(&self) -> Vec<Diagnostic> {
        self.exclusions.idle()
    }

    /// Adds the figures of a component, which has the code objects with these identities.
    pub(crate) fn add_component(&mut self, name: String, identities: BTreeSet<String>) {
        self.components.push(ReportComponent { name, identities });
    }

    /// Adds the figures of a component that is made of these sources.
    pub(crate) fn add_sources(&mut self, name: String, sources: SourceGlobs) {
        self.sources.push((name, sources));
    }

    /// Adds the figures of tests, and the tests of each line if it `has_line_tests`.
    pub(crate) fn add_tests(&mut self, tests: Vec<TestProfiles<'a>>, has_line_tests: bool) {
        self.tests = tests;
        self.has_line_tests = has_line_tests;
    }

    /// Adds the counts under each label.
    pub(crate) fn add_labels(&mut self, labels: Vec<LabelProfiles<'a>>) {
        self.labels = labels;
    }

    /// Adds host code: `binaries`, and the counts of all of them, from so many `profiles`.
    pub(crate) fn add_host(&mut self, binaries: &[PathBuf], counts: BinaryCounts, profiles: usize) {
        let binaries_of_host = binaries.iter().map(|binary| binary.display());
        let objects = binaries_of_host.map(|binary| format!("  binary          {binary}"));
        let heading = Heading {
            lines: vec![format!("host: {}", count(profiles, "profile"))],
            objects: objects.collect(),
        };
        self.binaries.push(CountedBinary {
            side: Side::Host,
            arch: HOST.to_owned(),
            identity: String::new(),
            binary: binaries[0].clone(),
            objects: binaries.to_vec(),
            counts,
            kinds: CountKinds::from([CountKind::Mapping]),
            sizes: Arc::default(),
            uniformity: None,
        });
        self.headings.insert(HOST.to_owned(), heading);
    }

    /// The lines before the table of each arch, in a text: one, or those of each code object too if the text
    /// `is_verbose`.
    pub(crate) fn headings(&self, is_verbose: bool) -> BTreeMap<&str, Vec<&str>> {
        let headings = self.headings.iter().map(|(arch, heading)| {
            let objects = heading.objects.iter().filter(|_| is_verbose);
            let lines = heading.lines.iter().chain(objects);
            (&**arch, lines.map(String::as_str).collect())
        });
        headings.collect()
    }

    /// Collects the counts of all code objects.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(crate) fn collected(
        &self,
        selection: &Selection,
        installed: &LlvmTools,
    ) -> Result<Collected> {
        let place = |path: &str| selection.place(path);
        collect(&self.binaries, installed, place)
    }

    /// Returns the view of the report, and warnings.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(crate) fn view(
        &self,
        selection: &Selection,
        by: By,
        installed: &LlvmTools,
    ) -> Result<(View, Vec<Diagnostic>)> {
        let is_wanted = |path: &str| selection.admits(path);
        let Collected {
            sources,
            checkouts,
            mut warnings,
        } = self.collected(selection, installed)?;
        print::warn(&checkouts.alike);
        let components = self.components.iter().map(|component| {
            let sources = sources.iter();
            let of = sources.filter(|source| component.identities.contains(&source.identity));
            let of = of.cloned().collect();
            let view = View::by_rules(self.rules, &self.exclusions, of, by, is_wanted);
            Part::new(component.name.clone(), &view)
        });
        let components = components.collect();
        let mut view = View::by_rules(self.rules, &self.exclusions, sources, by, is_wanted);
        warnings.extend(self.exclusions.faults());
        view.misfits = self.exclusions.stale(is_wanted);
        let edited = self.exclusions.edited(&view.ran_lines, is_wanted);
        view.add_misfits(edited);
        view.components = components;
        warnings.extend(view.add_components(&self.sources));
        for column in &mut view.columns {
            let found = column
                .identities
                .iter()
                .filter_map(|identity| self.non_atomic.get(identity));
            column.non_atomic = found.sum();
        }
        if !self.tests.is_empty() {
            self.evaluate_tests(&mut view, selection, &checkouts, installed)?;
        }
        Ok((view, warnings))
    }

    /// Returns the view of other data under the rules of this report, and without what it excludes.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(crate) fn view_of(
        &self,
        other: &Report<'_>,
        selection: &Selection,
        installed: &LlvmTools,
    ) -> Result<View> {
        let Collected { sources, .. } = other.collected(selection, installed)?;
        let is_wanted = |path: &str| selection.admits(path);
        let exclusions = &self.exclusions;
        Ok(View::by_rules(
            self.rules,
            exclusions,
            sources,
            By::Arch,
            is_wanted,
        ))
    }

    /// Adds the figures of the tests, the tests of each line and the counts of each label to a view.
    fn evaluate_tests(
        &self,
        view: &mut View,
        selection: &Selection,
        checkouts: &Checkouts,
        installed: &LlvmTools,
    ) -> Result<()> {
        let evaluator = self.test_evaluator(selection, checkouts, installed, |_| true)?;
        let is_wanted = |path: &str| selection.admits(path);
        let tests = Mutex::new(Tests::new(self.tests.len(), self.has_line_tests));
        let numbered: Vec<_> = self.tests.iter().enumerate().collect();
        progress::counted(numbered.len(), "test", |done| {
            parallel::map(&numbered, |(number, test)| {
                let (part, covered) = evaluator.evaluate(test, is_wanted)?;
                let mut tests = tests.lock().unwrap_or_else(PoisonError::into_inner);
                tests.add(*number, part, covered);
                done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })?;
        let tests = tests.into_inner().unwrap_or_else(PoisonError::into_inner);
        (view.tests, view.line_tests) = tests.finish();
        view.label_counts = parallel::map(&self.labels, |label| {
            Ok(LabelCounts {
                label: label.name.clone(),
                files: evaluator.counts_in_files(&label.matched, is_wanted)?,
            })
        })?;
        Ok(())
    }

    /// Reads the code objects whose identity is wanted, for tests. `checkouts` are those of all sources.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be read.
    pub(crate) fn test_evaluator<'b>(
        &'b self,
        selection: &'b Selection,
        checkouts: &'b Checkouts,
        installed: &'b LlvmTools,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<TestEvaluator<'b, impl Fn(&str) -> String + Sync + 'b>> {
        let binaries = self
            .binaries
            .iter()
            .filter(|binary| is_wanted(&binary.identity));
        let place = |path: &str| checkouts.place(&selection.place(path));
        TestEvaluator::new(
            binaries,
            place,
            &self.directory,
            installed,
            self.rules,
            &self.exclusions,
        )
    }
}

/// The code objects of an arch. `binary` returns the file by which the user knows a code object.
fn counted<'a>(
    arch: &'a MergedArch<'_>,
    binary: impl Fn(&MergedObject<'_>) -> PathBuf + 'a,
) -> impl Iterator<Item = CountedBinary> + 'a {
    arch.objects.iter().map(move |object| CountedBinary {
        side: Side::Device,
        arch: arch.name.to_owned(),
        identity: object.identity.to_owned(),
        binary: binary(object),
        objects: object.files(),
        counts: object.counts.clone(),
        kinds: object.kinds.clone(),
        sizes: Arc::clone(&object.sizes),
        uniformity: None,
    })
}

/// The lines before the table of an arch.
fn heading(arch: &MergedArch<'_>) -> Heading {
    let raw = arch.objects.iter().map(|object| object.raw).sum();
    let mut line = format!(
        "{}: {} of {}",
        arch.name,
        count(raw, "profile"),
        count(arch.objects.len(), "code object"),
    );
    let never = arch.objects.iter().filter(|object| object.raw == 0);
    match never.count() {
        0 => {}
        never => line += &format!(", {never} never launched"),
    }
    let mapping = CountKinds::from([CountKind::Mapping]);
    let kinds = arch.objects.iter().flat_map(|object| object.kinds.iter());
    let kinds: CountKinds = kinds.copied().collect();
    if kinds != mapping {
        let unit = arch.objects.iter().filter_map(MergedObject::unit).max();
        line += &format!(", counted by {}", in_words(&kinds, unit));
    }
    if arch.scale > 1 {
        line += &format!(", counts times {}", arch.scale);
    }
    let low = arch.objects.iter().map(|object| object.non_atomic).sum();
    let warning = (low > 0).then(|| format!("  too low: {}", too_low(low)));
    let objects = arch.objects.iter().flat_map(|object| {
        let elf = format!("  device ELF      {}", object.name());
        let has_others = object.kinds != mapping;
        let counted_by = || format!("    counted by    {}", object.counted_by());
        let is_low = object.non_atomic > 0;
        let too_low = || format!("    too low       {}", too_low(object.non_atomic));
        [Some(elf), has_others.then(counted_by), is_low.then(too_low)]
    });
    Heading {
        lines: iter::once(line).chain(warning).collect(),
        objects: objects.flatten().collect(),
    }
}

/// The reason why the counts of so many functions are too low, and what to do.
pub(crate) fn too_low(functions: usize) -> String {
    let functions = count(functions, "function");
    diagnostic!(
        "the counters of {functions} are not atomic";
        "compile with -fprofile-update=atomic"
    )
    .to_string()
}
