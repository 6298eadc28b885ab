//! The tests that reach each line.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

/// The tests that reach each line of one file in one column, in any order.
pub(super) type ColumnTests = HashMap<u32, Vec<usize>, RandomState>;

/// The tests that reach each line of the source files. A test has the number that it has in the report, from 0.
#[derive(Debug, Default)]
pub(crate) struct LineTests(HashMap<Arc<str>, Vec<(Arc<str>, ColumnTests)>>);

impl LineTests {
    /// Takes the tests of each file in each column, with the label of the column.
    pub(crate) fn new(files: impl Iterator<Item = (Arc<str>, Arc<str>, ColumnTests)>) -> Self {
        let mut columns: HashMap<_, Vec<_>> = HashMap::new();
        for (label, path, tests) in files {
            columns.entry(path).or_default().push((label, tests));
        }
        Self(columns)
    }

    /// The lines of the file at `path` that each test reaches in a column and no other test does there, in order. By
    /// the number of the test, and by the label of the column.
    pub(crate) fn alone(&self, path: &str) -> BTreeMap<usize, BTreeMap<&str, Vec<u32>>> {
        let mut alone: BTreeMap<usize, BTreeMap<&str, Vec<u32>>> = BTreeMap::new();
        for (label, lines) in self.0.get(path).into_iter().flatten() {
            for (line, tests) in lines {
                if let Some((test, others)) = tests.split_first()
                    && others.iter().all(|other| other == test)
                {
                    let columns = alone.entry(*test).or_default();
                    columns.entry(label).or_default().push(*line);
                }
            }
        }
        let lines = alone.values_mut().flat_map(BTreeMap::values_mut);
        for lines in lines {
            lines.sort_unstable();
            lines.dedup();
        }
        alone
    }

    /// The tests that reach lines from `first` to `last` of the file at `path`, with the labels of the columns that
    /// they do so in.
    pub(crate) fn reaching(
        &self,
        path: &str,
        [first, last]: [u32; 2],
    ) -> BTreeMap<usize, BTreeSet<&str>> {
        let mut reaching: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for (label, lines) in self.0.get(path).into_iter().flatten() {
            let here = (first..=last).filter_map(|line| lines.get(&line));
            for test in here.flatten() {
                reaching.entry(*test).or_default().insert(label);
            }
        }
        reaching
    }

    /// The lines of the file at `path` that tests reach in any column, with the numbers of these tests in order.
    pub(crate) fn lines(&self, path: &str) -> BTreeMap<u32, Vec<usize>> {
        let mut lines: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let columns = self.0.get(path).into_iter().flatten();
        for (line, tests) in columns.flat_map(|(_, tests)| tests) {
            lines.entry(*line).or_default().extend(tests);
        }
        for tests in lines.values_mut() {
            tests.sort_unstable();
            tests.dedup();
        }
        lines
    }
}
