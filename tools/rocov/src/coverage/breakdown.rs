//! Figures of parts of the counts: of components, and of single tests.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::figures::Figures;
use super::function::{Kind, Place, Span};
use super::segments::lines;
use super::view::{Column, View};

/// A component, or a test.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The other tests that some counts of a test may be of.
    pub(crate) shared_with: Vec<String>,
    /// The figures in each column that the part is in.
    pub(crate) columns: Vec<OfColumn>,
}

/// A part in one column.
#[derive(Debug)]
pub(crate) struct OfColumn {
    /// The column's label.
    pub(crate) label: String,
    pub(crate) figures: Figures,
    /// The coverage of a test that no other test has.
    pub(crate) only: Option<Only>,
}

/// The numbers of things that one test covers and no other does. Each place in the source counts once,
/// whatever the number of instances of a template that have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Only {
    pub(crate) lines: usize,
    pub(crate) functions: usize,
    pub(crate) regions: usize,
}

impl Part {
    /// Makes a part of the totals of `view`.
    pub(crate) fn of(name: String, view: &View) -> Self {
        let figures = view.table().total.columns.iter().copied();
        let columns = view.columns.iter().zip(figures);
        let columns = columns.map(|(column, figures)| OfColumn {
            label: column.label.clone(),
            figures: figures.unwrap_or_default(),
            only: None,
        });
        Self {
            name,
            shared_with: Vec::new(),
            columns: columns.collect(),
        }
    }
}

/// Tests, and the places in the source that each of them covers.
#[derive(Debug, Default)]
pub(crate) struct Tests(Vec<(Part, Vec<Covered>)>);

impl Tests {
    /// Adds a test with the coverage of `view`, some of which may be of other tests.
    pub(crate) fn add(&mut self, name: String, shared_with: Vec<String>, view: &View) {
        let columns = view.columns.iter();
        let covered = columns.map(|column| Covered::of(view, column)).collect();
        let part = Part {
            shared_with,
            ..Part::of(name, view)
        };
        self.0.push((part, covered));
    }

    /// The tests, with the coverage that no other test has.
    pub(crate) fn finish(self) -> Vec<Part> {
        let mut tests = self.0;
        let labels: HashSet<_> = tests
            .iter()
            .flat_map(|(part, _)| part.columns.iter().map(|it| it.label.clone()))
            .collect();
        for label in labels {
            let (mut columns, covered): (Vec<_>, Vec<_>) = tests
                .iter_mut()
                .flat_map(|(part, covered)| part.columns.iter_mut().zip(&*covered))
                .filter(|(column, _)| column.label == label)
                .unzip();
            let lines = alone(&covered, |it| &it.lines);
            let functions = alone(&covered, |it| &it.functions);
            let regions = alone(&covered, |it| &it.regions);
            for (index, column) in columns.iter_mut().enumerate() {
                column.only = Some(Only {
                    lines: lines[index],
                    functions: functions[index],
                    regions: regions[index],
                });
            }
        }
        tests.into_iter().map(|(part, _)| part).collect()
    }
}

/// The places in source files that ran.
#[derive(Debug, Default)]
struct Covered {
    lines: HashSet<(Arc<str>, u32)>,
    /// The files and starts of functions.
    functions: HashSet<(Arc<str>, Place)>,
    regions: HashSet<(Arc<str>, Span)>,
}

impl Covered {
    fn of(view: &View, column: &Column) -> Self {
        let mut covered = Self::default();
        for path in view.paths.iter().filter(|path| column.has(path)) {
            let lines = lines(&column.segments(path));
            let ran = lines.into_iter().filter(|(_, count)| *count > 0);
            covered
                .lines
                .extend(ran.map(|(line, _)| (Arc::clone(path), line)));
            for record in column.defined_in(path) {
                let function = &record.function;
                if record.counts.calls > 0 {
                    let start = (Arc::clone(path), function.start());
                    covered.functions.insert(start);
                }
                for (region, count) in function.regions.iter().zip(&record.counts.regions) {
                    if region.kind == Kind::Code && *count > 0 {
                        let path = function.path(region.location.file);
                        let place = (Arc::clone(path), region.location.span);
                        covered.regions.insert(place);
                    }
                }
            }
        }
        covered
    }
}

/// The number of places of each test that no other test has.
fn alone<T: Eq + Hash>(tests: &[&Covered], places: impl Fn(&Covered) -> &HashSet<T>) -> Vec<usize> {
    let mut number: HashMap<&T, usize> = HashMap::new();
    for place in tests.iter().flat_map(|covered| places(covered)) {
        *number.entry(place).or_default() += 1;
    }
    let is_alone = |place: &&T| number[place] == 1;
    tests
        .iter()
        .map(|covered| places(covered).iter().filter(is_alone).count())
        .collect()
}
