//! Device ELFs that lie in the data directory: `objects/TARGET.IDENTITY.elf`, put there by librocov
//! when they were loaded.

use super::{Belongs, DataDirectory};
use crate::objects::ObjectFile;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;

/// The device ELFs of some code objects, and the reasons why others are not used.
#[derive(Default)]
pub(crate) struct Kept {
    /// One for each identity at most.
    pub(crate) files: Vec<ObjectFile>,
    /// Files whose contents are not what their names say.
    pub(crate) refused: Vec<anyhow::Error>,
}

impl Kept {
    /// Opens the device ELFs with the identities `wanted` of `data`.
    pub(crate) fn find(data: &DataDirectory, wanted: &BTreeSet<&str>) -> Self {
        let mut kept = Self::default();
        for (identity, (path, _)) in &data.elfs {
            if wanted.contains(identity.as_str()) {
                match open(path, identity) {
                    Ok(file) => kept.files.push(file),
                    Err(error) => kept.refused.push(error),
                }
            }
        }
        kept
    }

    /// The device ELFs of what was asked for with other identities than `known`, as far as they can be
    /// read, and are of builds that are taken.
    pub(crate) fn others(data: &DataDirectory, known: &BTreeSet<&str>) -> Vec<ObjectFile> {
        let others = data.elfs.iter().filter(|(identity, (_, belongs))| {
            *belongs == Belongs::Asked
                && !known.contains(identity.as_str())
                && !data.builds.has_only_older(identity)
        });
        others
            .filter_map(|(identity, (path, _))| open(path, identity).ok())
            .collect()
    }
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
