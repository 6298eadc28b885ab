//! One document for many processes.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::format::registry::json;
use crate::format::registry::json::DocumentError;
use crate::format::registry::model::VERSION;

/// The parts of a document that a merge needs.
#[derive(Serialize, Deserialize)]
struct Pool<'a> {
    rocov_registry: u32,
    #[serde(borrow)]
    code_objects: Vec<&'a RawValue>,
    #[serde(borrow)]
    processes: Vec<&'a RawValue>,
}

/// The parts of a code object record that a merge needs: its key, and the name of its kept ELF.
#[derive(Deserialize)]
struct CodeObjectHead {
    identity: String,
    target: String,
    file: Option<String>,
}

/// The key of a process. It also sets the order.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessKey {
    start: u64,
    pid: u32,
    host: String,
}

/// Documents of many processes as one. Keeps every record as its writer wrote it. Ignores groups, which only merges of
/// [`Grouped`](super::Grouped) documents make.
#[derive(Debug, Default)]
pub struct Merged {
    /// By identity and target.
    pub(super) code_objects: BTreeMap<(String, String), Box<RawValue>>,
    pub(super) processes: BTreeMap<ProcessKey, Box<RawValue>>,
}

impl Merged {
    /// Adds everything in the document `text`. Its record of a process replaces an earlier record of that
    /// process.
    ///
    /// # Errors
    /// Fails if `text` is not a document of this version. It then adds nothing.
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
            // A record without a file comes from a process that does not keep device ELFs. It must not hide
            // the file that another process has kept.
            if head.file.is_some() || !self.code_objects.contains_key(&key) {
                self.code_objects.insert(key, elf.to_owned());
            }
        }
        Ok(())
    }

    /// Returns whether the document is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.code_objects.is_empty() && self.processes.is_empty()
    }

    /// The text of the document.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::to_text(&Pool {
            rocov_registry: VERSION,
            code_objects: self
                .code_objects
                .values()
                .map(|code_object| &**code_object)
                .collect(),
            processes: self.processes.values().map(|process| &**process).collect(),
        })
    }
}

fn heads<T: DeserializeOwned>(records: &[&RawValue]) -> serde_json::Result<Vec<T>> {
    let heads = records
        .iter()
        .map(|record| serde_json::from_slice(record.get().as_bytes()));
    heads.collect()
}

/// The text of a document with everything in these two documents. If both have a process, the record in
/// `ours` wins.
///
/// # Errors
/// Fails if `theirs` is not a document of this version.
pub(crate) fn merge(theirs: &[u8], ours: &[u8]) -> Result<Vec<u8>, DocumentError> {
    let mut merged = Merged::default();
    merged.add(theirs)?;
    merged.add(ours)?;
    Ok(merged.to_json())
}
