//! One value for all data directories that a user names.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{self, Display};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use rocov::format::registry::Grouped;
use rocov::format::registry::model::{AgentRecord, Document};
use rocov::store::layout::PROFRAW;
use tempfile::TempDir;

use crate::data::builds::Builds;
use crate::data::device_elfs::{self, KeptElfs, ObjectFile};
use crate::data::names::{DeviceProfile, is_data_set, is_of_llvms_drain};
use crate::data::profile_header;
use crate::data::registries::{MergedRegistry, Origins, Registries, Registry};
use crate::data::walk::{DirectoryWalk, FoundFile, Scope};
use crate::data::zeros::{self, Completion, IN_A_DIRECTORY, ZeroPlaces};
use crate::support::mmap;
use crate::support::paths::Absent;
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// All files of the directories that a user has named, and of those that belong to them.
#[derive(Debug, Default)]
pub(crate) struct DataDirectory {
    /// The directories, as the user has written them.
    pub(super) names: Vec<PathBuf>,
    /// Device profiles with coverage, ordered by arch, identity and agent.
    pub(crate) device: Vec<DeviceProfile>,
    /// Device profiles of `-fprofile-generate`, which have no coverage. They are among the others until
    /// [`DataDirectory::find_elfs`].
    pub(crate) ir_level: Vec<DeviceProfile>,
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
    /// Kept device ELFs, opened: those of code objects with profiles.
    pub(crate) kept: KeptElfs,
    /// Files that the user named with `--object`.
    pub(crate) named: Vec<ObjectFile>,
    /// Paths of registries, in order.
    pub(super) registry_paths: Vec<(PathBuf, Scope)>,
    /// The directories of merged profiles that are left out, as profiles of runs are there too.
    merges: Vec<PathBuf>,
    /// Directories that the user named and that do not exist.
    pub(crate) absent: Vec<PathBuf>,
    /// Other paths that cannot be read, and the reasons.
    pub(crate) damaged: Vec<(PathBuf, Error)>,
    /// The contents of the registries, read at the first use.
    pub(super) registries: OnceCell<Registries>,
    /// The records of code that was never launched, which `rocov run` has not added to the registries.
    completion: Completion,
    /// The directories with the profiles and device ELFs of that code.
    pub(crate) zeros: Vec<TempDir>,
    /// Temporary directories among those that were opened. They have the runs of data sets.
    temporary: Vec<PathBuf>,
    /// The builds that the profiles come from, and which of them are taken.
    pub(crate) builds: Builds,
}

