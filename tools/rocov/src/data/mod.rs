//! Data directories: what lies in them, found once for every command that reads some.
//!
//! ```text
//! names: what a name says -> walk: which files there are -> DataDirectory: all of them, each once
//! ```

mod builds;
mod kept;
mod names;
mod nothing;
mod origins;
mod registries;
mod told;
mod walk;

pub(crate) use self::builds::Builds;
pub(crate) use self::kept::Kept;
pub(crate) use self::names::{DeviceProfile, Kind, POOLED_HOST, is_searched};
pub(crate) use self::origins::Origins;
pub(crate) use self::registries::Registries;
pub(crate) use self::told::Told;
pub(crate) use self::walk::Walk;

use self::walk::{Belongs, Found};
use crate::child;
use anyhow::{Context, Error, Result};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What lies in the directories that a user has named, and belongs to that.
#[derive(Debug, Default)]
pub(crate) struct DataDirectory {
    /// As the user has written them.
    names: Vec<PathBuf>,
    /// Device profiles, ordered by arch, identity and agent.
    pub(crate) device: Vec<DeviceProfile>,
    /// Profiles of host code.
    pub(crate) host: Vec<PathBuf>,
    /// Sections that librocov saved whole, as it does not know their raw version.
    pub(crate) sections: Vec<PathBuf>,
    /// Device ELFs by identity.
    elfs: BTreeMap<String, (PathBuf, Belongs)>,
    /// Registries, in order.
    registries: Vec<(PathBuf, Belongs)>,
    /// Of the directories that the user has named, those that are not there.
    pub(crate) absent: Vec<PathBuf>,
    /// What else cannot be read, and why.
    pub(crate) damaged: Vec<(PathBuf, Error)>,
    /// What the registries say, once that was asked for.
    told: OnceCell<Told>,
    /// Which builds there are, and which are taken.
    pub(crate) builds: Builds,
}

impl DataDirectory {
    /// Finds what lies in `directories`, each file once. One that is not there has nothing. Says which
    /// directories in them cannot be read.
    ///
    /// # Errors
    ///
    /// When one of `directories` itself cannot be read.
    pub(crate) fn open<P: AsRef<Path>>(directories: &[P]) -> Result<Self> {
        let mut data = Self::collect(|walk| {
            directories.iter().for_each(|it| walk.named(it.as_ref()));
            Ok(())
        })?;
        let names = directories.iter().map(|it| it.as_ref().to_owned());
        data.names = names.collect();
        for (path, error) in std::mem::take(&mut data.damaged) {
            if !data.names.contains(&path) {
                child::say(&[format!("left out: {error:#}")]);
                data.damaged.push((path, error));
            } else if is_missing(&error) {
                data.absent.push(path);
            } else {
                return Err(error);
            }
        }
        // A file may have several names.
        let mut seen = HashSet::new();
        let mut is_new = |path: &Path| {
            fs::metadata(path).map_or(true, |file| seen.insert((file.dev(), file.ino())))
        };
        data.device.sort();
        data.device.retain(|profile| is_new(&profile.path));
        data.host.sort();
        data.host.retain(|path| is_new(path));
        data.sections.sort();
        data.registries
            .sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(data)
    }

    /// Opens directories, leaves out what older builds have counted unless `all_builds` are wanted, and
    /// prints what it leaves out.
    ///
    /// # Errors
    ///
    /// As [`DataDirectory::open`].
    pub(crate) fn open_builds<P: AsRef<Path>>(directories: &[P], all_builds: bool) -> Result<Self> {
        let mut data = Self::open(directories)?;
        child::say(&data.take_builds(all_builds));
        Ok(data)
    }

    /// Finds what `walk` walks over, in that order.
    ///
    /// # Errors
    ///
    /// When `walk` fails.
    pub(crate) fn collect(walk: impl FnOnce(&mut Walk<'_>) -> Result<()>) -> Result<Self> {
        let mut data = Self::default();
        let mut found = |found, belongs| match found {
            Found::Device(profile) => data.device.push(profile),
            Found::Host(path) => data.host.push(path),
            Found::Sections(path) => data.sections.push(path),
            Found::Elf(identity, path) => {
                data.elfs.entry(identity).or_insert((path, belongs));
            }
            Found::Registry(path) => data.registries.push((path, belongs)),
            Found::Damaged(path, error) => data.damaged.push((path, error)),
        };
        walk(&mut Walk::new(&mut found))?;
        Ok(data)
    }

    /// Has messages call the directory by these `names`, which the user gave.
    pub(crate) fn called(self, names: Vec<PathBuf>) -> Self {
        Self { names, ..self }
    }

    /// Takes of each program and library the newest build alone, unless `all` are wanted. Returns a line
    /// for each of which something is left out.
    pub(crate) fn take_builds(&mut self, all: bool) -> Vec<String> {
        self.builds = Builds::of(self.told());
        if all {
            self.builds.take_all();
            return Vec::new();
        }
        let builds = &self.builds;
        let left_out = self
            .device
            .extract_if(.., |profile| builds.is_of_older(profile));
        let left_out: Vec<_> = left_out.collect();
        self.host.retain(|path| !builds.is_host_of_older(path));
        builds.about(&left_out, self)
    }

    /// What the registries say that can be read.
    pub(crate) fn told(&self) -> &Told {
        self.told.get_or_init(|| {
            let files = self.registries.iter();
            Told::read(files.map(|(path, belongs)| (path.as_path(), *belongs == Belongs::Asked)))
        })
    }

    /// The kept device ELFs by identity.
    pub(crate) fn elfs(&self) -> impl Iterator<Item = (&str, &Path)> {
        let elfs = self.elfs.iter();
        elfs.map(|(identity, (path, _))| (identity.as_str(), path.as_path()))
    }

    /// The files of the registries of what was asked for.
    pub(crate) fn asked_registry_files(&self) -> impl Iterator<Item = &Path> {
        let asked = self.registries.iter();
        let asked = asked.filter(|(_, belongs)| *belongs == Belongs::Asked);
        asked.map(|(path, _)| path.as_path())
    }

    /// The registries.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub(crate) fn registries(&self) -> Result<Registries> {
        if let Some(error) = self.not_there() {
            return Err(error);
        }
        let read = Registries::of(self.registries.iter().map(|(path, _)| path.as_path()));
        (!self.registries.is_empty()).then_some(read).with_context(|| {
            format!(
                "no kernel registry (.kernels.json) in {self}: no program that loaded instrumented GPU \
                 code ran under `rocov run` there; ROCOV_REGISTRY=always has one written for any"
            )
        })
    }

