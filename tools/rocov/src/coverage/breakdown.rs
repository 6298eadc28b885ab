//! Figures of parts of the counts: of components, and of single tests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::figures::Figures;
use super::function::{Kind, Place, Span};
use super::line_tests::{ColumnTests, LineTests};
use super::mapped_functions::MappedFunctions;
use super::part::{OfColumn, Only, Part};
use super::selection::SourceGlobs;
use super::view::{Column, View};

impl Part {
    /// Makes a part of the totals of `view`.
    pub(crate) fn new(name: String, view: &View) -> Self {
        let total = &view.table().total;
        let figures = total.columns.iter().copied();
        let figures = figures.map(|figures| Some(figures.unwrap_or_default()));
        Self::from_figures(name, view, figures, total.all)
    }

    /// Makes a part of the sources of `view` that are `wanted`, in each column that has one of them.
    pub(crate) fn from_sources(name: String, view: &View, wanted: &SourceGlobs) -> Self {
        let row = view.sum(|path| wanted.have(path));
        Self::from_figures(name, view, row.columns, row.all)
    }

    /// Makes a part of the figures in each column of `view`, `None` where it is not in the column.
    fn from_figures(
        name: String,
        view: &View,
        figures: impl IntoIterator<Item = Option<Figures>>,
        all: Figures,
    ) -> Self {
        let columns = view.columns.iter().zip(figures);
        let columns = columns.filter_map(|(column, figures)| {
            Some(OfColumn {
                label: column.label.clone(),
                figures: figures?,
                only: None,
                files: None,
            })
        });
        Self {
            name,
            shared_with: Vec::new(),
            columns: columns.collect(),
            all: Some(all),
        }
    }
}

/// The figures of tests, and the tests that cover each place in the source.
#[derive(Debug)]
pub(crate) struct Tests {
    /// In the order of the tests.
    parts: Vec<Option<Part>>,
    /// By the label of the column and the source file.
    files: HashMap<String, HashMap<Arc<str>, FileOwners>>,
    has_line_tests: bool,
}

/// The tests that cover the places of a source file.
#[derive(Debug, Default)]
struct FileOwners {
    lines: Owners<u32>,
    /// All tests of each line, in the order that they were added in. Empty if nobody asks for them.
    line_tests: ColumnTests,
    /// By the start of the function.
    functions: Owners<Place>,
    regions: Owners<Span>,
}

/// The owner of each place. Every place that a test covers is looked up, so the hash is a fast one.
type Owners<T> = HashMap<T, Owner, RandomState>;

/// The test that covers a place.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// The number of the only one.
    Test(usize),
    Several,
}

impl Tests {
    /// Makes room for so many tests. All tests of each line are known in the end if it `has_line_tests`.
    pub(crate) fn new(number: usize, has_line_tests: bool) -> Self {
        Self {
            parts: (0..number).map(|_| None).collect(),
            files: HashMap::new(),
            has_line_tests,
        }
    }

    /// Adds the figures of a test and its coverage in each column. Some of that may be of other tests.
    pub(crate) fn add(&mut self, test: usize, mut part: Part, columns: Vec<Covered>) {
        for column in &mut part.columns {
            let covered = columns.iter().find(|covered| covered.label == column.label);
            column.files = Some(covered.map(Covered::ran).unwrap_or_default());
        }
        self.parts[test] = Some(part);
        for covered in columns {
            let files = self.files.entry(covered.label).or_default();
            for (path, covered) in covered.files {
                let file = files.entry(path).or_default();
                if self.has_line_tests {
                    for line in &covered.lines {
                        file.line_tests.entry(*line).or_default().push(test);
                    }
                }
                own(&mut file.lines, covered.lines, test);
                own(&mut file.functions, covered.functions, test);
                own(&mut file.regions, covered.regions, test);
            }
        }
    }

