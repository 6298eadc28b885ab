//! One document for many processes.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::{self, DocumentError};
use super::model::VERSION;

/// A document as far as adding to it takes.
#[derive(Serialize, Deserialize)]
struct Pool<'a> {
    rocov_registry: u32,
    #[serde(borrow)]
    code_objects: Vec<&'a RawValue>,
    #[serde(borrow)]
    processes: Vec<&'a RawValue>,
}

/// Of a code object: what tells it from others and orders it, and whether its ELF is kept.
#[derive(Deserialize)]
struct CodeObjectHead {
    identity: String,
    target: String,
    file: Option<String>,
}

/// What tells processes apart, and orders them.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct ProcessKey {
    start: u64,
    pid: u32,
    host: String,
}

/// Documents of many processes as one. What others wrote in their records stays as it is.
#[derive(Debug, Default)]
pub struct Merged {
    /// By identity and target.
    code_objects: BTreeMap<(String, String), Box<RawValue>>,
    processes: BTreeMap<ProcessKey, Box<RawValue>>,
}

impl Merged {
    /// Adds all that the document with this text has. A process that is there already is replaced by
    /// what this says of it.
    ///
    /// # Errors
    /// Fails, with nothing added, where `text` is no document of this version.
    pub fn add(&mut self, text: &[u8]) -> Result<(), DocumentError> {
        json::check_version(text)?;
        let document: Pool<'_> = serde_json::from_slice(text)?;
        let code_objects: Vec<CodeObjectHead> = heads(&document.code_objects)?;
        let processes: Vec<ProcessKey> = heads(&document.processes)?;
        for (process, key) in document.processes.into_iter().zip(processes) {
            self.processes.insert(key, process.to_owned());
        }
        for (elf, head) in document.code_objects.into_iter().zip(code_objects) {
            let key = (head.identity, head.target);
            // Who does not keep device ELFs says nothing of where others do.
            if head.file.is_some() || !self.code_objects.contains_key(&key) {
                self.code_objects.insert(key, elf.to_owned());
            }
        }
        Ok(())
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.code_objects.is_empty() && self.processes.is_empty()
    }

    /// The text of the document.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::to_text(&Pool {
            rocov_registry: VERSION,
            code_objects: self.code_objects.values().map(|it| &**it).collect(),
            processes: self.processes.values().map(|it| &**it).collect(),
        })
    }
}

fn heads<T: DeserializeOwned>(records: &[&RawValue]) -> serde_json::Result<Vec<T>> {
    let heads = records
        .iter()
        .map(|record| serde_json::from_slice(record.get().as_bytes()));
    heads.collect()
}

/// The text of a document with all that the documents with these texts have. A process that both
/// have is that of `ours`.
///
/// # Errors
/// Fails where `theirs` is no document of this version.
pub(super) fn merge(theirs: &[u8], ours: &[u8]) -> Result<Vec<u8>, DocumentError> {
    let mut merged = Merged::default();
    merged.add(theirs)?;
    merged.add(ours)?;
    Ok(merged.to_json())
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
