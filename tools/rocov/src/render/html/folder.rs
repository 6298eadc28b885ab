//! The folder that a report is written to: whole or not at all, and nothing else in it touched.
//!
//! Files are written to a folder within it and moved when all are there, the [`INDEX`] last: without
//! it there is no report to open. From a list of the files, the next report sees which files to remove.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::store::{PARTIAL, read_input};
use rocov::support::diagnostic::fail;
use tempfile::TempDir;

use crate::support::atomic::{Partial, directory_in};

/// The page to open.
pub(super) const INDEX: &str = "index.html";
/// The list of the files that were written, a path from the folder on each line.
const LIST: &str = "rocov-files.txt";
/// The limit in bytes for such a list.
const MAX_LIST: u64 = 64 << 20;

/// A folder with a report in the making.
pub(super) struct Folder {
    path: PathBuf,
    /// Files of the report that was there before.
    previous: BTreeSet<PathBuf>,
    partial: Partial<TempDir>,
}

impl Folder {
    /// Makes the folder, or takes one with an earlier report.
    ///
    /// # Errors
    ///
    /// Fails if it has other files, or cannot be written to.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let failed = || format!("cannot write to {}", path.display());
        if path.is_file() {
            fail!(
                "{} is a file", path.display();
                "name a folder, or a path that ends in .html for a single file"
            );
        }
        fs::create_dir_all(path).with_context(failed)?;
        let previous = files(path).with_context(failed)?;
        let known = known(path).with_context(failed)?;
        if let Some(foreign) = previous.difference(&known).next() {
            fail!(
                "{} contains {}, which does not belong to a report", path.display(), foreign.display();
                "use a separate directory for --html"
            );
        }
        let partial = directory_in(path, 0o700);
        Ok(Self {
            path: path.to_path_buf(),
            previous,
            partial: partial.with_context(failed)?,
        })
    }

    /// Makes the file `name`, a path from the folder, with the bytes that `write` writes.
    ///
    /// # Errors
    ///
    /// Fails if it fails, or the file cannot be made.
    pub(super) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let path = self.partial.path.path().join(name);
        let failed = || format!("cannot write {name} in {}", self.path.display());
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        let file = parent.and_then(|()| File::create(&path));
        let mut file = BufWriter::new(file.with_context(failed)?);
        write(&mut file).with_context(failed)?;
        file.flush().with_context(failed)
    }

    /// Puts the report in the place of the one before it. Returns the path of its first page.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be removed or moved; then there is no first page.
    pub(super) fn publish(self) -> Result<PathBuf> {
        let failed = || format!("cannot write the report to {}", self.path.display());
        let written = files(self.partial.path.path()).with_context(failed)?;
        self.remove_previous().with_context(failed)?;
        self.list(&written).with_context(failed)?;
        let (index, others): (Vec<_>, _) = written.iter().partition(|file| **file == *INDEX);
        for name in others.into_iter().chain(index) {
            let to = self.path.join(name);
            to.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::rename(self.partial.path.path().join(name), &to))
                .with_context(failed)?;
        }
        Ok(self.path.join(INDEX))
    }

    /// Removes the report that was there, its first page first.
    fn remove_previous(&self) -> io::Result<()> {
        let (index, others): (Vec<_>, _) = self.previous.iter().partition(|file| **file == *INDEX);
        for name in index.into_iter().chain(others) {
            fs::remove_file(self.path.join(name))?;
            // This fails unless the file was the last one in its folder.
            if let Some(folder) = name.parent().filter(|folder| *folder != Path::new("")) {
                let _ = fs::remove_dir(self.path.join(folder));
            }
        }
        Ok(())
    }

    /// Writes the list of files before they are moved: if rocov is interrupted then, the next report removes
    /// them.
    fn list(&self, written: &BTreeSet<PathBuf>) -> io::Result<()> {
        let mut list = String::new();
        for name in written {
            list += &format!("{}\n", name.display());
        }
        let partial = self.partial.path.path().join(LIST);
        fs::write(&partial, list)?;
        fs::rename(partial, self.path.join(LIST))
    }
}

/// All files below `folder` but the list and those of reports in the making, by their paths from it. A
/// link is a file.
fn files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let name = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if !name.to_string_lossy().starts_with(PARTIAL) {
                    folders.push(name);
                }
            } else if name != Path::new(LIST) {
                files.insert(name);
            }
        }
    }
    Ok(files)
}

/// The files that the list in `folder` has.
fn known(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    match read_input(&folder.join(LIST), MAX_LIST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        list => Ok(String::from_utf8_lossy(&list?)
            .lines()
            .map(PathBuf::from)
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn publish(path: &Path, names: &[&str]) {
        let folder = Folder::new(path).unwrap();
        for name in names {
            let write = |out: &mut dyn Write| Ok(writeln!(out, "{name}")?);
            folder.write(name, write).unwrap();
        }
        assert_eq!(folder.publish().unwrap(), path.join(INDEX));
    }

    fn names(path: &Path) -> Vec<String> {
        let files = files(path).unwrap();
        files
            .iter()
            .map(|file| file.display().to_string())
            .collect()
    }

    #[test]
    fn a_report_takes_the_place_of_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/report");
        publish(&path, &[INDEX, "source/a.html", "source/b.html", "old/c"]);
        publish(&path, &["source/a.html", INDEX]);
        assert_eq!(names(&path), [INDEX, "source/a.html"]);
        assert!(!path.join("old").exists());
    }

    #[test]
    fn what_is_foreign_is_named_and_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("report");
        publish(path, &[INDEX, "source/a.html"]);
        for foreign in ["notes.txt", "source/mine.html"] {
            fs::write(path.join(foreign), "mine").unwrap();
            let error = Folder::new(path).err().unwrap().to_string();
            assert!(error.contains(foreign), "{error}");
            assert_eq!(names(path).len(), 3);
            fs::remove_file(path.join(foreign)).unwrap();
        }
        // A list that somebody else wrote makes nothing ours that is not below the folder.
        let outside = directory.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        fs::write(path.join(LIST), "index.html\nsource/a.html\n../outside\n").unwrap();
        publish(path, &[INDEX]);
        assert!(outside.exists());
    }

    #[test]
    fn a_report_that_was_interrupted_has_no_first_page() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        publish(path, &[INDEX, "source/a.html"]);
        {
            // While pages are written, the earlier report stays.
            let folder = Folder::new(path).unwrap();
            let error = folder.write(INDEX, |_| fail!("no"; "go"));
            assert!(error.is_err());
            assert_eq!(
                fs::read_to_string(path.join(INDEX)).unwrap(),
                "index.html\n"
            );
            // A process killed there leaves its files, unlocked. And one killed while it moves pages.
            let _ = folder.partial.path.keep();
        }
        fs::remove_file(path.join(INDEX)).unwrap();
        publish(path, &[INDEX]);
        assert_eq!(names(path), [INDEX]);
        // A process that another test is starting has the lock until its own program runs. The next report then finds
        // these files unlocked.
        let entries = || fs::read_dir(path).unwrap().count();
        for _ in 0..1_000 {
            if entries() == 2 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
            publish(path, &[INDEX]);
        }
        assert_eq!(entries(), 2, "beside it there is the list alone");
    }
}
