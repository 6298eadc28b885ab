//! The lines of sources as they were when code ran that refers to them, as far as librocov has noted that: of PTX.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use rocov::format::ptx::{NotedLines, hash_of_line};

/// The hashes of lines by the path of the source and the number of the line: several if the source was edited between runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RanLines(BTreeMap<Arc<str>, BTreeMap<u32, BTreeSet<u32>>>);

impl RanLines {
    /// The lines that the comments in PTX have.
    pub(super) fn from_notes(noted: NotedLines) -> Self {
        let lines = |lines: BTreeMap<u32, u32>| {
            let lines = lines.into_iter();
            lines
                .map(|(line, hash)| (line, BTreeSet::from([hash])))
                .collect()
        };
        let sources = noted.into_iter();
        Self(
            sources
                .map(|(path, of_path)| (path.into(), lines(of_path)))
                .collect(),
        )
    }

    /// Adds those of other code.
    pub(super) fn add(&mut self, more: &Self) {
        for (path, lines) in &more.0 {
            let of_path = self.0.entry(Arc::clone(path)).or_default();
            for (line, hashes) in lines {
                of_path.entry(*line).or_default().extend(hashes);
            }
        }
    }

    /// Gives the sources the paths of `place`.
    pub(super) fn move_all(&mut self, place: impl Fn(&str) -> String) {
        for (path, lines) in mem::take(&mut self.0) {
            self.add(&Self(BTreeMap::from([(place(&path).into(), lines)])));
        }
    }

    /// The sources that have some.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The first line of a source that has another text than when it ran. `line` returns the text of a line.
    pub(super) fn first_changed<'a>(
        &self,
        path: &str,
        line: impl Fn(u32) -> Option<&'a [u8]>,
    ) -> Option<u32> {
        let mut lines = self.0.get(path)?.iter();
        let changed = lines.find(|(number, hashes)| {
            let text = line(**number);
            text.is_some_and(|text| hashes.iter().any(|hash| *hash != hash_of_line(text)))
        });
        changed.map(|(number, _)| *number)
    }
}
