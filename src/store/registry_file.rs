//! Changes of a registry that librocov has written.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::format::registry::DocumentError;
use crate::format::registry::model::Document;
use crate::store::OutputError;
use crate::store::atomic::write_atomic;
use crate::store::interrupted::uninterrupted;
use crate::store::pool::{lock_at, update_pooled};
use crate::store::regular_file::read;
use crate::support::diagnostic::Remedy;

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
    /// The file is not a registry of this version.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl Remedy for RegistryError {
    fn remedy(&self) -> Cow<'static, str> {
        match self {
            Self::Output(error) => error.remedy(),
            Self::Document(_) => Cow::Borrowed("move that file away"),
        }
    }
}

/// Changes the registry at `path` under its lock, in one step. Processes that share it wait meanwhile. Does
/// nothing if there is no file.
///
/// A process that has a registry of its own does not take the lock: the process must have ended.
///
/// # Errors
/// Fails if the file cannot be read, locked or replaced, or is not a registry. It does not change then.
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

/// Changes the registry at `path` as [`change_registry`] does. If there is no file, `new` becomes the registry.
///
/// # Errors
/// Fails if the file cannot be read, locked or written, or is not a registry. It does not change then.
pub fn change_or_make_registry(
    path: &Path,
    new: &Document,
    change: impl FnOnce(Document) -> Document,
) -> Result<(), RegistryError> {
    update_pooled(path, &|| new.to_json(), |file| {
        let document = Document::parse(&read(file, path)?)?;
        Ok(Some(change(document).to_json()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("all.kernels.json");
        fs::write(&path, Document::default().to_json()).unwrap();
        (directory, path)
    }

    #[test]
    fn changes_at_a_time_are_all_in_the_registry() {
        const CHANGES: usize = 50;
        let (_directory, path) = registry();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for change in 0..CHANGES {
                        let added = change_registry(path, |mut document| {
                            let mut object = crate::store::describe_code_object(
                                &crate::discover::registry::tests::elf(&[1], &[]),
                                None,
                            );
                            object.identity = format!("{writer}.{change}");
                            document.code_objects.push(object);
                            RegistryChange::Replace(document)
                        });
                        added.unwrap();
                    }
                });
            }
        });
        let document = Document::parse(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(document.code_objects.len(), 4 * CHANGES);
    }

    #[test]
    fn a_registry_stays_or_goes() {
        let (directory, path) = registry();
        let before = fs::read(&path).unwrap();
        change_registry(&path, |_| RegistryChange::None).unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
        change_registry(&path, |_| RegistryChange::Remove).unwrap();
        assert!(!path.exists());
        // None is there, and none is made.
        change_registry(&path, RegistryChange::Replace).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        fs::write(&path, "no registry").unwrap();
        let error = change_registry(&path, RegistryChange::Replace).unwrap_err();
        assert!(error.to_string().starts_with("not a registry, or damaged"));
        assert_eq!(fs::read(&path).unwrap(), b"no registry");
    }
}
