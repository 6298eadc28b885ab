//! Changes of a registry that librocov has written.

use std::fs;
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::format::registry::DocumentError;
use crate::format::registry::model::Document;
use crate::store::OutputError;
use crate::store::atomic::write_atomic;
use crate::store::interrupted::uninterrupted;
use crate::store::pool::lock_at;
use crate::store::regular_file::read;

/// The new state of a registry.
#[derive(Debug)]
pub enum RegistryChange {
    /// The file stays as it is.
    None,
    /// This document replaces it.
    Replace(Document),
    /// The file goes.
    Remove,
}

/// The reason why a registry did not change.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A file operation failed.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The file is no registry of this version.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Changes the registry at `path` under its lock, in one step. Processes that share it wait meanwhile. Does
/// nothing if there is no file.
///
/// A process that has a registry of its own does not take the lock: the process must have ended.
///
/// # Errors
/// Fails if the file cannot be read, locked or replaced, or is no registry. It does not change then.
pub fn change_registry(
    path: &Path,
    change: impl FnOnce(Document) -> RegistryChange,
) -> Result<(), RegistryError> {
    let Some(locked) = lock_at(path)? else {
        return Ok(());
    };
    let document = Document::parse(&read(&locked.file, path)?)?;
    match change(document) {
        RegistryChange::None => {}
        RegistryChange::Replace(document) => write_atomic(path, &document.to_json())?,
        RegistryChange::Remove => match uninterrupted(|| fs::remove_file(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OutputError::io("remove", path)(error).into());
            }
            _ => {}
        },
    }
    Ok(())
}
