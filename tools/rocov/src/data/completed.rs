//! The second value for all data directories that a user names: their files, with the code that was never launched, and
//! without what older builds counted.

use std::fmt;

use anyhow::{Context, Result};
use rocov::support::diagnostic::Diagnostic;
use tempfile::TempDir;

use super::builds::Builds;
use super::listing::DataListing;
use super::registries::{MergedRegistry, Registries, Registry};
use super::zeros::{self, Completion, IN_A_DIRECTORY, ZeroPlaces};
use crate::term::warnings::Warnings;

/// The files of data directories, the registries among them read.
#[derive(Debug)]
pub(crate) struct CompletedData {
    /// The files: of the builds that are taken, and of code that was never launched.
    pub(crate) files: DataListing,
    /// The contents of the registries.
    pub(crate) registries: Registries,
    /// The records of code that was never launched, which `rocov run` has not added to the registries.
    pub(crate) completion: Completion,
    /// The directories with the profiles and device ELFs of that code.
    pub(crate) zeros: Vec<TempDir>,
    /// The builds that the profiles come from, and which of them are taken.
    pub(crate) builds: Builds,
    /// A line for each file whose older builds have profiles that were left out.
    pub(crate) older: Vec<Diagnostic>,
}

impl DataListing {
    /// Adds profiles of zeros for code that was never launched, as far as `rocov run` has not written them: no
    /// `rocov run` started the program, or it ran on another host. They are in a temporary directory.
    ///
    /// Keeps the profiles of the newest build of each program and library only, unless `all_builds` are wanted.
    ///
    /// # Errors
    ///
    /// Fails if there is no room for temporary files.
    pub(crate) fn complete(
        mut self,
        all_builds: bool,
        warnings: &mut Warnings,
    ) -> Result<CompletedData> {
        let mut registries = self.read_registries();
        let is_due = |registry: &&Registry| registry.is_named && registry.has_device_code();
        let due: Vec<_> = registries.registries.iter().filter(is_due).collect();
        if due.is_empty() {
            return Ok(self.with_builds(registries, all_builds));
        }
        let directory = TempDir::new().context("cannot create a temporary directory")?;
        let places = ZeroPlaces::Directory(directory.path(), IN_A_DIRECTORY);
        let completion = zeros::complete(&due, places, warnings);
        completion.apply_to_parts(&mut registries);
        self.add_zeros(directory.path())?;
        Ok(CompletedData {
            completion,
            zeros: vec![directory],
            ..self.with_builds(registries, all_builds)
        })
    }

    /// Does as [`DataListing::complete`], without profiles of zeros.
    pub(crate) fn complete_without_zeros(self, all_builds: bool) -> CompletedData {
        let registries = self.read_registries();
        self.with_builds(registries, all_builds)
    }

    fn with_builds(mut self, registries: Registries, all_builds: bool) -> CompletedData {
        let mut builds = Builds::from_registries(&registries);
        let mut older = Vec::new();
        if all_builds {
            builds.take_all();
        } else {
            let left_out: Vec<_> = self
                .device
                .extract_if(.., |profile| builds.is_of_older(profile))
                .collect();
            self.host.retain(|path| !builds.is_host_of_older(path));
            older = builds.about(&left_out, &self);
        }
        CompletedData {
            files: self,
            registries,
            completion: Completion::default(),
            zeros: Vec::new(),
            builds,
            older,
        }
    }
}

impl CompletedData {
    /// All registries as one, with their kernels and addresses.
    ///
    /// # Errors
    ///
    /// Fails if no process has left one.
    pub(crate) fn merged_registry(&self) -> Result<MergedRegistry> {
        self.files.merged_registry(&self.completion)
    }
}

/// The names that the user gave.
impl fmt::Display for CompletedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}
