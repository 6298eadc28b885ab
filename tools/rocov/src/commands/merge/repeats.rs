//! Inputs that have the runs of others: a data directory and a copy of it, or a merge that was done twice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use rocov::format::registry::Runs;
use rocov::support::diagnostic::fail;

use crate::data::{CompletedData, ProcessPlaces};
use crate::term::plural::count;

/// The data directories whose runs are all in others, each with one of those others.
///
/// # Errors
///
/// Fails if only a part of the runs of a directory is in others: their counts cannot be told apart.
pub(super) fn repeated(data: &CompletedData) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut places = ProcessPlaces::default();
    let mut directories: BTreeMap<PathBuf, Runs> = BTreeMap::new();
    for (registry, process) in data
        .registries
        .processes()
        .filter(|(registry, _)| registry.is_named)
    {
        let directory = places.place(&registry.path).data;
        directories.entry(directory).or_default().add(&process.runs);
    }
    if directories.len() < 2 {
        return Ok(BTreeMap::new());
    }
    // A registry without profiles counts nothing.
    let profiles = data
        .files
        .device
        .iter()
        .map(|profile| &profile.path)
        .chain(&data.files.host);
    let with_profiles: BTreeSet<_> = profiles.map(|path| places.place(path).data).collect();
    directories.retain(|directory, _| with_profiles.contains(directory));
    // Directories with more runs come first, as the others may be parts of them.
    let mut directories: Vec<_> = directories.into_iter().collect();
    directories.sort_by_key(|(_, runs)| Reverse(runs.len()));
    let (mut known, mut repeated) = (Runs::default(), BTreeMap::new());
    for (place, (directory, runs)) in directories.iter().enumerate() {
        let shared = runs.shared_with(&known);
        if shared > 0 {
            let mut others = directories[..place].iter();
            let other = others.find(|(_, others)| runs.shared_with(others) > 0);
            let other = other.map_or(directory, |(other, _)| other);
            if shared < runs.len() {
                fail!(
                    "{} and {} have {} in common, whose counts cannot be separated from the others",
                    other.display(), directory.display(), count(shared, "run");
                    "merge directories of different runs"
                );
            }
            repeated.insert(directory.clone(), other.clone());
        }
        known.add(runs);
    }
    Ok(repeated)
}
