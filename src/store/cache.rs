//! Entries of caches, which any process may remove at any time. Those that were not used for the longest time go first.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

/// An entry of a cache: a file, or a directory with files.
#[derive(Debug)]
pub struct CacheEntry {
    path: PathBuf,
    /// The size of its files in bytes.
    size: u64,
    used: SystemTime,
}

impl CacheEntry {
    /// The entry at `path`. A file was used when it was last written, or touched. A directory was used when a file in it
    /// was last written or read, as far as the file system shows. `None` if it is not there.
    #[must_use]
    pub fn from_path(path: PathBuf) -> Option<Self> {
        let metadata = fs::symlink_metadata(&path).ok()?;
        let mut entry = Self {
            used: metadata.modified().ok()?,
            size: metadata.len(),
            path,
        };
        if metadata.is_dir() {
            entry.size = 0;
            for file in fs::read_dir(&entry.path).ok()?.flatten() {
                let Ok(metadata) = file.metadata() else {
                    continue;
                };
                entry.size += metadata.len();
                let times = [metadata.modified(), metadata.accessed()];
                entry.used = times.into_iter().flatten().fold(entry.used, Ord::max);
            }
        }
        Some(entry)
    }

    /// Removes the entry, with all that is in it.
    ///
    /// # Errors
    /// Fails if a part of it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path)?.is_dir() {
            true => fs::remove_dir_all(&self.path),
            false => fs::remove_file(&self.path),
        }
    }
}

/// Removes entries until all others take at most `most` bytes together.
pub fn shrink(entries: impl IntoIterator<Item = CacheEntry>, most: u64) {
    let mut entries: Vec<_> = entries.into_iter().collect();
    let mut size: u64 = entries.iter().map(|entry| entry.size).sum();
    entries.sort_by_key(|entry| entry.used);
    for entry in entries {
        if size <= most {
            break;
        }
        // Another process may have removed it.
        let _ = entry.remove();
        size -= entry.size;
    }
}
