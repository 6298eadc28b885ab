//! The coverage of single tests.
//!
//! A test reaches a small part of the code. So rocov reads each code object once, and evaluates only the groups of
//! functions that the test has counts in. All other functions have the figures of code that never ran.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

use super::activity::Activities;
use super::breakdown::Covered;
use super::collect::{CountedBinary, exported};
use super::evaluate::ObjectIndex;
use super::exclusions::Exclusions;
use super::figures::Figures;
use super::function::Function;
use super::function_groups::FunctionGroups;
use super::hiprtc::Texts;
use super::joined_file::JoinedFile;
use super::mapped_functions::MappedFunctions;
use super::model::{Record, SharedFunctions, Side, Source};
use super::part::{OfColumn, Part};
use super::ran_lines::RanLines;
use super::view::{By, Rules, View};
use crate::data::matched_elfs::MatchedElfs;
use crate::llvm::LlvmTools;
use crate::profdata::per_label::TestProfiles;
use crate::profdata::{BinaryCounts, object_counts};
use crate::support::parallel;

/// Evaluates the coverage of tests.
pub(crate) struct TestEvaluator<'a, P> {
    /// The present path of a source file.
    place: P,
    installed: &'a LlvmTools,
    /// A directory for profiles that llvm-profdata merges, and the number of these.
    directory: &'a Path,
    merged: AtomicUsize,
    /// The code objects, by arch and identity.
    objects: BTreeMap<&'a str, BTreeMap<&'a str, TestedObject<'a>>>,
    groups: FunctionGroups,
    mapped: MappedFunctions,
    shared: Mutex<SharedFunctions>,
    rules: Rules,
    exclusions: &'a Exclusions,
    /// The figures of code that never ran, for the code objects with these numbers.
    never_ran: Mutex<HashMap<Vec<usize>, Arc<GroupFigures>>>,
}

/// The figures of each group of functions, by column.
type GroupFigures = BTreeMap<String, HashMap<usize, Figures>>;

/// A code object of tests.
struct TestedObject<'a> {
    number: usize,
    binary: &'a CountedBinary,
    index: ObjectIndex,
    /// The group of each function.
    groups: Vec<usize>,
    /// For each group, the numbers of its functions.
    by_group: HashMap<usize, Vec<usize>>,
}

/// The counts of a test in a code object.
struct ObjectCounts<'a> {
    object: &'a TestedObject<'a>,
    counts: BinaryCounts,
}

impl<'a> TestedObject<'a> {
    fn new(
        number: usize,
        binary: &'a CountedBinary,
        index: ObjectIndex,
        groups: &FunctionGroups,
    ) -> Self {
        let groups = index
            .descriptions()
            .filter_map(|description| groups.get(description));
        let groups: Vec<_> = groups.collect();
        let mut by_group: HashMap<_, Vec<_>> = HashMap::new();
        for (number, group) in groups.iter().enumerate() {
            by_group.entry(*group).or_default().push(number);
        }
        Self {
            number,
            binary,
            index,
            groups,
            by_group,
        }
    }

    fn source(&self, records: Vec<Record>) -> Source {
        Source {
            side: Side::Device,
            arch: self.binary.arch.clone(),
            identity: self.binary.identity.clone(),
            binary: self.binary.binary.clone(),
            kernels: Vec::new(),
            compiler: None,
            records,
            texts: Texts::new(),
            ran_lines: RanLines::default(),
            activities: Activities::new(),
            kinds: self.binary.kinds.clone(),
            unit: None,
        }
    }
}

