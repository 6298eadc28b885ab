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
    let temporary = Temporary::write(path, contents)?;
    fs::rename(&temporary.path, path).map_err(OutputError::io("replace", path))
}

/// Writes `contents` to `path` if there is no such file, likewise. Returns whether it did.
pub(super) fn create_atomic(path: &Path, contents: &[u8]) -> Result<bool, OutputError> {
    let temporary = Temporary::write(path, contents)?;
    match fs::hard_link(&temporary.path, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(OutputError::io("make", path)(source)),
    }
}

/// A file that goes when nobody has renamed it.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Writes `contents` beside `path`, under a name that no other process or thread takes:
    /// hidden, and without the suffix by which profiles are collected.
    fn write(path: &Path, contents: &[u8]) -> Result<Temporary, OutputError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if let Some(directory) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            fs::create_dir_all(directory)
                .map_err(OutputError::io("make the directory", directory))?;
        }
        let base = path.file_name().unwrap_or_default().to_string_lossy();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{base}.{}-{count}.tmp", std::process::id());
        let temporary = Temporary {
            path: path.with_file_name(name),
        };
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary.path)
            .and_then(|mut file| file.write_all(contents))
            .map_err(OutputError::io("write", &temporary.path))?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is not there where it was renamed; else the error that matters has been returned.
        let _ = fs::remove_file(&self.path);
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
    fn only_one_creates() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.profraw");
        assert!(create_atomic(&path, b"one").unwrap());
        assert!(!create_atomic(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
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