    /// The files that code objects were loaded from.
    pub(crate) fn origins(&self) -> Origins {
        Origins::of_told(self.told())
    }
}

/// Returns whether there is no such file.
pub(crate) fn is_missing(error: &Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// What the user calls it.
impl fmt::Display for DataDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// How many of them are named.
        const MOST: usize = 4;
        for (index, name) in self.names.iter().take(MOST).enumerate() {
            let between = if index == 0 { "" } else { ", " };
            write!(f, "{between}{}", name.display())?;
        }
        match self.names.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Makes empty files.
    fn files(directory: &Path, names: &[&str]) {
        for name in names {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn a_listing_is_ordered_and_leaves_out_what_is_no_profile() {
        let directory = tempfile::tempdir().unwrap();
        files(
            directory.path(),
            &[
                "gfx942.aa.0.1.profraw",
                "gfx90a.bb.1.1.profraw",
                "gfx90a.bb.0.x-1.raw",
                "gfx90a.bb.0.1.7.sections",
                "1.profraw",
                "gfx90a.profdata",
            ],
        );
        let data = DataDirectory::open(&[directory.path()]).unwrap();
        let found: Vec<_> = data
            .device
            .iter()
            .map(|profile| (profile.arch.as_str(), profile.agent))
            .collect();
        assert_eq!(found, [("gfx90a", 0), ("gfx90a", 1), ("gfx942", 0)]);
        assert_eq!(data.host, [directory.path().join("1.profraw")]);
        let sections = directory.path().join("gfx90a.bb.0.1.7.sections");
        assert_eq!(data.sections, [sections]);
    }

    #[test]
    fn everything_below_is_found_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        files(
            path,
            &[
                "0/profraw/gfx90a.aa.0.1.profraw",
                "1/profraw/labels/unit%20tests/.add/gfx90a.aa.0.2.profraw",
                "1/registry/2.kernels.json",
                "1/objects/gfx90a.aa.elf",
                "all/profraw/pooled-host.profdata",
                ".git/gfx90a.aa.0.3.profraw",
            ],
        );
        symlink("..", path.join("0/up")).unwrap();
        fs::hard_link(
            path.join("0/profraw/gfx90a.aa.0.1.profraw"),
            path.join("gfx90a.aa.0.4.profraw"),
        )
        .unwrap();
        let data = DataDirectory::open(&[path, &path.join("1")]).unwrap();
        let labels = data.device.iter().map(|profile| {
            let label = profile.label.as_ref();
            label.map(ToString::to_string)
        });
        let labels: Vec<_> = labels.collect();
        assert_eq!(labels, [None, Some("unit tests/.add".to_owned())]);
        assert_eq!(data.host, [path.join("all/profraw/pooled-host.profdata")]);
        let registry = path.join("1/registry/2.kernels.json");
        assert_eq!(data.registries, [(registry, Belongs::Asked)]);
        assert_eq!(data.elfs.keys().collect::<Vec<_>>(), ["aa"]);
    }

    #[test]
    fn what_belongs_to_a_directory_is_found_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        files(
            path,
            &[
                "cov/7/gfx90a.aa.0.x.profraw",
                "cov.rocov/objects/gfx90a.aa.elf",
                "cov.rocov/registry/7/x.kernels.json",
                "cov.rocov/registry/8/x.kernels.json",
                "here/gfx90a.bb.0.x.profraw",
                ".rocov/here/objects/gfx90a.bb.elf",
                ".rocov/here/registry/x.kernels.json",
                "d/profraw/labels/l/gfx90a.cc.0.1.profraw",
                "d/objects/gfx90a.cc.elf",
                "d/registry/1.kernels.json",
            ],
        );
        for (name, elf, registries, expected) in [
            ("cov", "aa", 2, Belongs::Asked),
            ("cov/7", "aa", 1, Belongs::Beside),
            ("here", "bb", 1, Belongs::Asked),
            ("d/profraw", "cc", 1, Belongs::Asked),
            ("d/profraw/labels", "cc", 1, Belongs::Beside),
            ("d/profraw/labels/l", "cc", 1, Belongs::Beside),
        ] {
            let data = DataDirectory::open(&[path.join(name)]).unwrap();
            assert_eq!(data.device.len(), 1, "{name}");
            let elfs: Vec<_> = data.elfs.iter().collect();
            assert_eq!(elfs.len(), 1, "{name}");
            assert_eq!((elfs[0].0.as_str(), elfs[0].1.1), (elf, expected), "{name}");
            assert_eq!(data.registries.len(), registries, "{name}");
            let belongs = data.registries.iter().map(|(_, belongs)| *belongs);
            assert!(belongs.into_iter().all(|it| it == expected), "{name}");
        }
    }

    #[test]
    fn a_missing_directory_has_no_profiles() {
        let data = DataDirectory::open(&["/nonexistent/rocov-data"]).unwrap();
        assert!(data.device.is_empty() && data.host.is_empty());
    }
}
