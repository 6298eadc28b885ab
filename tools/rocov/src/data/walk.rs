//! Walks data directories: all files below a directory that a user names, and those next to it that
//! belong to it.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Error;
use rocov::store::ProfileNameParts;
use rocov::store::layout::{OBJECTS, PROFRAW, REGISTRIES, SECTIONS, normal, sides};

use super::names::{DeviceProfile, FileKind, POOLED_HOST, is_merged_registry, is_searched};
use crate::support::paths::Absent;

/// One file, as soon as it is found.
#[derive(Debug)]
pub(crate) enum FoundFile {
    /// The profile of a code object.
    Device(DeviceProfile),
    /// A profile of host code.
    Host(PathBuf),
    /// A profile of device code that LLVM's offload runtime has written.
    OfOffloadRuntime(PathBuf),
    /// A device ELF that was kept, and its identity.
    Elf(String, PathBuf),
    /// The registry of a process's kernels.
    Registry(PathBuf),
    /// Sections that librocov saved whole.
    Sections(PathBuf),
    /// The directory of profiles that `rocov merge` has added up, which are left out: profiles of runs lie under the
    /// named directory too, and may be in the sums.
    Merge(PathBuf),
    /// A path that cannot be read, and the reason, which has the path.
    Damaged(PathBuf, Error),
}

impl FoundFile {
    /// The file or directory.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Device(profile) => &profile.path,
            Self::Host(path)
            | Self::OfOffloadRuntime(path)
            | Self::Elf(_, path)
            | Self::Registry(path)
            | Self::Sections(path)
            | Self::Merge(path)
            | Self::Damaged(path, _) => path,
        }
    }

    /// Returns whether it has counts of a run.
    fn is_of_run(&self) -> bool {
        match self {
            Self::Device(profile) => !profile.is_merged() && !profile.is_of_zeros,
            Self::Host(path) => !path.ends_with(POOLED_HOST),
            _ => false,
        }
    }

    /// The directory of the profiles or registries of a merge, if this is one of them.
    fn merge(&self) -> Option<&Path> {
        let path = match self {
            Self::Device(profile) if profile.is_merged() => &profile.path,
            Self::Host(path) if path.ends_with(POOLED_HOST) => path,
            Self::Registry(path) if is_merged_registry(path) => path,
            _ => return None,
        };
        // The folder of profiles or registries lies in that of the merge.
        let folders = path.ancestors().skip(1);
        let folder = folders.into_iter().find(|folder| {
            let name = folder.file_name().unwrap_or_default();
            name == PROFRAW || name == REGISTRIES
        });
        folder.and_then(Path::parent).or(path.parent())
    }
}

/// The relation of a file to the directories that the user has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// It is in a directory that the user has named, or belongs to one.
    Named,
    /// It is of a whole data directory, of which the user has named a part: a device ELF or a registry.
    Beside,
}

/// Walks over directories. The order is the same every time, and each directory is entered once: links
/// can make a circle.
pub(crate) struct DirectoryWalk<'a> {
    found: &'a mut dyn FnMut(FoundFile, Scope),
    /// Device and inode number.
    entered: HashSet<(u64, u64)>,
    scope: Scope,
    /// Device ELFs and registries that were found.
    kept: usize,
    /// The files under a directory that the user has named, until all of them are known.
    pending: Option<Vec<(FoundFile, Scope)>>,
}

impl<'a> DirectoryWalk<'a> {
    /// Gives every file to `found`.
    pub(crate) fn new(found: &'a mut dyn FnMut(FoundFile, Scope)) -> Self {
        Self {
            found,
            entered: HashSet::new(),
            scope: Scope::Named,
            kept: 0,
            pending: None,
        }
    }