impl<'a, P: Fn(&str) -> String + Sync> TestEvaluator<'a, P> {
    /// Reads the code objects `binaries` of the device. `place` gives the present path of a source file.
    /// `directory` is for temporary files.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be read.
    pub(crate) fn new(
        binaries: impl IntoIterator<Item = &'a CountedBinary>,
        place: P,
        directory: &'a Path,
        installed: &'a LlvmTools,
        rules: Rules,
        exclusions: &'a Exclusions,
    ) -> Result<Self> {
        let binaries = binaries
            .into_iter()
            .filter(|binary| binary.side == Side::Device);
        let binaries: Vec<_> = binaries.enumerate().collect();
        let shared = Mutex::new(SharedFunctions::default());
        let read = parallel::map(&binaries, |(number, binary)| {
            let mut index = ObjectIndex::read(&binary.objects, &binary.kinds)?;
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            index.share(&mut shared, &place);
            Ok((*number, *binary, index))
        })?;
        let functions = read.iter().flat_map(|(_, _, index)| index.descriptions());
        let groups = FunctionGroups::new(functions);
        let mapped = MappedFunctions::new(
            read.iter().map(|(_, binary, _)| &binary.kinds),
            read.iter().flat_map(|(_, _, index)| index.descriptions()),
        );
        let mut objects: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (number, binary, index) in read {
            let object = TestedObject::new(number, binary, index, &groups);
            let of_arch = objects.entry(&*object.binary.arch).or_default();
            of_arch.insert(&*object.binary.identity, object);
        }
        Ok(Self {
            place,
            installed,
            directory,
            merged: AtomicUsize::new(0),
            objects,
            groups,
            mapped,
            shared,
            rules,
            exclusions,
            never_ran: Mutex::default(),
        })
    }

    /// The figures of a test, in files that are wanted, and its coverage in each column.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(crate) fn evaluate(
        &self,
        test: &TestProfiles<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(Part, Vec<Covered>)> {
        let counts = self.counts(&test.matched)?;
        let reached = self.reached(&counts);
        let view = self.reached_view(&counts, &reached, &is_wanted)?;
        let mut figures: BTreeMap<&str, Figures> = BTreeMap::new();
        let never_ran = self.never_ran(&counts, &is_wanted)?;
        for (label, groups) in &*never_ran {
            let others = groups.iter().filter(|(group, _)| !reached.contains(group));
            let sum = others.fold(Figures::default(), |sum, (_, more)| sum.plus(more));
            figures.insert(label, sum);
        }
        let total = &view.table().total.columns;
        for (column, more) in view.columns.iter().zip(total) {
            let sum = figures.entry(&column.label).or_default();
            *sum = sum.plus(&more.unwrap_or_default());
        }
        let columns = figures.into_iter().map(|(label, figures)| OfColumn {
            label: label.to_owned(),
            figures,
            only: None,
            files: None,
        });
        let part = Part {
            name: test.name.clone(),
            shared_with: test.shared_with.clone(),
            columns: columns.collect(),
            all: None,
        };
        let columns = view.columns.iter();
        let covered = columns
            .map(|column| Covered::new(&view, column, &self.mapped))
            .collect();
        Ok((part, covered))
    }

    /// The counts that `matched` has profiles of, in each file that is wanted and was reached.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(crate) fn counts_in_files(
        &self,
        matched: &MatchedElfs<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<Arc<str>, JoinedFile>> {
        let counts = self.counts(matched)?;
        let reached = self.reached(&counts);
        let view = self.reached_view(&counts, &reached, is_wanted)?;
        let files = view.paths.iter().map(|path| {
            let mut file = view.joined_file(path);
            file.leave_out_zeros();
            (Arc::clone(path), file)
        });
        Ok(files.filter(|(_, file)| file.has_run()).collect())
    }

