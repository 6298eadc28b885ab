//! The third value for all data directories that a user names: profiles with coverage, and the device ELFs to report
//! them with.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use rocov::format::registry::model::AgentRecord;
use rocov::support::diagnostic::diagnostic;
use tempfile::TempDir;

use super::builds::Builds;
use super::completed::CompletedData;
use super::device_elfs::{self, KeptElfs, ObjectFile};
use super::listing::{DataListing, check_archs};
use super::names::DeviceProfile;
use super::profile_header;
use super::registries::Registries;
use super::walk::Scope;
use super::zeros::{self, Completion};
use crate::support::failure::failure;
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// The files of data directories, with the device ELFs of the code objects that have profiles.
#[derive(Debug)]
pub(crate) struct ReportableData {
    /// The files. Their device profiles have coverage.
    pub(crate) files: DataListing,
    /// The contents of the registries.
    pub(crate) registries: Registries,
    /// The records of code that was never launched, which `rocov run` has not added to the registries.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code))]
    pub(crate) completion: Completion,
    /// The directories with the profiles and device ELFs of that code.
    zeros: Vec<TempDir>,
    /// The builds that the profiles come from, and which of them are taken.
    pub(crate) builds: Builds,
    /// Device profiles of `-fprofile-generate`, which have no coverage.
    pub(super) ir_level: Vec<DeviceProfile>,
    /// Kept device ELFs, opened: those of code objects with profiles.
    pub(crate) kept: KeptElfs,
    /// Files that the user named with `--object`.
    pub(crate) named: Vec<ObjectFile>,
}

impl CompletedData {
    /// Adds what a report of `archs` needs, or of all if there are none: the device ELFs that are kept there or lie in
    /// `objects`.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing to report, or an object cannot be read.
    pub(crate) fn for_report(
        mut self,
        objects: &[PathBuf],
        archs: &[String],
        warnings: &mut Warnings,
    ) -> Result<ReportableData> {
        warnings.extend(std::mem::take(&mut self.older));
        let mut data = self.with_elfs(objects, warnings)?;
        data.add_zeros_of_objects(warnings)?;
        // Even if there is nothing else to report.
        warnings.extend(data.registries.stops_and_notes());
        data.check(archs, warnings)?;
        Ok(data)
    }

    /// Opens `objects`, and the kept device ELFs of all code objects with profiles. A damaged or refused device ELF is a
    /// warning.
    ///
    /// # Errors
    ///
    /// Fails if one of `objects` cannot be read.
    pub(crate) fn with_elfs(
        self,
        objects: &[PathBuf],
        warnings: &mut Warnings,
    ) -> Result<ReportableData> {
        let Self {
            mut files,
            registries,
            completion,
            zeros,
            builds,
            older: _,
        } = self;
        let ir_level = files
            .device
            .extract_if(.., |profile| profile_header::is_ir_level(&profile.path))
            .collect();
        let objects = objects.iter().map(|path| ObjectFile::open(path));
        let named = objects.collect::<Result<Vec<_>>>()?;
        for file in &named {
            for error in &file.damage {
                let path = file.path.display();
                warnings.add(diagnostic!("left out: a part of {path}: {error}"; "build it again"));
            }
        }
        let identities: BTreeSet<_> = files
            .device
            .iter()
            .map(|profile| profile.identity.as_str())
            .collect();
        let mut kept = KeptElfs::default();
        for (identity, path) in files.elf_paths() {
            if identities.contains(identity) {
                kept.add(path, identity);
            }
        }
        let origins = registries.origins();
        for file in &mut kept.files {
            let zeros = zeros.iter().map(TempDir::path);
            let mut temporary = zeros.chain(files.temporary.iter().map(PathBuf::as_path));
            let is_temporary = temporary.any(|directory| file.path.starts_with(directory));
            let identity = file.elfs.first().map(|elf| elf.identity.as_str());
            let origin = identity
                .filter(|_| is_temporary)
                .and_then(|identity| origins.get(identity));
            file.origin = origin.map(Path::to_owned);
        }
        let refused = kept.refused.iter();
        warnings.extend(refused.map(|error| explained(error).within("refused")));
        Ok(ReportableData {
            files,
            registries,
            completion,
            zeros,
            builds,
            ir_level,
            kept,
            named,
        })
    }
}

