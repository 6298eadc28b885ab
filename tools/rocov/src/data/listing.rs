//! The first value for all data directories that a user names: their files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{self, Display};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use rocov::store::layout::{PROFRAW, is_data_set};
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};

use super::names::{DeviceProfile, is_of_llvms_drain};
use super::registries::{MergedRegistry, Registries};
use super::walk::{DirectoryWalk, FoundFile, Scope};
use super::zeros::Completion;
use crate::support::paths::Absent;
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// All files of the directories that a user has named, and of those that belong to them.
#[derive(Debug, Default)]
pub(crate) struct DataListing {
    /// The directories, as the user has written them.
    pub(super) names: Vec<PathBuf>,
    /// Temporary directories among those that were opened. They have the runs of data sets.
    pub(super) temporary: Vec<PathBuf>,
    /// Device profiles, ordered by arch, identity and agent.
    pub(crate) device: Vec<DeviceProfile>,
    /// Profiles of host code.
    pub(crate) host: Vec<PathBuf>,
    /// Empty profiles of host code. LLVM's runtime makes the file when a process starts, and fills it at its end: a
    /// process that was killed leaves an empty one.
    pub(super) empty_host: Vec<PathBuf>,
    /// Profiles of device code that LLVM's offload runtime has written. rocov leaves them out.
    pub(super) of_offload_runtime: Vec<PathBuf>,
    /// Device profiles of LLVM's own drain.
    pub(super) of_llvm: Vec<PathBuf>,
    /// Sections of an unknown raw version, which librocov saved whole.
    pub(crate) sections: Vec<PathBuf>,
    /// Paths of kept device ELFs, by identity.
    pub(super) elf_paths: BTreeMap<String, (PathBuf, Scope)>,
    /// Paths of registries, in order.
    pub(super) registry_paths: Vec<(PathBuf, Scope)>,
    /// The directories of merged profiles that are left out, as profiles of runs are there too.
    merges: Vec<PathBuf>,
    /// Directories that the user named and that do not exist.
    pub(crate) absent: Vec<PathBuf>,
    /// Other paths that cannot be read, and the reasons.
    pub(crate) damaged: Vec<(PathBuf, Error)>,
}

impl DataListing {
    /// Returns whether `path` is a directory that `rocov run` or `rocov merge` wrote to, or has profiles directly in it.
    pub(crate) fn is_at(path: &Path) -> bool {
        let Ok(entries) = fs::read_dir(path) else {
            return false;
        };
        path.join(PROFRAW).is_dir()
            || entries.flatten().any(|entry| {
                let path = PathBuf::from(entry.file_name());
                path.extension()
                    .is_some_and(|extension| extension == "profraw")
            })
    }