impl DataDirectory {
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
                warnings.add(format!("left out: {}", explained(&error)));
                data.damaged.push((path, error));
            } else if path.is_file() {
                bail!(
                    "{0} is a file: give the directory that `rocov run` wrote to; `rocov show {0}` prints \
                     what is in the file",
                    path.display()
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

    /// Opens directories for a report of `archs`, or of all if there are none: without what older builds
    /// counted unless `all_builds` are wanted, and with the device ELFs that are kept there or lie in
    /// `objects`.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing to report, or a directory or object cannot be read.
    pub(crate) fn for_report<P: AsRef<Path>>(
        directories: &[P],
        all_builds: bool,
        objects: &[PathBuf],
        archs: &[String],
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let names: Vec<_> = directories
            .iter()
            .map(|directory| directory.as_ref().to_owned())
            .collect();
        Self::for_report_of(&names, &names, all_builds, objects, archs, warnings)
    }

    /// Opens directories for a report as [`DataDirectory::for_report`] does. Messages call them by `names`. A directory
    /// that has another name is temporary.
    ///
    /// # Errors
    ///
    /// Fails if [`DataDirectory::for_report`] does.
    pub(crate) fn for_report_of(
        directories: &[PathBuf],
        names: &[PathBuf],
        all_builds: bool,
        objects: &[PathBuf],
        archs: &[String],
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let mut data = Self::open(directories, warnings)?.called(names.to_vec());
        let others = directories
            .iter()
            .filter(|directory| !names.contains(directory));
        data.temporary = others.cloned().collect();
        data.add_zeros(warnings)?;
        warnings.extend(data.take_builds(all_builds));
        data.find_elfs(objects, warnings)?;
        data.add_zeros_of_objects(warnings)?;
        // Even if there is nothing else to report.
        warnings.extend(data.registries().stops_and_notes());
        data.check_reportable(archs, warnings)?;
        Ok(data)
    }

    /// A line about host code without counts, if there is some.
    pub(crate) fn without_host_counts(&self) -> Option<String> {
        let first = self.empty_host.first()?;
        let processes = count(self.empty_host.len(), "process");
        Some(format!(
            "left out: the host counts of {processes}, because an empty profile is left ({}): LLVM's runtime writes \
             them when a process ends by itself, and it was killed or aborted: run it again",
            first.display()
        ))
    }

    /// A line for each directory of merged profiles that is left out.
    pub(crate) fn left_out_merges(&self) -> Vec<String> {
        let lines = self.merges.iter().map(|directory| {
            format!(
                "left out: {0}: `rocov merge` wrote it, and its sums may contain the profiles of runs that are also \
                 here: if they do not, name {0} and the directories of runs one by one",
                directory.display()
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

    /// Sets the `names` of the directory in messages, which are those that the user gave.
    pub(crate) fn called(self, names: Vec<PathBuf>) -> Self {
        Self { names, ..self }
    }

    /// Adds profiles of zeros for code that was never launched, as far as `rocov run` has not written them: no
    /// `rocov run` started the program, or it ran on another host. They are in a temporary directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no room for temporary files.
    pub(crate) fn add_zeros(&mut self, warnings: &mut Warnings) -> Result<()> {
        self.registries();
        let Some(Registries { registries, .. }) = self.registries.get_mut() else {
            return Ok(());
        };
        let is_due = |registry: &&Registry| registry.is_named && registry.has_device_code();
        let due: Vec<_> = registries.iter().filter(is_due).collect();
        if due.is_empty() {
            return Ok(());
        }
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        let places = ZeroPlaces::Directory(directory.path(), IN_A_DIRECTORY);
        let completion = zeros::complete(&due, places, warnings);
        for registry in registries {
            if let Some(completed) = completion.registries.get(&registry.path) {
                completed.apply_to_part(registry);
            }
        }
        self.completion = completion;
        self.adopt(directory)
    }

    /// Counts all code with counters in the objects that the user named as never launched, as far as it has no
    /// profile: on the archs of the profiles. An object that was rebuilt since a process loaded it, or that could
    /// have been, has none.
    ///
    /// # Errors
    ///
    /// Fails if an object cannot be read.
    fn add_zeros_of_objects(&mut self, warnings: &mut Warnings) -> Result<()> {
        if self.named.is_empty() || self.device.is_empty() {
            return Ok(());
        }
        let elfs = self.kept.files.iter().chain(&self.named);
        let known: BTreeSet<_> = elfs
            .flat_map(|file| &file.elfs)
            .map(|elf| elf.identity.as_str())
            .collect();
        let registries = self.registries();
        let named = || {
            registries
                .processes()
                .filter(|(registry, _)| registry.is_named)
        };
        // Loaded code without a profile is lost, and not zero.
        let mut counted: BTreeSet<_> = named().flat_map(|(_, process)| process.loaded()).collect();
        // Their profiles may be of another build of an object.
        let mut has_strangers = BTreeSet::new();
        for profile in &self.device {
            counted.insert((&*profile.arch, &*profile.identity));
            if !known.contains(&*profile.identity) {
                has_strangers.insert(&*profile.arch);
            }
        }
        let builds = Builds::from_registries(registries);
        let mut objects: Vec<_> = self.named.iter().map(|file| file.path.as_path()).collect();
        objects.retain(|path| !builds.has_others_only(path));
        let is_wanted = |agent: &AgentRecord, identity: &str| {
            let arch = agent.name.as_str();
            !counted.contains(&(arch, identity)) && !has_strangers.contains(arch)
        };
        let archs: BTreeSet<_> = self
            .device
            .iter()
            .map(|profile| profile.arch.as_str())
            .collect();
        let mut agents: Vec<_> = named()
            .flat_map(|(_, process)| &process.agents)
            .filter(|agent| archs.contains(agent.name.as_str()))
            .cloned()
            .collect();
        for arch in archs {
            if !agents.iter().any(|agent| agent.name == arch) {
                agents.push(zeros::agent_of(arch));
            }
        }
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        zeros::for_objects(&objects, &agents, is_wanted, directory.path(), warnings)?;
        self.adopt(directory)
    }

    /// Takes profiles of zeros and device ELFs from a temporary directory, as far as they are not there, and keeps
    /// the directory.
    fn adopt(&mut self, directory: TempDir) -> Result<()> {
        let added = Self::collect(|walk| {
            walk.named(directory.path());
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
        self.zeros.push(directory);
        Ok(())
    }

    /// Completes the registry that was read from `path`.
    pub(crate) fn complete(&self, path: &Path, document: &mut Document) {
        if let Some(completed) = self.completion.registries.get(path) {
            completed.apply(document);
        }
    }

    /// Adds the registry in the file at `path` to others.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn add_registry(&self, path: &Path, merged: &mut Grouped) -> Result<()> {
        let text = mmap::map(path)?;
        let added = match self.is_incomplete(path) {
            false => merged.add(&text),
            true => Document::parse(&text).and_then(|mut document| {
                self.complete(path, &mut document);
                merged.add(&document.to_json())
            }),
        };
        added.with_context(|| format!("cannot merge {}", path.display()))
    }

    /// Returns whether the registry at `path` lacks records of code that was never launched.
    pub(crate) fn is_incomplete(&self, path: &Path) -> bool {
        self.completion.registries.contains_key(path)
    }

    /// Keeps the profiles of the newest build of each program and library only, unless `all` are wanted.
    /// Returns a line for each file that has profiles of older builds.
    pub(crate) fn take_builds(&mut self, all: bool) -> Vec<String> {
        self.builds = Builds::from_registries(self.registries());
        if all {
            self.builds.take_all();
            return Vec::new();
        }
        let builds = &self.builds;
        let left_out: Vec<_> = self
            .device
            .extract_if(.., |profile| builds.is_of_older(profile))
            .collect();
        self.host.retain(|path| !builds.is_host_of_older(path));
        builds.about(&left_out, self)
    }

    /// Opens `objects`, and the kept device ELFs of all code objects with profiles. Profiles without
    /// coverage go to `ir_level`. A damaged or refused device ELF is a warning.
    ///
    /// # Errors
    ///
    /// Fails if one of `objects` cannot be read.
    pub(crate) fn find_elfs(&mut self, objects: &[PathBuf], warnings: &mut Warnings) -> Result<()> {
        let ir_level = self
            .device
            .extract_if(.., |profile| profile_header::is_ir_level(&profile.path));
        self.ir_level = ir_level.collect();
        let objects = objects.iter().map(|path| ObjectFile::open(path));
        self.named = objects.collect::<Result<_>>()?;
        for file in &self.named {
            for error in &file.damage {
                let path = file.path.display();
                warnings.add(format!(
                    "left out: a part of {path}: {error}: build it again"
                ));
            }
        }
        let identities: BTreeSet<_> = self
            .device
            .iter()
            .map(|profile| profile.identity.as_str())
            .collect();
        for (identity, (path, _)) in &self.elf_paths {
            if identities.contains(identity.as_str()) {
                self.kept.add(path, identity);
            }
        }
        let origins = self.origins();
        for file in &mut self.kept.files {
            let zeros = self.zeros.iter().map(TempDir::path);
            let mut temporary = zeros.chain(self.temporary.iter().map(PathBuf::as_path));
            let is_temporary = temporary.any(|directory| file.path.starts_with(directory));
            let identity = file.elfs.first().map(|elf| elf.identity.as_str());
            let origin = identity
                .filter(|_| is_temporary)
                .and_then(|identity| origins.get(identity));
            file.origin = origin.map(Path::to_owned);
        }
        let refused = self.kept.refused.iter();
        warnings.extend(refused.map(|error| format!("refused: {}", explained(error))));
        Ok(())
    }

    /// Checks that there are profiles with coverage, and some of each of `archs`.
    ///
    /// # Errors
    ///
    /// Fails if there are none.
    fn check_reportable(&self, archs: &[String], warnings: &mut Warnings) -> Result<()> {
        if let Some(error) = self.not_there() {
            return Err(error);
        }
        if !self.device.is_empty() {
            check_archs(
                self.device.iter().map(|profile| &*profile.arch),
                archs,
                self,
            )?;
        }
        for file in &self.sections {
            warnings.add(format!(
                "left out: {0}: sections of an unknown raw version, saved unchanged: see `rocov show {0}`",
                file.display()
            ));
        }
        if !self.device.is_empty() {
            warnings.extend(self.about_llvms().map(|line| format!("left out: {line}")));
        }
        match self.without_coverage() {
            Some(error) if self.device.is_empty() => Err(error),
            Some(error) => {
                warnings.add(format!("left out: {error}"));
                Ok(())
            }
            None if self.device.is_empty() => Err(self.nothing_to_report()),
            None => Ok(()),
        }
    }

    /// The registries that can be read. They are read at the first call.
    pub(crate) fn registries(&self) -> &Registries {
        self.registries
            .get_or_init(|| Registries::read(self.scoped_registry_paths()))
    }

    /// All registries as one, with their kernels and addresses.
    ///
    /// # Errors
    ///
    /// Fails if no process has left one.
    pub(crate) fn merged_registry(&self) -> Result<MergedRegistry> {
        if let Some(error) = self.not_there() {
            return Err(error);
        }
        let (registries, merged) =
            Registries::read_whole(self.scoped_registry_paths(), |path, document| {
                self.complete(path, document);
            });
        let has_records = registries
            .processes()
            .any(|(_, process)| !process.is_of_notes());
        if merged.unread.is_empty() && !has_records {
            bail!(
                "no kernel registry (.kernels.json) in {self}: run a program with instrumented GPU code under `rocov \
                 run`, or any program with ROCOV_REGISTRY=always"
            );
        }
        // It has read the same files, if there is one already.
        let _ = self.registries.set(registries);
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

    /// Opens the kept device ELFs of the directories that the user named, except those of the code objects
    /// `known` and of older builds. Damaged ones are left out.
    pub(super) fn other_elfs(&self, known: &BTreeSet<&str>) -> Vec<ObjectFile> {
        let others = self.elf_paths.iter().filter(|(identity, (_, scope))| {
            *scope == Scope::Named
                && !known.contains(identity.as_str())
                && !self.builds.has_only_older(identity)
        });
        others
            .filter_map(|(identity, (path, _))| device_elfs::open_kept(path, identity).ok())
            .collect()
    }

    /// The files that code objects were loaded from.
    pub(crate) fn origins(&self) -> Origins {
        self.registries().origins()
    }

    /// An error for profiles without coverage, with what to do about them.
    fn without_coverage(&self) -> Option<Error> {
        (!self.ir_level.is_empty()).then(|| {
            anyhow!(
                "{} of -fprofile-generate in {self}: for optimization, without coverage: optimize with \
                 what `rocov merge {self} --pgo OUT` prints, or compile with the flags that `rocov flags` prints",
                count(self.ir_level.len(), "profile"),
            )
        })
    }
}

/// Checks that a directory is no data set, which has tables and no profiles.
///
/// # Errors
///
/// Fails if it is one.
pub(crate) fn refuse_data_set(directory: &Path) -> Result<()> {
    if is_data_set(directory) {
        bail!(
            "{0} is a data set, without profiles: write them with `rocov export {0} --format profraw -o DIR`, and \
             give DIR",
            directory.display()
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
        bail!(
            "no profile of {missing} in {place}: run the program there, or choose one of these archs: {}",
            known.join(", ")
        );
    }
    Ok(())
}

/// Returns whether an error says that a path does not exist.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.is::<Absent>()
}

/// The names that the user gave.
impl fmt::Display for DataDirectory {
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
#[path = "data_directory_tests.rs"]
mod tests;
