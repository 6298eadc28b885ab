//! Which file a code object was loaded from, as the kernel registries of a data directory tell.

use super::told::Told;
use rocov::codeobject::FileUri;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of code objects, by identity. What was handed over in memory has none.
#[derive(Default)]
pub(crate) struct Origins(BTreeMap<String, PathBuf>);

impl Origins {
    /// By what the registries say.
    pub(super) fn of_told(told: &Told) -> Self {
        let mut origins = Self::default();
        for (_, process) in told.processes() {
            for load in &process.loads {
                let Some(identity) = &load.code_object else {
                    continue;
                };
                if let Some(uri) = FileUri::parse(&load.uri) {
                    // HIP may name the dynamic linker instead of a program that it has started.
                    let host = process.host(load).map(|host| PathBuf::from(&host.path));
                    let known = origins.0.entry(identity.clone());
                    known.or_insert(host.unwrap_or(uri.path));
                }
            }
        }
        origins
    }

    /// The file that a code object was loaded from.
    pub(crate) fn of(&self, identity: &str) -> Option<&Path> {
        self.0.get(identity).map(PathBuf::as_path)
    }

    /// Has a code object be from `file`, if it is not known to be from another.
    pub(crate) fn learn(&mut self, identity: &str, file: &Path) {
        let known = self.0.entry(identity.to_owned());
        known.or_insert_with(|| file.to_path_buf());
    }

    /// The code objects that were loaded from `file`.
    pub(crate) fn from(&self, file: &Path) -> impl Iterator<Item = &str> {
        let real = |path: &Path| {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
            absolute.canonicalize().unwrap_or(absolute)
        };
        let file = real(file);
        let loaded = self.0.iter();
        let loaded = loaded.filter(move |(_, origin)| real(origin) == file);
        loaded.map(|(identity, _)| identity.as_str())
    }
}
