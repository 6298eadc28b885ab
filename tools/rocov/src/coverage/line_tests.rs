//! The tests that reach each line.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

/// The tests that reach each line of one file in one column, in any order.
pub(super) type ColumnTests = HashMap<u32, Vec<usize>, RandomState>;

/// The tests that reach each line of the source files. A test has the number that it has in the report, from 0.
#[derive(Debug, Default)]
pub(crate) struct LineTests(HashMap<Arc<str>, Vec<ColumnTests>>);

impl LineTests {
    /// Takes the tests of each file in each column.
    pub(crate) fn of(files: impl Iterator<Item = (Arc<str>, ColumnTests)>) -> Self {
        let mut columns: HashMap<_, Vec<_>> = HashMap::new();
        for (path, tests) in files {
            columns.entry(path).or_default().push(tests);
        }
        Self(columns)
    }

    /// The lines of the file at `path` that tests reach in any column, with the numbers of these tests in order.
    pub(crate) fn lines(&self, path: &str) -> BTreeMap<u32, Vec<usize>> {
        let mut lines: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (line, tests) in self.0.get(path).into_iter().flatten().flatten() {
            lines.entry(*line).or_default().extend(tests);
        }
        for tests in lines.values_mut() {
            tests.sort_unstable();
            tests.dedup();
        }
        lines
    }
}