    /// The tests, with the coverage that no other test has, and the tests of each line.
    pub(crate) fn finish(self) -> (Vec<Part>, LineTests) {
        let mut parts: Vec<_> = self.parts.into_iter().flatten().collect();
        let columns = parts.iter_mut().flat_map(|part| &mut part.columns);
        columns.for_each(|column| column.only = Some(Only::default()));
        for (label, files) in &self.files {
            let mut only = vec![Only::default(); parts.len()];
            for file in files.values() {
                alone(&file.lines).for_each(|test| only[test].lines += 1);
                alone(&file.functions).for_each(|test| only[test].functions += 1);
                alone(&file.regions).for_each(|test| only[test].regions += 1);
            }
            for (part, only) in parts.iter_mut().zip(only) {
                let mut columns = part.columns.iter_mut();
                if let Some(column) = columns.find(|column| column.label == *label) {
                    column.only = Some(only);
                }
            }
        }
        let files = self.files.into_iter().flat_map(|(label, files)| {
            let label: Arc<str> = label.into();
            files
                .into_iter()
                .map(move |(path, file)| (Arc::clone(&label), path, file.line_tests))
        });
        let lines = LineTests::new(files);
        (parts, lines)
    }
}

/// Makes a test an owner of places that it covers.
fn own<T: Eq + Hash>(owners: &mut Owners<T>, covered: Vec<T>, test: usize) {
    for place in covered {
        match owners.entry(place) {
            Entry::Vacant(owner) => _ = owner.insert(Owner::Test(test)),
            Entry::Occupied(mut owner) => {
                if !matches!(owner.get(), Owner::Test(known) if *known == test) {
                    owner.insert(Owner::Several);
                }
            }
        }
    }
}

/// For each place with a single owner, that test.
fn alone<T>(owners: &Owners<T>) -> impl Iterator<Item = usize> {
    owners.values().filter_map(|owner| match owner {
        Owner::Test(test) => Some(*test),
        Owner::Several => None,
    })
}

/// The places in source files that ran in a column.
#[derive(Debug)]
pub(crate) struct Covered {
    /// The column's label.
    label: String,
    files: HashMap<Arc<str>, CoveredFile>,
}

/// The places in a source file that ran. A place may be there several times.
#[derive(Debug, Default)]
struct CoveredFile {
    lines: Vec<u32>,
    /// The starts of functions.
    functions: Vec<Place>,
    regions: Vec<Span>,
}

impl Covered {
    /// The places that ran in files of `view`. Functions in `mapped` have one start in all code.
    pub(crate) fn new(view: &View, column: &Column, mapped: &MappedFunctions) -> Self {
        let paths = view.paths.iter().filter(|path| column.has(path));
        let files = paths.map(|path| (Arc::clone(path), CoveredFile::new(column, path, mapped)));
        let files = files.collect();
        let label = column.label.clone();
        Self { label, files }
    }

    /// The files that a line of ran, in order.
    fn ran(&self) -> Vec<Arc<str>> {
        let files = self.files.iter();
        let ran = files.filter(|(_, file)| !file.lines.is_empty());
        let mut paths: Vec<_> = ran.map(|(path, _)| Arc::clone(path)).collect();
        paths.sort_unstable();
        paths
    }
}

impl CoveredFile {
    fn new(column: &Column, path: &str, mapped: &MappedFunctions) -> Self {
        let lines = column.lines(path, &column.segments(path)).into_iter();
        let ran = lines.filter(|(_, count)| *count > 0);
        let mut file = Self {
            lines: ran.map(|(line, _)| line).collect(),
            ..Self::default()
        };
        for record in column.touching(path) {
            let function = &record.function;
            let is_entered = record.counts.calls > 0 && !record.is_entry_excluded;
            if is_entered && &**function.main_path() == path {
                file.functions.push(mapped.key(function).0);
            }
            for (region, count) in function.regions.iter().zip(&record.counts.regions) {
                let ran = region.kind == Kind::Code && *count > 0;
                if ran && &**function.path(region.location.file) == path {
                    file.regions.push(region.location.span);
                }
            }
        }
        file
    }
}
