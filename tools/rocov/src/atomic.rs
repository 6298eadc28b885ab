//! Files that are whole or not there.

use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;
use tempfile::{Builder, NamedTempFile, TempPath};

/// Writes `contents` to `path`, replacing what was there at once.
///
/// # Errors
///
/// When the file's directory cannot be written to.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = temporary(path).with_context(failed)?;
    file.write_all(contents).with_context(failed)?;
    persist(file.into_temp_path(), path)
}

/// Has `write` make a file at the path it is given, then puts that at `path` at once.
///
/// # Errors
///
/// When `write` fails or the file's directory cannot be written to.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let file = temporary(path).with_context(|| format!("cannot write {}", path.display()))?;
    let file = file.into_temp_path();
    write(&file)?;
    persist(file, path)
}

/// In the same directory, as a file cannot be renamed to another file system.
fn temporary(path: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let directory = path.parent().unwrap_or(Path::new("."));
    Builder::new()
        .prefix(".rocov-")
        // As for any file that a tool writes; the process's umask takes from it.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
}

fn persist(file: TempPath, path: &Path) -> Result<()> {
    file.persist(path)
        .with_context(|| format!("cannot write {}", path.display()))
}
