//! Which file a code object was loaded from, as the kernel registries of a data directory tell.

use crate::mapped;
use rocov::codeobject::FileUri;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of code objects, by identity. What was handed over in memory has none.
#[derive(Default)]
pub(crate) struct Origins(BTreeMap<String, PathBuf>);

/// The part of a registry that is read: the rest of it may be large.
#[derive(Deserialize)]
struct Document {
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    loads: Vec<Load>,
}

#[derive(Deserialize)]
struct Load {
    uri: String,
    code_object: Option<String>,
}

impl Origins {
    /// Reads the registries in these files. One that cannot be read tells nothing, and `rocov kernels`
    /// says why.
    pub(super) fn read<'a>(files: impl Iterator<Item = &'a Path>) -> Self {
        let mut origins = Self::default();
        for path in files {
            let document = mapped::map(path).ok();
            let document = document.and_then(|text| serde_json::from_slice(&text).ok());
            let Some(Document { processes }) = document else {
                continue;
            };
            for load in processes.into_iter().flat_map(|process| process.loads) {
                if let (Some(identity), Some(uri)) = (load.code_object, FileUri::parse(&load.uri)) {
                    origins.0.entry(identity).or_insert(uri.path);
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