impl ReportableData {
    /// Counts all code with counters in the objects that the user named as never launched, as far as it has no
    /// profile: on the archs of the profiles. An object that was rebuilt since a process loaded it, or that could
    /// have been, has none.
    ///
    /// # Errors
    ///
    /// Fails if an object cannot be read.
    fn add_zeros_of_objects(&mut self, warnings: &mut Warnings) -> Result<()> {
        if self.named.is_empty() || self.files.device.is_empty() {
            return Ok(());
        }
        let elfs = self.kept.files.iter().chain(&self.named);
        let known: BTreeSet<_> = elfs
            .flat_map(|file| &file.elfs)
            .map(|elf| elf.identity.as_str())
            .collect();
        let registries = &self.registries;
        let named = || {
            registries
                .processes()
                .filter(|(registry, _)| registry.is_named)
        };
        // Loaded code without a profile is lost, and not zero.
        let mut counted: BTreeSet<_> = named().flat_map(|(_, process)| process.loaded()).collect();
        // Their profiles may be of another build of an object.
        let mut has_strangers = BTreeSet::new();
        for profile in &self.files.device {
            counted.insert((&*profile.arch, &*profile.identity));
            if !known.contains(&*profile.identity) {
                has_strangers.insert(&*profile.arch);
            }
        }
        let mut objects: Vec<_> = self.named.iter().map(|file| file.path.as_path()).collect();
        objects.retain(|path| !self.builds.has_others_only(path));
        let is_wanted = |agent: &AgentRecord, identity: &str| {
            let arch = agent.name.as_str();
            !counted.contains(&(arch, identity)) && !has_strangers.contains(arch)
        };
        let archs: BTreeSet<_> = self
            .files
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
        let directory = TempDir::new().context("cannot create a temporary directory")?;
        zeros::for_objects(&objects, &agents, is_wanted, directory.path(), warnings)?;
        self.files.add_zeros(directory.path())?;
        self.zeros.push(directory);
        Ok(())
    }

    /// Checks that there are profiles with coverage, and some of each of `archs`.
    ///
    /// # Errors
    ///
    /// Fails if there are none.
    fn check(&self, archs: &[String], warnings: &mut Warnings) -> Result<()> {
        if let Some(error) = self.files.not_there() {
            return Err(error);
        }
        if !self.files.device.is_empty() {
            check_archs(
                self.files.device.iter().map(|profile| &*profile.arch),
                archs,
                self,
            )?;
        }
        for file in &self.files.sections {
            let file = file.display();
            warnings.add(diagnostic!(
                "left out: {file}: sections of an unknown raw version, saved unchanged";
                "see `rocov show {file}`"
            ));
        }
        if !self.files.device.is_empty() {
            warnings.extend(
                self.files
                    .about_llvms()
                    .map(|message| message.within("left out")),
            );
        }
        match self.without_coverage() {
            Some(error) if self.files.device.is_empty() => Err(error),
            Some(error) => {
                warnings.add(explained(&error).within("left out"));
                Ok(())
            }
            None if self.files.device.is_empty() => Err(self.nothing_to_report()),
            None => Ok(()),
        }
    }

    /// Opens the kept device ELFs of the directories that the user named, except those of the code objects
    /// `known` and of older builds. Damaged ones are left out.
    pub(super) fn other_elfs(&self, known: &BTreeSet<&str>) -> Vec<ObjectFile> {
        let others = self
            .files
            .elf_paths
            .iter()
            .filter(|(identity, (_, scope))| {
                *scope == Scope::Named
                    && !known.contains(identity.as_str())
                    && !self.builds.has_only_older(identity)
            });
        others
            .filter_map(|(identity, (path, _))| device_elfs::open_kept(path, identity).ok())
            .collect()
    }

    /// An error for profiles without coverage, with what to do about them.
    fn without_coverage(&self) -> Option<Error> {
        (!self.ir_level.is_empty()).then(|| {
            failure!(
                "{} from -fprofile-generate in {self}: for optimization, without coverage",
                count(self.ir_level.len(), "profile");
                "optimize with the flags that `rocov merge {self} --pgo OUT` prints, or compile with the flags that \
                `rocov flags` prints"
            )
        })
    }
}

/// The names that the user gave.
impl fmt::Display for ReportableData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}
