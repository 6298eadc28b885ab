//! Directories with one raw profile for each code object and one registry, named as `%m` names them:
//! what a merge makes, `rocov report` reads, and the next merge takes as an input.

use super::Gathered;
use super::sums::{CodeObject, Summed};
use crate::files::{self, Partial};
use anyhow::{Context, Result, bail};
use rocov::codeobject::Identity;
use rocov::output::{Expansion, ProfileName};
use rocov::registry::OBJECTS;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the names of pooled profiles are made of.
const PATTERN: &str = "%m.profraw";
/// The GPU in the names: all GPUs' counts are in one file.
const AGENT: usize = 0;

/// A pooled directory in the making, which goes when it is not put in place.
pub(super) struct Pool {
    directory: Partial<TempDir>,
    /// What its files are called.
    name: ProfileName,
    /// The profiles by arch.
    pub(super) profiles: BTreeMap<String, Vec<PathBuf>>,
}

/// Checks that a pooled directory can be made at `path`.
///
/// # Errors
///
/// When there is something already: profiles of an earlier merge would be taken for part of it.
pub(super) fn check_free(path: &Path) -> Result<()> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        entries => {
            let mut entries = entries.with_context(|| cannot_write(path))?;
            if entries.next().is_some() {
                bail!(
                    "{} is there already, and not empty: remove it, or choose another",
                    path.display()
                );
            }
            Ok(())
        }
    }
}

impl Pool {
    /// Writes the sums into a directory that will be put at `path`, or a temporary one.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn write(
        code_objects: &BTreeMap<CodeObject, Summed>,
        path: Option<&Path>,
    ) -> Result<Self> {
        let directory = make_directory(path)?;
        let name = ProfileName::parse(PATTERN, &Expansion::default(), directory.path.path())
            .context("a pattern without a process id")?;
        let mut pool = Self {
            directory,
            name,
            profiles: BTreeMap::new(),
        };
        for (CodeObject { arch, identity }, summed) in code_objects {
            let identity = Identity::from_digits(identity)
                .with_context(|| format!("`{identity}` is not an identity"))?;
            let name = match summed.is_of_zeros {
                true => pool.name.for_zeros(),
                false => pool.name.clone(),
            };
            let path = name.for_load(arch, &identity, AGENT);
            write_new(&path, summed.sum.bytes())?;
            pool.profiles.entry(arch.clone()).or_default().push(path);
        }
        Ok(pool)
    }

    /// Where it is now.
    pub(super) fn path(&self) -> &Path {
        self.directory.path.path()
    }

    /// Adds what processes have kept beside the profiles: the registries, as one, and the device ELFs, by
    /// hard links where that is possible.
    ///
    /// # Errors
    ///
    /// When one cannot be read or written.
    pub(super) fn keep(&self, gathered: &Gathered) -> Result<()> {
        if !gathered.registry.is_empty() {
            write_new(&self.name.for_registry(), &gathered.registry.to_json())?;
        }
        if gathered.kept.is_empty() {
            return Ok(());
        }
        let objects = self.path().join(OBJECTS);
        fs::create_dir(&objects).with_context(|| cannot_write(&objects))?;
        for (name, from) in &gathered.kept {
            let to = objects.join(name);
            // Another file system, or one without links.
            if fs::hard_link(from, &to).is_err() {
                fs::copy(from, &to).with_context(|| {
                    format!("cannot copy {} to {}", from.display(), to.display())
                })?;
            }
        }
        Ok(())
    }

    /// Puts the directory at `path`, with all that is in it at once.
    ///
    /// # Errors
    ///
    /// When something has come there meanwhile.
    pub(super) fn put(self, path: &Path) -> Result<()> {
        fs::rename(self.path(), path).with_context(|| cannot_write(path))?;
        // It is elsewhere now, and stays.
        let _ = self.directory.path.keep();
        Ok(())
    }
}

/// A directory beside `path`, as one cannot be renamed to another file system.
fn make_directory(path: Option<&Path>) -> Result<Partial<TempDir>> {
    let Some(path) = path else {
        let made = files::directory_in(&std::env::temp_dir(), 0o700);
        return made.context("cannot make a temporary directory");
    };
    let parent = files::parent(path);
    fs::create_dir_all(parent)
        // As for any directory.
        .and_then(|()| files::directory_in(parent, 0o777))
        .with_context(|| cannot_write(path))
}

fn write_new(path: &Path, contents: &[u8]) -> Result<()> {
    File::create_new(path)
        .and_then(|mut file| file.write_all(contents))
        .with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