    /// Walks a directory that the user has named, and the directories that belong to it: its sides, or
    /// the rest of the data directory if it has the profiles of one.
    ///
    /// Merged profiles are left out if there are profiles of runs too: they would count twice.
    pub(crate) fn named(&mut self, directory: &Path) {
        let before = self.kept;
        self.pending = Some(Vec::new());
        self.directory(directory);
        self.give_pending();
        let whole = whole(directory);
        // Paths keep the form that the user wrote, unless it ends in `..` or `.`.
        let written = directory.file_name().map_or(&*whole, |_| directory);
        sides_of(written)
            .iter()
            .for_each(|side| self.if_there(side));
        if written.file_name() == Some(OsStr::new(PROFRAW)) {
            self.rest_of(written);
        }
        if self.kept == before {
            self.above(&whole);
        }
    }

    /// Finds the device ELFs and registries that belong to a file that the user has named by itself.
    pub(crate) fn beside(&mut self, file: &Path) {
        let whole = whole(file);
        if let Some(parent) = whole.parent() {
            self.scope = Scope::Beside;
            self.if_there(&parent.join(OBJECTS));
            self.above(&whole);
            self.scope = Scope::Named;
        }
    }

    /// Adds a file, by its name. Returns whether the name is known.
    pub(crate) fn add_file(&mut self, path: PathBuf) -> bool {
        let found = match FileKind::from_path(&path) {
            FileKind::Device(profile) => FoundFile::Device(profile),
            FileKind::Host | FileKind::PooledHost => FoundFile::Host(path),
            FileKind::OfOffloadRuntime => FoundFile::OfOffloadRuntime(path),
            FileKind::Sections => FoundFile::Sections(path),
            FileKind::Registry => FoundFile::Registry(path),
            FileKind::Elf(identity) => FoundFile::Elf(identity, path),
            // The device ELF next to it stands for it.
            FileKind::Ptx(_) | FileKind::None => return false,
        };
        self.kept += usize::from(matches!(found, FoundFile::Elf(..) | FoundFile::Registry(_)));
        self.give(found);
        true
    }

    fn give(&mut self, found: FoundFile) {
        match &mut self.pending {
            Some(pending) => pending.push((found, self.scope)),
            None => (self.found)(found, self.scope),
        }
    }

    /// Gives the files under a directory that the user has named: those of runs, or else those of merges.
    fn give_pending(&mut self) {
        let pending = self.pending.take().unwrap_or_default();
        let has_runs = pending.iter().any(|(found, _)| found.is_of_run());
        let mut merges = BTreeSet::new();
        for (found, scope) in pending {
            match found.merge() {
                Some(directory) if has_runs => _ = merges.insert(directory.to_owned()),
                _ => (self.found)(found, scope),
            }
        }
        for merge in merges {
            (self.found)(FoundFile::Merge(merge), self.scope);
        }
    }

    /// Finds the files that belong to a part of a data directory, such as a label, or to a directory of
    /// a pattern with a specifier. They are next to one of the directories above. The nearest counts.
    fn above(&mut self, path: &Path) {
        let before = std::mem::replace(&mut self.scope, Scope::Beside);
        for directory in path.ancestors().skip(1) {
            let sides = sides_of(directory);
            if directory.file_name() == Some(OsStr::new(PROFRAW)) {
                self.rest_of(directory);
                break;
            } else if let Some(side) = sides.iter().find(|side| side.is_dir()) {
                self.if_there(&side.join(OBJECTS));
                let registries = side.join(REGISTRIES);
                let below = path.strip_prefix(directory).unwrap_or(Path::new(""));
                let own = below.ancestors().map(|below| registries.join(below));
                let own = own.into_iter().find(|directory| directory.is_dir());
                self.if_there(&own.unwrap_or(registries));
                break;
            }
        }
        self.scope = before;
    }

    /// Walks the other folders of the data directory whose folder `profraw` is `profiles`.
    fn rest_of(&mut self, profiles: &Path) {
        for folder in [OBJECTS, REGISTRIES, SECTIONS] {
            self.if_there(&profiles.with_file_name(folder));
        }
    }

