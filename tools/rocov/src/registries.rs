//! The kernel registries of a data directory: `BASENAME.kernels.json`, one for each process or for
//! all that share a pool, as librocov writes them.

use crate::mapped;
use crate::profiles::Kind;
use anyhow::{Context, Result, anyhow};
use rocov::registry::model::{CodeObjectRecord, Document};
use std::fs;
use std::path::{Path, PathBuf};

/// All registries of a directory as one.
#[derive(Debug)]
pub(crate) struct Registries {
    /// What those that can be read say.
    pub(crate) document: Document,
    /// Why others cannot be.
    pub(crate) unread: Vec<anyhow::Error>,
}

impl Registries {
    /// Reads the registries in `directory`.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or there is no registry in it.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let files = list(directory)?;
        if files.is_empty() {
            return Err(anyhow!(
                "no kernel registry (.kernels.json) in {}: no program that loaded instrumented GPU \
                 code ran under `rocov run` there; ROCOV_REGISTRY=always has one written for any",
                directory.display()
            ));
        }
        Ok(Self::of(files))
    }

    /// Reads the registries in `directory`, if there are any.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn read_any(directory: &Path) -> Result<Self> {
        Ok(Self::of(list(directory)?))
    }

    fn of(files: Vec<PathBuf>) -> Self {
        let mut registries = Self {
            document: Document::default(),
            unread: Vec::new(),
        };
        for file in files {
            match read(&file) {
                Ok(document) => merge(&mut registries.document, document),
                Err(error) => registries.unread.push(error),
            }
        }
        registries
    }

    /// Says which were left out. Returns whether any was.
    pub(crate) fn say_unread(&self) -> bool {
        for error in &self.unread {
            eprintln!("rocov: left out: {error:#}");
        }
        !self.unread.is_empty()
    }
}

/// Adds what another registry has: processes, and code objects that are not there yet.
fn merge(document: &mut Document, other: Document) {
    document.processes.extend(other.processes);
    for object in other.code_objects {
        let is_it = |it: &CodeObjectRecord| {
            (&it.identity, &it.target) == (&object.identity, &object.target)
        };
        if !document.code_objects.iter().any(is_it) {
            document.code_objects.push(object);
        }
    }
}

/// The registries in `directory`, by name.
pub(crate) fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let cannot_read = || format!("cannot read {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if matches!(Kind::of(&path), Kind::Registry) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<Document> {
    let text = mapped::map(file)?;
    Document::parse(&text).with_context(|| file.display().to_string())
}
