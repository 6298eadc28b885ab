//! The kernel registries of a data directory: `BASENAME.kernels.json`, one for each process or for
//! all that share a pool, as librocov writes them.

use crate::mapped;
use anyhow::{Context, Result};
use rocov::registry::model::{CodeObjectRecord, Document};
use std::path::Path;

/// Several registries as one.
#[derive(Debug)]
pub(crate) struct Registries {
    /// What those that can be read say.
    pub(crate) document: Document,
    /// Why others cannot be.
    pub(crate) unread: Vec<anyhow::Error>,
}

impl Registries {
    /// Reads the registries in these files.
    pub(super) fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Self {
        let mut registries = Self {
            document: Document::default(),
            unread: Vec::new(),
        };
        for file in files {
            match read(file) {
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

fn read(file: &Path) -> Result<Document> {
    let text = mapped::map(file)?;
    Document::parse(&text).with_context(|| file.display().to_string())
}