    /// The view of the groups that were reached.
    fn reached_view(
        &self,
        counts: &[ObjectCounts<'_>],
        reached: &HashSet<usize>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<View> {
        let sources = counts.iter().map(|count| {
            self.source(count, |object| {
                let numbers = reached
                    .iter()
                    .filter_map(|group| object.by_group.get(group));
                numbers.flatten().copied().collect()
            })
        });
        Ok(View::by_rules(
            self.rules,
            self.exclusions,
            sources.collect::<Result<_>>()?,
            By::Arch,
            is_wanted,
        ))
    }

    /// The functions that have something in the files `paths`, in the code objects that `matched` has profiles
    /// of.
    ///
    /// # Errors
    ///
    /// Fails if a tool fails.
    pub(crate) fn in_files(
        &self,
        matched: &MatchedElfs<'_>,
        paths: &HashSet<Arc<str>>,
    ) -> Result<Vec<Source>> {
        let counts = self.counts(matched)?;
        let sources = counts.iter().map(|count| {
            self.source(count, |object| {
                let functions = object.index.descriptions().enumerate();
                let has_path = |function: &Arc<Function>| {
                    function
                        .filenames
                        .iter()
                        .any(|filename| paths.contains(filename))
                };
                let functions = functions.filter(|(_, function)| has_path(function));
                functions.map(|(number, _)| number).collect()
            })
        });
        sources.collect()
    }

    /// The counts in each code object that `matched` has profiles of.
    fn counts(&self, matched: &MatchedElfs<'_>) -> Result<Vec<ObjectCounts<'_>>> {
        let mut all = Vec::new();
        for (arch, objects) in &matched.archs {
            for (identity, profiles) in objects {
                let known = self.objects.get(*arch);
                // A code object is left out if all its profiles are damaged.
                let Some(object) = known.and_then(|object| object.get(*identity)) else {
                    continue;
                };
                let number = self.merged.fetch_add(1, Ordering::Relaxed);
                let part = self.directory.join(format!("test-{number}.profdata"));
                let (counts, _) = object_counts(profiles, part, self.installed)?;
                all.push(ObjectCounts {
                    object,
                    counts: object.binary.sizes.apply(counts),
                });
            }
        }
        Ok(all)
    }

    /// The functions of a code object with the numbers that `wanted` gives. By llvm-cov all functions.
    fn source(
        &self,
        counts: &ObjectCounts<'_>,
        wanted: impl Fn(&TestedObject<'_>) -> BTreeSet<usize>,
    ) -> Result<Source> {
        let object = counts.object;
        let records = match &counts.counts {
            BinaryCounts::Summed(counts) => {
                let evaluated = object.index.evaluate_some(counts, wanted(object))?;
                evaluated.records
            }
            BinaryCounts::Indexed(profile) => {
                let tools = self.installed.newest()?;
                let (mut records, _) = exported(&object.binary.objects, profile, tools)?;
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                shared.share(
                    records.iter_mut().map(|record| &mut record.function),
                    &self.place,
                );
                records
            }
        };
        Ok(object.source(records))
    }

    /// The groups that a test has counts in.
    fn reached(&self, counts: &[ObjectCounts<'_>]) -> HashSet<usize> {
        let mut reached = HashSet::new();
        for ObjectCounts { object, counts } in counts {
            let BinaryCounts::Summed(counts) = counts else {
                // llvm-cov describes the functions in its own way.
                let objects = self.objects.values().flat_map(BTreeMap::values);
                return objects
                    .flat_map(|object| object.by_group.keys())
                    .copied()
                    .collect();
            };
            reached.extend(
                object
                    .index
                    .reached(counts)
                    .map(|number| object.groups[number]),
            );
        }
        reached
    }

    /// The figures of code that never ran, if a test has these code objects.
    fn never_ran(
        &self,
        counts: &[ObjectCounts<'_>],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Arc<GroupFigures>> {
        let summed = counts.iter().filter_map(|count| match &count.counts {
            BinaryCounts::Summed(counts) => Some((count.object, counts)),
            BinaryCounts::Indexed(_) => None,
        });
        let numbers: Vec<_> = summed.clone().map(|(object, _)| object.number).collect();
        let known = || {
            let known = self.never_ran.lock();
            known.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(figures) = known().get(&numbers) {
            return Ok(Arc::clone(figures));
        }
        let sources = summed.map(|(object, counts)| {
            let records = object.index.evaluate(&counts.zeros())?.records;
            Ok(object.source(records))
        });
        let sources = sources.collect::<Result<_>>()?;
        let view = View::by_rules(self.rules, self.exclusions, sources, By::Arch, is_wanted);
        let columns = view.columns.iter().map(|column| {
            let group = |function: &Arc<Function>| self.groups.get(function);
            let figures = view.figures_by(column, &self.mapped, group);
            (column.label.clone(), figures)
        });
        let figures = Arc::new(columns.collect());
        known().insert(numbers, Arc::clone(&figures));
        Ok(figures)
    }
}
