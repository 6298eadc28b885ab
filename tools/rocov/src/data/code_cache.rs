//! The cache of the device code in host files, so that a suite of thousands of processes looks at a library
//! once.
//!
//! An entry is a file `BUILD.SIZE.TIME.json` in `$XDG_CACHE_HOME/rocov/device-code`, with the build, the size
//! and the last change of the host file in its name. A file that changes gets another entry. Any process may
//! remove any entry at any time. Without a place to write to, there is no cache.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rocov::store::{CacheEntry, shrink, write_atomic};
use serde::{Deserialize, Serialize};

use super::host_code::HostCode;
use crate::support::paths::of_user;

/// The limit for all entries together, in bytes. The oldest go first.
const MAX: u64 = 32 << 20;

/// The version of the entries. An entry of another version is not read.
const VERSION: u32 = 3;

/// The end of the names of entries.
const EXTENSION: &str = "json";

/// The cache of a user.
#[derive(Debug)]
pub(crate) struct CodeCache {
    /// The directory of the entries, which need not be there. `None` without a cache.
    directory: Option<PathBuf>,
    /// The limit in bytes.
    max: u64,
}

/// An entry.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// [`VERSION`].
    rocov_device_code: u32,
    code: HostCode,
}

impl CodeCache {
    /// The cache in `$XDG_CACHE_HOME/rocov`, or in `~/.cache/rocov` if that is not set.
    pub(crate) fn of_user() -> Self {
        let caches = of_user("XDG_CACHE_HOME", ".cache");
        Self {
            directory: caches.map(|it| it.join("device-code")),
            max: MAX,
        }
    }

    /// The directory of the entries.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the device code of a `file` with this `build`, from the cache or by `look`.
    pub(crate) fn find_or(
        &self,
        build: &str,
        file: &Metadata,
        look: impl FnOnce() -> HostCode,
    ) -> HostCode {
        let name = format!(
            "{build}.{}.{}_{:09}.{EXTENSION}",
            file.len(),
            file.mtime(),
            file.mtime_nsec()
        );
        let Some(path) = self.directory().map(|it| it.join(name)) else {
            return look();
        };
        if let Some(code) = read(&path) {
            return code;
        }
        let code = look();
        let entry = Entry {
            rocov_device_code: VERSION,
            code,
        };
        let text = serde_json::to_vec(&entry).expect("memory takes any text");
        // A home that cannot be written is no error: the next process looks again.
        if write_atomic(&path, &text).is_ok() {
            self.trim();
        }
        entry.code
    }

    /// Removes the oldest entries beyond the limit.
    fn trim(&self) {
        shrink(self.entries().filter_map(CacheEntry::of), self.max);
    }

    /// The paths of the entries that are there.
    pub(crate) fn entries(&self) -> impl Iterator<Item = PathBuf> {
        let directory = self.directory().and_then(|it| fs::read_dir(it).ok());
        let entries = directory.into_iter().flatten().flatten();
        let is_entry = |path: &PathBuf| path.extension().is_some_and(|it| it == EXTENSION);
        entries.map(|it| it.path()).filter(is_entry)
    }
}

/// Reads an entry. A damaged one is as good as none.
fn read(path: &Path) -> Option<HostCode> {
    let entry: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (entry.rocov_device_code == VERSION).then_some(entry.code)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A cache, a host file, and the number of looks at it.
    struct Tried {
        directory: tempfile::TempDir,
        cache: CodeCache,
        looks: Cell<usize>,
    }

    impl Tried {
        fn new(max: u64) -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("library.so"), "code").unwrap();
            Self {
                cache: CodeCache {
                    directory: Some(directory.path().join("cache/rocov")),
                    max,
                },
                directory,
                looks: Cell::new(0),
            }
        }

        fn find(&self, build: &str) -> usize {
            let file = fs::metadata(self.directory.path().join("library.so")).unwrap();
            self.cache.find_or(build, &file, || {
                self.looks.set(self.looks.get() + 1);
                HostCode::default()
            });
            self.looks.get()
        }

        fn entries(&self) -> Vec<PathBuf> {
            self.cache.entries().collect()
        }
    }

    #[test]
    fn a_file_is_looked_at_once_until_it_changes() {
        let tried = Tried::new(MAX);
        assert_eq!((tried.find("aa"), tried.find("aa")), (1, 1));
        fs::write(tried.directory.path().join("library.so"), "other code").unwrap();
        assert_eq!((tried.find("aa"), tried.find("aa")), (2, 2));
        assert_eq!(tried.find("bb"), 3);
    }

    #[test]
    fn a_damaged_entry_is_written_anew() {
        let tried = Tried::new(MAX);
        tried.find("aa");
        let entries = tried.entries();
        let whole = fs::read(&entries[0]).unwrap();
        let other = String::from_utf8(whole.clone()).unwrap();
        let other = other.replace("\"rocov_device_code\":3", "\"rocov_device_code\":4");
        for damaged in [&whole[..whole.len() / 2], b"", other.as_bytes()] {
            let before = tried.looks.get();
            fs::write(&entries[0], damaged).unwrap();
            assert_eq!(tried.find("aa"), before + 1);
            assert_eq!(fs::read(&entries[0]).unwrap(), whole);
            assert_eq!(tried.find("aa"), before + 1);
        }
    }

    #[test]
    fn the_oldest_entries_go_first() {
        let tried = Tried::new(MAX);
        tried.find("aa");
        let size = fs::metadata(&tried.entries()[0]).unwrap().len();
        let tried = Tried::new(3 * size);
        for build in ["aa", "bb", "cc", "dd", "ee"] {
            tried.find(build);
            // The clock of files has coarse steps.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let entries = tried.entries();
        let has = |build: &str| {
            let mut names = entries.iter().filter_map(|it| it.file_name()?.to_str());
            names.any(|name| name.starts_with(build))
        };
        let left = ["aa", "bb", "cc", "dd", "ee"].map(has);
        assert_eq!(left, [false, false, true, true, true], "{entries:?}");
    }

    #[test]
    fn without_a_place_there_is_no_cache() {
        let mut tried = Tried::new(MAX);
        // No file can be made below a file.
        tried.cache.directory = Some(tried.directory.path().join("library.so/rocov"));
        assert_eq!((tried.find("aa"), tried.find("aa")), (1, 2));
        tried.cache.directory = None;
        assert_eq!((tried.find("aa"), tried.find("aa")), (3, 4));
    }
}
