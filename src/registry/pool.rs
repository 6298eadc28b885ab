//! One document for all processes of a pool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::{self, DocumentError};

/// A document as far as adding to it takes: what others wrote in their records stays as it is.
#[derive(Serialize, Deserialize)]
struct Pool<'a> {
    rocov_registry: u32,
    #[serde(borrow)]
    code_objects: Vec<&'a RawValue>,
    #[serde(borrow)]
    processes: Vec<&'a RawValue>,
}

/// What tells code objects apart, and orders them.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct CodeObjectKey {
    identity: String,
    target: String,
}

/// What tells processes apart, and orders them.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct ProcessKey {
    start: u64,
    pid: u32,
    host: String,
}

#[derive(Deserialize)]
struct Kept {
    file: Option<String>,
}

/// The text of a document with all that the documents with these texts have. A process that both
/// have is that of `ours`.
///
/// # Errors
/// Fails where `theirs` is no document of this version.
pub(super) fn merge(theirs: &[u8], ours: &[u8]) -> Result<Vec<u8>, DocumentError> {
    json::check_version(theirs)?;
    let theirs: Pool<'_> = serde_json::from_slice(theirs)?;
    let ours: Pool<'_> = serde_json::from_slice(ours)?;
    let mut processes = BTreeMap::new();
    for process in theirs.processes.into_iter().chain(ours.processes) {
        processes.insert(serde_json::from_str::<ProcessKey>(process.get())?, process);
    }
    let mut code_objects = BTreeMap::new();
    for elf in theirs.code_objects.into_iter().chain(ours.code_objects) {
        let key: CodeObjectKey = serde_json::from_str(elf.get())?;
        let Kept { file } = serde_json::from_str(elf.get())?;
        // Who does not keep device ELFs says nothing of where others do.
        if file.is_some() || !code_objects.contains_key(&key) {
            code_objects.insert(key, elf);
        }
    }
    Ok(json::to_text(&Pool {
        rocov_registry: ours.rocov_registry,
        code_objects: code_objects.into_values().collect(),
        processes: processes.into_values().collect(),
    }))
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
