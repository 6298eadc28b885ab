//! A data set in a directory.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use rocov::store::layout::DATA_SET;
use rocov::store::{hold, open_input, partial_prefix, sweep};
use tempfile::{Builder, TempDir};

use super::content::Content;

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    /// The directory of files until they are complete, as soon as there was one.
    partial: Mutex<Option<Partial>>,
}

/// The directory of files until they are complete.
#[derive(Debug)]
struct Partial {
    directory: TempDir,
    /// Locked, so that nobody takes it for a leftover.
    _lock: File,
    /// The number of files that it has had.
    files: u64,
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            root: path.to_owned(),
            partial: Mutex::default(),
        }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        match path {
            "" => self.root.clone(),
            path => self.root.join(path),
        }
    }

    pub(super) fn make(&self) -> Result<()> {
        let made = fs::create_dir_all(&self.root);
        made.with_context(|| format!("cannot make {}", self.root.display()))
    }

    pub(super) fn has_any(&self) -> Result<bool> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            entries => entries.with_context(|| cannot_read(&self.root))?,
        };
        // Another importer begins the data set at this moment.
        let is_own = |name: &str| name == DATA_SET || name.starts_with('.');
        let mut entries = entries.flatten();
        Ok(entries.any(|entry| !is_own(&entry.file_name().to_string_lossy())))
    }

    pub(super) fn list(
        &self,
        below: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut open = vec![below.to_owned()];
        while let Some(next) = open.pop() {
            let directory = self.path(&next);
            let entries = match fs::read_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.with_context(|| cannot_read(&directory))?,
            };
            for entry in entries {
                let entry = entry.with_context(|| cannot_read(&directory))?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = match &*next {
                    "" => name.clone(),
                    next => format!("{next}/{name}"),
                };
                // Links lead to directories too.
                if !self.path(&path).is_dir() {
                    found.push(path);
                } else if is_wanted(&name) {
                    open.push(path);
                }
            }
        }
        Ok(found)
    }

    pub(super) fn read(&self, path: &str) -> Result<Option<Content>> {
        let path = self.path(path);
        match open_input(&path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            file => Ok(Some(Content::File(
                file.with_context(|| cannot_read(&path))?,
            ))),
        }
    }

    pub(super) fn put(&self, path: &str, contents: &[u8]) -> Result<()> {
        self.write(path, contents, |from, to| fs::rename(from, to))
    }

    pub(super) fn create(&self, path: &str, contents: &[u8]) -> Result<bool> {
        let mut is_new = true;
        self.write(path, contents, |from, to| {
            match fs::hard_link(from, to) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => is_new = false,
                linked => linked?,
            }
            fs::remove_file(from)
        })?;
        Ok(is_new)
    }

    /// Writes a file elsewhere, and gives both paths to `place`.
    fn write(
        &self,
        path: &str,
        contents: &[u8],
        place: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<()> {
        let to = self.path(path);
        let written = || {
            let from = self.partial()?;
            fs::write(&from, contents)?;
            fs::create_dir_all(to.parent().unwrap_or(&self.root))?;
            place(&from, &to)
        };
        written().with_context(|| format!("cannot write {}", to.display()))
    }

    /// The path of a file that is not there.
    fn partial(&self) -> io::Result<PathBuf> {
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        let partial = match &mut *partial {
            Some(partial) => partial,
            none => none.insert(Partial::new(&self.root)?),
        };
        partial.files += 1;
        Ok(partial.directory.path().join(partial.files.to_string()))
    }

    pub(super) fn remove(&self, path: &str) -> Result<()> {
        let path = self.path(path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| format!("cannot remove {}", path.display())),
        }
    }
}

impl Partial {
    /// Makes an empty directory in `root`. Removes the leftovers of killed importers there first.
    fn new(root: &Path) -> io::Result<Self> {
        sweep(root, |path| match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        });
        let prefix = partial_prefix();
        let mut builder = Builder::new();
        // The mode of any new directory, before the umask.
        builder
            .prefix(&prefix)
            .permissions(Permissions::from_mode(0o777));
        loop {
            let directory = builder
                .tempdir_in(root)
                .map_err(|error| without_path(&error))?;
            // Another importer may have removed it as a leftover before it was locked.
            match File::open(directory.path()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(lock) if hold(&lock) => {
                    return Ok(Self {
                        directory,
                        _lock: lock,
                        files: 0,
                    });
                }
                Ok(_) => {}
            }
        }
    }
}

/// The error of the system, without the name of a temporary directory, which means nothing to the user.
fn without_path(error: &io::Error) -> io::Error {
    let said = error.to_string();
    let said = said.split(" at path ").next().unwrap_or(&said);
    io::Error::new(error.kind(), said)
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}
