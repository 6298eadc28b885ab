//! Who counted what into which file, so that nothing is counted twice and nothing overwritten.
//!
//! A code object that is loaded, unloaded and loaded again has one profile name and starts from
//! zero each time: the file must hold the sum. A load that is drained twice (on request, then at
//! exit) has one contribution, the later one.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::profraw::{ProfileError, Version, add_counters};

/// What this process has contributed to each file.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    files: HashMap<PathBuf, Contributions>,
    /// The file that each live load contributes to, by generation.
    paths: HashMap<u64, PathBuf>,
}

#[derive(Debug, Default)]
struct Contributions {
    /// The sum over loads that are gone.
    settled: Option<Vec<u8>>,
    /// The latest counters of each load that is there, by generation.
    live: BTreeMap<u64, (Version, Vec<u8>)>,
}

impl Ledger {
    /// What the file at `path` must hold when load `generation` has `counters`, or `None` where it
    /// holds just that already.
    pub(super) fn total<'a>(
        &self,
        path: &Path,
        generation: u64,
        counters: &'a [u8],
        version: &Version,
    ) -> Result<Option<Cow<'a, [u8]>>, ProfileError> {
        let mut total = Cow::Borrowed(counters);
        let Some(file) = self.files.get(path) else {
            return Ok(Some(total));
        };
        if file
            .live
            .get(&generation)
            .is_some_and(|(_, written)| written == counters)
        {
            return Ok(None);
        }
        let others = file.live.iter().filter(|(other, _)| **other != generation);
        for more in file
            .settled
            .iter()
            .chain(others.map(|(_, (_, counters))| counters))
        {
            add_counters(total.to_mut(), more, version)?;
        }
        Ok(Some(total))
    }

    /// Records that the file at `path` now holds the `counters` of load `generation`.
    pub(super) fn written(
        &mut self,
        path: &Path,
        generation: u64,
        counters: Vec<u8>,
        version: Version,
    ) {
        let file = self.files.entry(path.to_owned()).or_default();
        file.live.insert(generation, (version, counters));
        self.paths.insert(generation, path.to_owned());
    }

    /// Ends the contributions of load `generation`: what it has counted stays, and its next drain
    /// would be another's.
    pub(super) fn settle(&mut self, generation: u64) {
        let path = self.paths.remove(&generation);
        let Some(file) = path.and_then(|path| self.files.get_mut(&path)) else {
            return;
        };
        let Some((version, counters)) = file.live.remove(&generation) else {
            return;
        };
        match &mut file.settled {
            // Sizes are equal: `total` refuses others.
            Some(sum) => drop(add_counters(sum, &counters, &version)),
            none => *none = Some(counters),
        }
    }
}
