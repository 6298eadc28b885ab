//! Pooled directories, with one raw profile for each code object and one registry. A merge makes them,
//! `rocov report` reads them, and the next merge takes them as inputs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::format::codeobject::Identity;
use rocov::format::registry::Grouped;
use rocov::store::layout::{OBJECTS, PROFRAW, PTX, REGISTRIES};
use rocov::store::{Expansion, Label, ProfileName};
use rocov::support::diagnostic::fail;
use tempfile::TempDir;

use crate::data::{DataListing, DeviceProfile, POOLED_HOST};
use crate::support::atomic;
use crate::support::atomic::Partial;
use crate::term::warnings::Warnings;

/// The pattern of the names of pooled profiles.
const PATTERN: &str = "%m.merged.profraw";
/// The GPU in the names: all GPUs' counts are in one file.
const AGENT: usize = 0;

/// A code object on an architecture, from one build of a program or library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CodeObjectKey {
    pub(crate) arch: String,
    pub(crate) identity: String,
    /// The tag of the build of the file that it came from, if it is known.
    pub(crate) build: Option<String>,
    /// The label of its profiles, if labels are kept apart.
    pub(crate) label: Option<Label>,
}

/// The sum of the profiles of a code object, for a pooled directory.
pub(crate) struct PooledProfile<'a> {
    pub(crate) key: &'a CodeObjectKey,
    /// True if all of them are of zeros: of code that was never launched.
    pub(crate) is_of_zeros: bool,
    /// The raw profile.
    pub(crate) bytes: &'a [u8],
}

/// A pooled directory in the making, which goes when it is not put in place.
pub(crate) struct Pool {
    directory: Partial<TempDir>,
    /// The name of its files.
    name: ProfileName,
    /// The profiles by arch.
    pub(crate) profiles: BTreeMap<String, Vec<PathBuf>>,
}

/// Checks that a pooled directory can be made at `path`.
///
/// # Errors
///
/// Fails if there is something else than an earlier merge.
pub(crate) fn check_free(path: &Path) -> Result<()> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        entries => {
            let mut entries = entries.with_context(|| cannot_write(path))?;
            if entries.next().is_none() || is_pooled(path)? {
                return Ok(());
            }
            fail!(
                "{} exists, and contains more than a merge wrote", path.display();
                "choose another directory, or remove it"
            );
        }
    }
}

impl Pool {
    /// Writes the sums into a new directory, in the directory `place` or a temporary one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn write<'a>(
        sums: impl IntoIterator<Item = PooledProfile<'a>>,
        place: Option<&Path>,
    ) -> Result<Self> {
        let directory = make_directory(place)?;
        let path = directory.path.path();
        let profiles = path.join(PROFRAW);
        make(&profiles)?;
        let name = ProfileName::parse(PATTERN, &Expansion::default(), &profiles)
            .context("a pattern without a process id")?
            .in_data(path);
        let mut pool = Self {
            directory,
            name,
            profiles: BTreeMap::new(),
        };
        for summed in sums {
            let CodeObjectKey {
                arch,
                identity,
                build,
                label,
            } = summed.key;
            let identity = Identity::from_digits(identity)
                .with_context(|| format!("`{identity}` is not an identity"))?;
            let name = match summed.is_of_zeros {
                true => pool.name.for_zeros(),
                false => pool.name.clone().with_label(label.clone()),
            };
            // Profiles with and without the records of a trace are two files.
            let free =
                (AGENT..).map(|agent| name.for_build(build.as_deref(), arch, &identity, agent));
            let path = free
                .into_iter()
                .find(|path| !path.exists())
                .context("no number of a GPU is free")?;
            make_all(path.parent().unwrap_or(&path))?;
            write_new(&path, summed.bytes)?;
            pool.profiles.entry(arch.clone()).or_default().push(path);
        }
        Ok(pool)
    }

    /// The directory as it is now. It goes with the value.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path.path()
    }

    /// The directory of its profiles, as it is now.
    pub(crate) fn profraw(&self) -> PathBuf {
        self.directory.path.path().join(PROFRAW)
    }

    /// Adds the files next to the profiles: the registry, and the device ELFs with the PTX that they were made of, by hard
    /// links if possible.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be read or written.
    pub(crate) fn keep<'a>(
        &self,
        registry: &Grouped,
        elfs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<()> {
        let path = self.directory.path.path();
        if !registry.is_empty() {
            make(&path.join(REGISTRIES))?;
            write_new(&self.name.for_registry(), &registry.to_json())?;
        }
        let objects = path.join(OBJECTS);
        let with_source = |elf: &Path| {
            let source = elf.with_extension(PTX);
            [Some(elf.to_owned()), source.is_file().then_some(source)]
        };
        for from in elfs.into_iter().flat_map(with_source).flatten() {
            make_all(&objects)?;
            let to = objects.join(from.file_name().unwrap_or_default());
            // Another file system, or one without links.
            if fs::hard_link(&from, &to).is_err() {
                fs::copy(&from, &to).with_context(|| {
                    format!("cannot copy {} to {}", from.display(), to.display())
                })?;
            }
        }
        Ok(())
    }

    /// Puts the directory at `path`, with all that is in it at once. If an earlier merge is there, it goes.
    ///
    /// # Errors
    ///
    /// Fails if something else has come there meanwhile.
    pub(crate) fn put(self, path: &Path) -> Result<()> {
        if path.is_dir() && is_pooled(path)? {
            // The earlier merge then goes with the temporary directory.
            let made = self.directory.path.path();
            if has_only_a_merge(path)
                && atomic::exchange(made, path).with_context(|| cannot_write(path))?
            {
                return Ok(());
            }
            return self.put_into(path);
        }
        fs::rename(self.directory.path.path(), path).with_context(|| cannot_write(path))?;
        // It is elsewhere now, and stays.
        let _ = self.directory.path.keep();
        Ok(())
    }

    /// Puts the folders of the directory into the one at `path`, in the place of those of an earlier
    /// merge.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be.
    pub(crate) fn put_into(self, path: &Path) -> Result<()> {
        let made = self.directory.path.path();
        for folder in [OBJECTS, REGISTRIES, PROFRAW] {
            let (from, to) = (made.join(folder), path.join(folder));
            if to.exists() {
                // It goes with the rest of the directory.
                let old = made.join(format!("old-{folder}"));
                fs::rename(&to, old).with_context(|| cannot_write(&to))?;
            }
            if from.exists() {
                fs::rename(&from, &to).with_context(|| cannot_write(&to))?;
            }
        }
        Ok(())
    }
}

