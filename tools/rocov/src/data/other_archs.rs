//! The architectures that programs were compiled for, and that none of their code ran on.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use rocov::format::registry::model::{CodeFileRecord, CodeObjectRecord};
use tempfile::TempDir;

use super::components::Components;
use super::{CompletedData, DataListing, ReportableData, zeros};
use crate::term::warnings::Warnings;

/// The code with counters for these architectures.
pub(crate) struct OtherArchs {
    /// Its profiles of zeros and its device ELFs, in a temporary directory.
    pub(crate) data: ReportableData,
    /// Its records, as in a registry.
    pub(crate) code_objects: Vec<CodeObjectRecord>,
}

impl ReportableData {
    /// Looks for code with counters in the programs and libraries that processes had, in the components and in the named
    /// objects: that of `archs`, or of all if there are none, which no process loaded code for. `None` if there is none. A
    /// program that is not there, or was built again, has none.
    ///
    /// # Errors
    ///
    /// Fails if there is no room for temporary files.
    pub(crate) fn other_archs(
        &self,
        archs: &[String],
        components: &Components,
        warnings: &mut Warnings,
    ) -> Result<Option<OtherArchs>> {
        let registries = &self.registries;
        let named = || {
            registries
                .processes()
                .filter(|(registry, _)| registry.is_named)
        };
        let mut ran: BTreeSet<_> = named()
            .flat_map(|(_, process)| process.loaded())
            .map(|(arch, _)| arch)
            .collect();
        ran.extend(
            self.files
                .device
                .iter()
                .map(|profile| profile.arch.as_str()),
        );
        let of_build = |path: &str, build: Option<&String>| CodeFileRecord {
            path: path.to_owned(),
            build: build.cloned(),
            modified: None,
        };
        let mut files = BTreeSet::new();
        for (_, process) in named() {
            let never_loaded = process.never_loaded.iter();
            let never_loaded =
                never_loaded.map(|never| of_build(&never.file, never.build.as_ref()));
            let hosts = process.hosts.iter();
            let hosts = hosts.map(|host| of_build(&host.path, Some(&host.build)));
            files.extend(hosts.chain(never_loaded).filter(|file| {
                let build = file.build.as_ref();
                build.is_none_or(|build| !self.builds.is_older(&file.path, build))
            }));
            let left = process.device_code.iter().flat_map(|code| &code.files);
            files.extend(left.cloned());
        }
        let objects = self.named.iter().map(|file| &file.path);
        let given = objects.chain(components.iter().map(|component| &component.path));
        files.extend(given.map(|path| of_build(&path.to_string_lossy(), None)));
        let is_wanted = |arch: &str, identity: &str| {
            (archs.is_empty() || archs.iter().any(|wanted| wanted == arch))
                && components.have(identity)
        };
        let directory = TempDir::new().context("cannot create a temporary directory")?;
        let code_objects =
            zeros::from_other_archs(&files, &ran, is_wanted, directory.path(), warnings);
        if code_objects.is_empty() {
            return Ok(None);
        }
        let listing = DataListing::open(&[directory.path()], warnings)?;
        let data = CompletedData {
            zeros: vec![directory],
            ..listing.complete_without_zeros(false)
        };
        Ok(Some(OtherArchs {
            data: data.with_elfs(&[], warnings)?,
            code_objects,
        }))
    }
}