    fn if_there(&mut self, directory: &Path) {
        if directory.is_dir() {
            self.directory(directory);
        }
    }

    /// Walks a directory and those below it.
    fn directory(&mut self, directory: &Path) {
        match fs::metadata(directory) {
            Ok(metadata) if self.entered.insert((metadata.dev(), metadata.ino())) => {}
            Ok(_) => return,
            Err(error) => return self.unreadable(directory, error),
        }
        let entries = fs::read_dir(directory).and_then(|entries| {
            entries
                .map(|entry| {
                    entry.and_then(|entry| Ok((entry.file_type()?, Name::from(entry.file_name()))))
                })
                .collect::<io::Result<Vec<_>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(directory, error),
        };
        entries.sort_unstable_by(|(_, a), (_, b)| a.process_first().cmp(&b.process_first()));
        for (kind, Name { name, .. }) in entries {
            let path = directory.join(&name);
            // A link counts as its target; a broken one does not matter before it is read.
            let is_directory = kind.is_dir() || kind.is_symlink() && path.is_dir();
            if !is_directory {
                // Opening a pipe would wait for somebody to write into it.
                if kind.is_file() || kind.is_symlink() {
                    self.add_file(path);
                }
            } else if is_searched(&name, directory) {
                self.directory(&path);
            }
        }
    }

    /// Reports a path that cannot be read, with the error of the system.
    pub(crate) fn unreadable(&mut self, path: &Path, error: io::Error) {
        let error = match Absent::is(&error) {
            true => Absent::new(path, "check the path").into(),
            false => Error::from(error).context(format!("cannot read {}", path.display())),
        };
        self.damaged(path, error);
    }

    /// Reports a path that cannot be used.
    pub(crate) fn damaged(&mut self, path: &Path, error: Error) {
        self.give(FoundFile::Damaged(path.to_owned(), error));
    }

    /// Adds a profile of host code, whatever its name.
    pub(crate) fn host(&mut self, path: PathBuf) {
        self.give(FoundFile::Host(path));
    }
}

/// `path` with all directories above it.
fn whole(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    normal(&absolute)
}

/// The possible sides of a directory: next to it, and next to its target if it is a link.
fn sides_of(directory: &Path) -> Vec<PathBuf> {
    let real = directory.canonicalize().ok();
    let real = real.filter(|real| real != directory);
    let mut all = Vec::from(sides(directory));
    all.extend(real.iter().flat_map(|real| sides(real)));
    all
}

/// The name of a file, parsed once for many comparisons.
struct Name {
    name: OsString,
    /// The offset of BASE in `ARCH.IDENTITY.AGENT.BASE`; 0 in other names.
    base: usize,
}

impl Name {
    /// The key that orders profiles by BASE, so that neighbours are of different code objects: they are
    /// added at the same time, and those of one code object have to wait for each other.
    fn process_first(&self) -> (&[u8], &[u8]) {
        let name = self.name.as_bytes();
        (&name[self.base..], name)
    }
}

impl From<OsString> for Name {
    fn from(name: OsString) -> Self {
        let parts = name.to_str().and_then(ProfileNameParts::parse);
        let base = parts.map_or(0, |parts| name.len() - parts.base.len());
        Self { name, base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_of_different_code_objects() {
        let mut names = [
            "gfx90a.aa.0.1.profraw",
            "gfx90a.aa.0.2.profraw",
            "gfx90a.bb.0.1.profraw",
            "1.profraw",
        ]
        .map(|name| Name::from(OsString::from(name)));
        names.sort_by(|a, b| a.process_first().cmp(&b.process_first()));
        assert_eq!(
            names.map(|name| name.name),
            [
                "1.profraw",
                "gfx90a.aa.0.1.profraw",
                "gfx90a.bb.0.1.profraw",
                "gfx90a.aa.0.2.profraw",
            ]
        );
    }
}
