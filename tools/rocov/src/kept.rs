//! Device ELFs that lie in the data directory: `objects/TARGET.IDENTITY.elf`, put there by librocov
//! when it loads them and by `rocov report` when it takes them out of a host file.

use crate::objects::ObjectFile;
use anyhow::{Context, Result, bail};
use rocov::registry::OBJECTS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The device ELFs of some code objects, and the reasons why others are not used.
#[derive(Default)]
pub(crate) struct Kept {
    /// One for each identity at most.
    pub(crate) files: Vec<ObjectFile>,
    /// Files whose contents are not what their names say.
    pub(crate) refused: Vec<anyhow::Error>,
}

impl Kept {
    /// Looks for the device ELFs with the identities `wanted` in `data_directory`.
    ///
    /// # Errors
    ///
    /// When there is a directory of them that cannot be read.
    pub(crate) fn find(data_directory: &Path, wanted: &BTreeSet<&str>) -> Result<Self> {
        let mut kept = Self::default();
        for (identity, path) in list(data_directory)? {
            if wanted.contains(identity.as_str()) {
                match open(&path, &identity) {
                    Ok(file) => kept.files.push(file),
                    Err(error) => kept.refused.push(error),
                }
            }
        }
        Ok(kept)
    }

    /// The device ELFs with other identities than `known`, as far as they can be read.
    ///
    /// # Errors
    ///
    /// When there is a directory of them that cannot be read.
    pub(crate) fn others(data_directory: &Path, known: &BTreeSet<&str>) -> Result<Vec<ObjectFile>> {
        let kept = list(data_directory)?.into_iter();
        let others = kept.filter(|(identity, _)| !known.contains(identity.as_str()));
        Ok(others
            .filter_map(|(identity, path)| open(&path, &identity).ok())
            .collect())
    }
}

/// The kept device ELFs by identity, as their names say.
fn list(data_directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let directory = data_directory.join(OBJECTS);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries.with_context(|| format!("cannot read {}", directory.display()))?,
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if let Some(identity) = identity_in(&path) {
            files.insert(identity.to_owned(), path);
        }
    }
    Ok(files)
}

/// The identity that a kept file's name says.
pub(crate) fn identity_in(path: &Path) -> Option<&str> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".elf")?;
    Some(stem.rsplit_once('.')?.1)
}

/// Opens a kept device ELF, if it is what its name says.
fn open(path: &Path, identity: &str) -> Result<ObjectFile> {
    let remedy = "remove it, and run the program again or give the file that it came from with \
                  --object";
    let file = ObjectFile::open(path).with_context(|| format!("damaged or foreign, {remedy}"))?;
    match file.elfs.as_slice() {
        [elf] if elf.identity == identity => Ok(file),
        elfs => {
            let found: Vec<_> = elfs.iter().map(|elf| elf.identity.as_str()).collect();
            bail!(
                "{} has the contents of code object {}, not of the one in its name: {remedy}",
                path.display(),
                found.join(", "),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_stands_before_the_ending() {
        for (name, identity) in [
            ("gfx90a.0f3c.elf", Some("0f3c")),
            ("gfx90a-xnack-.0f3c.elf", Some("0f3c")),
            ("0f3c.elf", None),
            ("gfx90a.0f3c.o", None),
        ] {
            assert_eq!(identity_in(Path::new(name)), identity, "{name}");
        }
    }
}