    /// Lists the files of `directories`, each once. A directory that does not exist has none. A directory
    /// below them that cannot be read is a warning.
    ///
    /// # Errors
    ///
    /// Fails if one of `directories` itself cannot be read.
    pub(crate) fn open<P: AsRef<Path>>(directories: &[P], warnings: &mut Warnings) -> Result<Self> {
        let mut data = Self::collect(|walk| {
            directories
                .iter()
                .for_each(|directory| walk.named(directory.as_ref()));
            Ok(())
        })?;
        let names = directories
            .iter()
            .map(|directory| directory.as_ref().to_owned());
        data.names = names.collect();
        data.names
            .iter()
            .try_for_each(|name| refuse_data_set(name))?;
        for (path, error) in std::mem::take(&mut data.damaged) {
            if !data.names.contains(&path) {
                warnings.add(explained(&error).within("left out"));
                data.damaged.push((path, error));
            } else if path.is_file() {
                let file = path.display();
                fail!(
                    "{file} is a file";
                    "name the directory that `rocov run` wrote to; `rocov show {file}` prints what is in the file"
                );
            } else if is_missing(&error) {
                data.absent.push(path);
            } else {
                return Err(error);
            }
        }
        warnings.extend(data.left_out_merges());
        // A file may have several names.
        let mut seen = HashSet::new();
        let mut is_new = |path: &Path| {
            fs::metadata(path).map_or(true, |file| seen.insert((file.dev(), file.ino())))
        };
        data.device.sort();
        data.device.retain(|profile| is_new(&profile.path));
        data.host.sort();
        data.host.retain(|path| is_new(path));
        let of_llvm = data.host.extract_if(.., |path| is_of_llvms_drain(path));
        data.of_llvm = of_llvm.collect();
        let is_empty = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() == 0);
        let empty = data.host.extract_if(.., |path| is_empty(path));
        data.empty_host = empty.collect();
        data.sections.sort();
        data.registry_paths
            .sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(data)
    }

    /// A line about host code without counts, if there is some.
    pub(crate) fn without_host_counts(&self) -> Option<Diagnostic> {
        let first = self.empty_host.first()?;
        let processes = count(self.empty_host.len(), "process");
        Some(diagnostic!(
            "left out: the host counts of {processes}, because an empty profile remains ({}): LLVM's runtime writes \
            host counts only when a process ends by itself, but it was killed or aborted",
            first.display();
            "run it again"
        ))
    }

    /// A line for each directory of merged profiles that is left out.
    pub(crate) fn left_out_merges(&self) -> Vec<Diagnostic> {
        let lines = self.merges.iter().map(|directory| {
            let directory = directory.display();
            diagnostic!(
                "left out: {directory}: `rocov merge` wrote it, and its sums may contain the profiles of runs that \
                 are also here";
                "if they do not, name {directory} and the directories of runs one by one"
            )
        });
        lines.collect()
    }

    /// Collects the files that `walk` finds, in that order.
    ///
    /// # Errors
    ///
    /// Fails if `walk` fails.
    pub(crate) fn collect(walk: impl FnOnce(&mut DirectoryWalk<'_>) -> Result<()>) -> Result<Self> {
        let mut data = Self::default();
        let mut found = |found, scope| match found {
            FoundFile::Device(profile) => data.device.push(profile),
            FoundFile::Host(path) => data.host.push(path),
            FoundFile::OfOffloadRuntime(path) => data.of_offload_runtime.push(path),
            FoundFile::Sections(path) => data.sections.push(path),
            FoundFile::Elf(identity, path) => {
                data.elf_paths.entry(identity).or_insert((path, scope));
            }
            FoundFile::Registry(path) => data.registry_paths.push((path, scope)),
            FoundFile::Merge(directory) => data.merges.push(directory),
            FoundFile::Damaged(path, error) => data.damaged.push((path, error)),
        };
        walk(&mut DirectoryWalk::new(&mut found))?;
        Ok(data)
    }

    /// Adds the profiles of zeros and the device ELFs in a directory, as far as they are not there.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub(super) fn add_zeros(&mut self, directory: &Path) -> Result<()> {
        let added = Self::collect(|walk| {
            walk.named(directory);
            Ok(())
        })?;
        let has_zeros = |profile: &DeviceProfile| {
            let is_of_it = |zeros: &DeviceProfile| {
                zeros.is_of_zeros
                    && (&zeros.arch, &zeros.identity) == (&profile.arch, &profile.identity)
            };
            self.device.iter().any(is_of_it)
        };
        let mut new = added.device;
        new.retain(|profile| !has_zeros(profile));
        self.device.extend(new);
        self.device.sort();
        for (identity, elf) in added.elf_paths {
            self.elf_paths.entry(identity).or_insert(elf);
        }
        Ok(())
    }

    /// Sets the `names` of the directory in messages, which are those that the user gave. A directory that was opened
    /// by another name is temporary.
    pub(crate) fn called(self, names: Vec<PathBuf>) -> Self {
        let mut temporary = self.names;
        temporary.retain(|name| !names.contains(name));
        Self {
            names,
            temporary,
            ..self
        }
    }

    /// Reads the registries.
    pub(crate) fn read_registries(&self) -> Registries {
        Registries::read(self.scoped_registry_paths())
    }

    /// All registries as one, with their kernels and addresses, and with the records of `completion`.
    ///
    /// # Errors
    ///
    /// Fails if no process has left one.
    pub(crate) fn merged_registry(&self, completion: &Completion) -> Result<MergedRegistry> {
        if let Some(error) = self.not_there() {
            return Err(error);
        }
        let paths = self.registry_paths.iter().map(|(path, _)| path.as_path());
        let merged = MergedRegistry::read(paths, |path, document| completion.apply(path, document));
        if merged.unread.is_empty() && !merged.has_records() {
            fail!(
                "no kernel registry (.kernels.json) in {self}";
                "run a program with instrumented GPU code under `rocov run`, or any program with \
                 ROCOV_REGISTRY=always"
            );
        }
        Ok(merged)
    }

    /// The paths of the registries, each with whether the user named the directory that it is of.
    fn scoped_registry_paths(&self) -> impl Iterator<Item = (&Path, bool)> {
        let paths = self.registry_paths.iter();
        paths.map(|(path, scope)| (path.as_path(), *scope == Scope::Named))
    }

    /// The paths of the registries of the directories that the user named.
    pub(crate) fn named_registry_paths(&self) -> impl Iterator<Item = &Path> {
        let paths = self.scoped_registry_paths();
        paths.filter_map(|(path, is_named)| is_named.then_some(path))
    }

    /// The paths of the kept device ELFs, by identity.
    pub(crate) fn elf_paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        let elfs = self.elf_paths.iter();
        elfs.map(|(identity, (path, _))| (identity.as_str(), path.as_path()))
    }
}

/// Checks that a directory is no data set, which has tables and no profiles.
///
/// # Errors
///
/// Fails if it is one.
pub(crate) fn refuse_data_set(directory: &Path) -> Result<()> {
    if is_data_set(directory) {
        let set = directory.display();
        fail!(
            "{set} is a data set, which contains no profiles";
            "write them with `rocov export {set} --format profraw -o DIR`, and name DIR"
        );
    }
    Ok(())
}

/// Checks that there are profiles of all of `archs`, if `known` are the archs that `place` has: data
/// directories, or a report in JSON.
///
/// # Errors
///
/// Fails if one of `archs` is not known.
pub(crate) fn check_archs<'a>(
    known: impl Iterator<Item = &'a str>,
    archs: &[String],
    place: &dyn Display,
) -> Result<()> {
    let known: BTreeSet<_> = known.collect();
    if let Some(missing) = archs.iter().find(|arch| !known.contains(arch.as_str())) {
        let known: Vec<_> = known.into_iter().collect();
        fail!(
            "no profile of {missing} in {place}";
            "run the program on that GPU, or choose one of these archs: {}", known.join(", ")
        );
    }
    Ok(())
}

/// Returns whether an error says that a path does not exist.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.is::<Absent>()
}

/// The names that the user gave.
impl fmt::Display for DataListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The largest number of directories that are named.
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
#[path = "listing_tests.rs"]
mod tests;