/// Returns whether the directory at `path` is of an earlier merge.
///
/// # Errors
///
/// Fails if it cannot be read.
fn is_pooled(path: &Path) -> Result<bool> {
    Ok(path.join(PROFRAW).is_dir() && is_of_merges(path)?)
}

/// Returns whether nothing is in the directory at `path` but the folders that a merge makes.
fn has_only_a_merge(path: &Path) -> bool {
    let is_of_merge = |name: &OsStr| {
        [OBJECTS, REGISTRIES, PROFRAW]
            .iter()
            .any(|folder| name == *folder)
    };
    fs::read_dir(path).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_of_merge(&entry.file_name())))
    })
}

/// Returns whether the directory at `path` has no files of runs: only raw profiles and registries of
/// earlier merges, if any.
///
/// # Errors
///
/// Fails if it cannot be read.
pub(crate) fn is_of_merges(path: &Path) -> Result<bool> {
    let data = Warnings::printing(|warnings| DataListing::open(&[path.join(PROFRAW)], warnings))?;
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let is_merged = |profile: &DeviceProfile| profile.is_of_zeros || profile.is_merged();
    let own =
        ProfileName::parse(PATTERN, &Expansion::default(), path).map(|name| name.for_registry());
    let registry = own.map(|registry| name(&registry)).unwrap_or_default();
    Ok(data.device.iter().all(is_merged)
        && data.host.iter().all(|path| path.ends_with(POOLED_HOST))
        && data
            .named_registry_paths()
            .all(|path| name(path) == registry))
}

/// A directory in `place`, or if there is none a temporary one.
fn make_directory(place: Option<&Path>) -> Result<Partial<TempDir>> {
    let Some(place) = place else {
        let made = atomic::directory_in(&std::env::temp_dir(), 0o700);
        return made.context("cannot create a temporary directory");
    };
    fs::create_dir_all(place)
        // The mode of any new directory, before the umask.
        .and_then(|()| atomic::directory_in(place, 0o777))
        .with_context(|| cannot_write(place))
}

fn make_all(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| cannot_write(directory))
}

fn make(directory: &Path) -> Result<()> {
    fs::create_dir(directory).with_context(|| cannot_write(directory))
}

fn write_new(path: &Path, contents: &[u8]) -> Result<()> {
    File::create_new(path)
        .and_then(|mut file| file.write_all(contents))
        .with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
