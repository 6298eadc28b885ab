//! The tests that reach each line.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tests that reach each line of the source files. A test has the number that it has in the report.
#[derive(Debug, Default)]
pub(crate) struct LineTests(HashMap<Arc<str>, BTreeMap<u32, Vec<usize>>>);

impl LineTests {
    /// Joins the tests of lines in all columns. A file may be there several times.
    pub(crate) fn of(files: impl Iterator<Item = (Arc<str>, HashMap<u32, Vec<usize>>)>) -> Self {
        let mut joined: HashMap<_, BTreeMap<u32, Vec<usize>>> = HashMap::new();
        for (path, lines) in files {
            let file = joined.entry(path).or_default();
            for (line, tests) in lines {
                file.entry(line).or_default().extend(tests);
            }
        }
        for tests in joined.values_mut().flat_map(BTreeMap::values_mut) {
            tests.sort_unstable();
            tests.dedup();
        }
        Self(joined)
    }

    /// The lines of the file at `path` that tests reach, with the numbers of these tests in order.
    pub(crate) fn lines(&self, path: &str) -> impl Iterator<Item = (u32, &[usize])> {
        let lines = self.0.get(path).into_iter().flatten();
        lines.map(|(line, tests)| (*line, &**tests))
    }
}
