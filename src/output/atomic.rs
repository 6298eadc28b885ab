//! Files that appear whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::OutputError;

/// Writes `contents` to `path`, making its directories. The file is written under another name in
/// the same directory and renamed, so that whoever opens `path` finds the old contents or the
/// new, whatever happens in between.
///
/// # Errors
/// Fails with the step and the file; then `path` is as it was.
pub fn write_atomic(path: &Path, contents: &[u8]) -> Result<(), OutputError> {
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::create_dir_all(directory).map_err(io_error("make the directory", directory))?;
    }
    let temporary = temporary_name(path);
    let written = write_new(&temporary, contents)
        .map_err(io_error("write", &temporary))
        .and_then(|()| fs::rename(&temporary, path).map_err(io_error("replace", path)));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(contents)
}

/// A name beside `path` that no other process or thread takes: hidden, and without the suffix by
/// which profiles are collected.
fn temporary_name(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let base = path.file_name().unwrap_or_default().to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{base}.{}-{count}.tmp", std::process::id()))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    let path = path.to_owned();
    move |source| OutputError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_and_old_contents_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/x.profraw");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = write_atomic(&path, b"one").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot replace {}: ", path.display())),
            "{error}"
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
