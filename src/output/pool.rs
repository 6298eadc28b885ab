//! Files that several processes, ranks and GPUs add their counts to (`%m`).

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::OutputError;
use super::atomic::{create_atomic, write_atomic};
use super::lock::lock;
use crate::profraw::{Parts, Sum, encode};

/// Adds the counts of `parts` to the profile at `path`, or makes it of `parts`.
///
/// # Errors
/// Fails, with the file as it was, where it cannot be read, locked or replaced, or is not a
/// profile of the same code.
pub fn add_to_pool(path: &Path, parts: &Parts<'_>) -> Result<(), OutputError> {
    let ours = encode(parts);
    update_pooled(path, &ours, |theirs| {
        let sum = Sum::of(theirs).and_then(|mut sum| {
            sum.add(&ours)?;
            Ok(sum.bytes().to_vec())
        });
        sum.map_err(|source| OutputError::Pool {
            path: path.to_owned(),
            source,
        })
    })
}

/// Replaces the contents of the file at `path` by what `merge` makes of them; where there is no
/// file, it is made of `ours`.
///
/// The new contents replace the old in one step, under the lock; a reader that takes no lock sees
/// one or the other.
///
/// # Errors
/// Fails, with the file as it was, where it cannot be read, locked or replaced, or `merge` does.
pub(crate) fn update_pooled<E: From<OutputError>>(
    path: &Path,
    ours: &[u8],
    merge: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    loop {
        if create_atomic(path, ours)? {
            return Ok(());
        }
        // For writing, as fcntl wants it for this kind of lock.
        let opened = File::options().read(true).write(true).open(path);
        let mut file = match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            opened => opened.map_err(OutputError::io("open", path))?,
        };
        lock(&file, path)?;
        if !is_at(&file, path)? {
            // Another process has replaced it while this one waited.
            continue;
        }
        let mut theirs = Vec::new();
        file.read_to_end(&mut theirs)
            .map_err(OutputError::io("read", path))?;
        // The lock goes with `file`, after this.
        return Ok(write_atomic(path, &merge(theirs)?)?);
    }
}

/// Whether `path` still leads to `file`.
fn is_at(file: &File, path: &Path) -> Result<bool, OutputError> {
    let opened = file.metadata().map_err(OutputError::io("look at", path))?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(OutputError::io("look at", path)(error)),
    }
}
