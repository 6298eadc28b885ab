//! Temporary files and directories of the command.

use std::env;
use std::fs::File;
use std::io;

use anyhow::{Error, Result};
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::support::failure::failure;

/// Makes a directory that is removed when it is dropped.
///
/// # Errors
///
/// Fails if it cannot be made.
pub(crate) fn directory() -> Result<TempDir> {
    TempDir::new().map_err(|error| failed(&error))
}

/// Makes an empty file, which is removed when it is dropped. Its name begins with `prefix`.
///
/// # Errors
///
/// Fails if it cannot be made.
pub(crate) fn file(prefix: &str) -> Result<NamedTempFile> {
    let made = Builder::new().prefix(prefix).tempfile();
    made.map_err(|error| failed(&error))
}

/// Makes an empty file without a name.
///
/// # Errors
///
/// Fails if it cannot be made.
pub(crate) fn unnamed() -> Result<File> {
    tempfile::tempfile().map_err(|error| failed(&error))
}

/// The error with the directory, and without the name of a file that means nothing to the user.
fn failed(error: &io::Error) -> Error {
    failure!(
        "cannot create a temporary file in {}: {}", env::temp_dir().display(), without_path(error);
        "set TMPDIR to a writable directory"
    )
}

/// The error of the system, without the name of a temporary file, which means nothing to the user.
pub(crate) fn without_path(error: &io::Error) -> io::Error {
    let said = error.to_string();
    let said = said.split(" at path ").next().unwrap_or(&said);
    io::Error::new(error.kind(), said)
}
