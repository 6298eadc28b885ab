//! Files that appear whole or not at all, written by tools that want a path to write to.

use anyhow::{Context, Result, bail};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, TempPath};

/// Has `write` make a file at the path it is given, then puts that at `path` at once.
///
/// # Errors
///
/// When `write` fails, or the file cannot be made there; then what was at `path` is still there.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let temporary = beside(path)?;
    write(&temporary)?;
    temporary.persist(path).with_context(|| cannot_write(path))
}

/// The same where there must be no file yet.
///
/// # Errors
///
/// Also when there is one, which is left as it is.
pub(crate) fn create(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let is_there = || {
        format!(
            "{} is there already: give --force to replace it",
            path.display()
        )
    };
    if path.exists() {
        bail!(is_there());
    }
    let temporary = beside(path)?;
    write(&temporary)?;
    match temporary.persist_noclobber(path) {
        // Since then.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => bail!(is_there()),
        result => result.with_context(|| cannot_write(path)),
    }
}

/// An empty file beside `path`, as one cannot be renamed to another file system.
fn beside(path: &Path) -> Result<TempPath> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let file = Builder::new()
        .prefix(".rocov-")
        // As for any file that a tool writes; the process's umask takes from it.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent.unwrap_or(Path::new(".")));
    Ok(file.with_context(|| cannot_write(path))?.into_temp_path())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
