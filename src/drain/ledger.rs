//! Who counted what into which file, so that nothing is counted twice and nothing overwritten.
//!
//! A code object that is loaded, unloaded and loaded again has one profile name and starts from
//! zero each time: the file must hold the sum. A load that is drained twice (on request, then at
//! exit) has one contribution, the later one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::profraw::{Counts, ProfileError, Version};

/// What this process has contributed to each file.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    files: HashMap<PathBuf, Contributions>,
    /// The file that each live load contributes to, by generation.
    paths: HashMap<u64, PathBuf>,
    /// Files that hold what is this process's alone, under names that another may take.
    own: BTreeSet<PathBuf>,
    /// Files that are elsewhere than their name says.
    moved: HashMap<PathBuf, PathBuf>,
}

#[derive(Debug, Default)]
struct Contributions {
    /// The sum over loads that are gone.
    settled: Option<Counts>,
    /// The latest counts of each load that is there, by generation.
    live: BTreeMap<u64, (Version, Counts)>,
}

impl Ledger {
    /// What the file at `path` must hold when load `generation` has `counts`, or `None` where it
    /// holds just that already.
    pub(super) fn total<'a>(
        &self,
        path: &Path,
        generation: u64,
        counts: &'a Counts,
        version: &Version,
    ) -> Result<Option<Cow<'a, Counts>>, ProfileError> {
        let mut total = Cow::Borrowed(counts);
        let Some(file) = self.files.get(path) else {
            return Ok(Some(total));
        };
        if file
            .live
            .get(&generation)
            .is_some_and(|(_, written)| written == counts)
        {
            return Ok(None);
        }
        let others = file.live.iter().filter(|(other, _)| **other != generation);
        for more in file
            .settled
            .iter()
            .chain(others.map(|(_, (_, counts))| counts))
        {
            total.to_mut().add(more, version)?;
        }
        Ok(Some(total))
    }

    /// What load `generation` has counted since it was last written to the file at `path`, or
    /// `None` where that is nothing. Counters that have gone down were reset: all they show is new.
    pub(super) fn news<'a>(
        &self,
        path: &Path,
        generation: u64,
        counts: &'a Counts,
        version: &Version,
    ) -> Option<Cow<'a, Counts>> {
        let written = self
            .files
            .get(path)
            .and_then(|file| file.live.get(&generation));
        match written {
            None => Some(Cow::Borrowed(counts)),
            Some((_, written)) if written == counts => None,
            Some((_, written)) => Some(Cow::Owned(counts.since(written, version))),
        }
    }

    /// Records that the file at `path` now holds the `counts` of load `generation`.
    pub(super) fn written(
        &mut self,
        path: &Path,
        generation: u64,
        counts: Counts,
        version: Version,
    ) {
        let file = self.files.entry(path.to_owned()).or_default();
        file.live.insert(generation, (version, counts));
        self.paths.insert(generation, path.to_owned());
    }

    /// Where the file called `path` is.
    pub(super) fn place<'a>(&'a self, path: &'a Path) -> &'a Path {
        self.moved.get(path).map_or(path, PathBuf::as_path)
    }

    /// Records that the file called `path` is this process's own.
    pub(super) fn own(&mut self, path: &Path) {
        if !self.moved.contains_key(path) {
            self.own.insert(path.to_owned());
        }
    }

    /// Takes the names of this process's own files, of those that were not moved.
    pub(super) fn take_own(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.own)
    }

    /// Records that the file called `path` is at `place` from now on.
    pub(super) fn moved(&mut self, path: PathBuf, place: PathBuf) {
        self.moved.insert(path, place);
    }

    /// Ends the contributions of load `generation`: what it has counted stays, and its next drain
    /// would be another's.
    pub(super) fn settle(&mut self, generation: u64) {
        let path = self.paths.remove(&generation);
        let Some(file) = path.and_then(|path| self.files.get_mut(&path)) else {
            return;
        };
        let Some((version, counts)) = file.live.remove(&generation) else {
            return;
        };
        match &mut file.settled {
            // Sizes are equal: `total` refuses others.
            Some(sum) => drop(sum.add(&counts, &version)),
            none => *none = Some(counts),
        }
    }
}
