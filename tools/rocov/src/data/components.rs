//! Components: the code objects that came from one library or executable.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};

use super::Origins;
use super::device_elfs::ObjectFile;

/// The components that a report is of; none for all.
#[derive(Default)]
pub(crate) struct Components(Vec<Component>);

/// A library or executable.
pub(crate) struct Component {
    /// The path as the user wrote it.
    pub(crate) path: PathBuf,
    /// Its code objects.
    pub(crate) identities: BTreeSet<String>,
}

impl Components {
    /// Finds the code objects that were loaded from these files, and those that are in them, which
    /// `origins` then knows.
    ///
    /// # Errors
    ///
    /// Fails if there are none of one of them.
    pub(crate) fn from_files(files: &[PathBuf], origins: &mut Origins) -> Result<Self> {
        let components: Vec<_> = files
            .iter()
            .map(|path| Component::from_file(path, origins))
            .collect::<Result<_>>()?;
        for component in &components {
            for identity in &component.identities {
                origins.learn(identity, &component.path);
            }
        }
        Ok(Self(components))
    }

    /// Returns whether all code objects are selected.
    pub(crate) fn are_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a code object is in one of them.
    pub(crate) fn have(&self, identity: &str) -> bool {
        self.are_all()
            || self
                .0
                .iter()
                .any(|component| component.identities.contains(identity))
    }

    /// One line for each that has no code object which `is_reported`.
    pub(crate) fn absent(&self, is_reported: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
        let is_absent = |component: &&Component| {
            !component
                .identities
                .iter()
                .any(|identity| is_reported(identity))
        };
        let absent = self.0.iter().filter(is_absent).map(|component| {
            diagnostic!(
                "component {}: no code object of it is reported: it is not instrumented, was not loaded on these \
                 archs, or was rebuilt since",
                component.path.display();
                "compile it with the flags that `rocov flags` prints, and run it again"
            )
        });
        absent.collect()
    }

    /// Iterates over all components.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Component> {
        self.0.iter()
    }
}

impl Component {
    fn from_file(path: &Path, origins: &Origins) -> Result<Self> {
        let mut identities: BTreeSet<_> = origins.from(path).map(str::to_owned).collect();
        if identities.is_empty() && !path.exists() {
            // On another machine the library was elsewhere.
            identities.extend(origins.named(path).map(str::to_owned));
        }
        match ObjectFile::open(path) {
            Ok(file) => {
                identities.extend(file.elfs.into_iter().map(|elf| elf.identity.to_string()))
            }
            // It may have been on another machine.
            Err(error) if identities.is_empty() => {
                return Err(error).with_context(|| {
                    let path = path.display();
                    format!("no code object was loaded from {path}, and it cannot be read")
                });
            }
            Err(_) => {}
        }
        if identities.is_empty() {
            fail!(
                "no device code in {}, and none was loaded from it", path.display();
                "name a program or library with kernels"
            );
        }
        Ok(Self {
            path: path.to_path_buf(),
            identities,
        })
    }
}
