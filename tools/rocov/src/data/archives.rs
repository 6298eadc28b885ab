//! The kpack archives to which the device code of a host file was split off.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rocov::format::bundle::{ANY_TARGET, SplitOff};
use rocov::support::diagnostic::fail;

/// The archives that are there for the host file at `host`, of all targets.
///
/// # Errors
///
/// Fails if there is none.
pub(super) fn archives_beside(host: &Path, reference: &SplitOff) -> Result<Vec<PathBuf>> {
    let directory = host.parent().unwrap_or(Path::new(""));
    let paths = reference.archives.iter();
    let mut found: Vec<_> = paths
        .flat_map(|path| matching(&directory.join(path)))
        .collect();
    found.sort();
    found.dedup();
    if found.is_empty() {
        let paths = reference.archives.iter();
        let paths: Vec<_> = paths
            .map(|path| directory.join(path).display().to_string())
            .collect();
        fail!(
            "its device code was split off into kpack archives, none of which was found";
            "install {}", paths.join(", ")
        );
    }
    Ok(found)
}

/// The files at a path, in whose name a target may stand for [`ANY_TARGET`].
fn matching(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((start, end)) = name.split_once(ANY_TARGET) else {
        let is_there = path.is_file();
        return is_there.then(|| path.to_owned()).into_iter().collect();
    };
    let entries = path
        .parent()
        .and_then(|directory| fs::read_dir(directory).ok());
    let entries = entries.into_iter().flatten().flatten();
    let is_meant = |name: &str| {
        let rest = name.strip_prefix(start);
        rest.is_some_and(|rest| {
            rest.strip_suffix(end)
                .is_some_and(|target| !target.is_empty())
        })
    };
    entries
        .filter(|entry| is_meant(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect()
}
