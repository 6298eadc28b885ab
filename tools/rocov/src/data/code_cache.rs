//! The cache of the device code in host files, so that a suite of thousands of processes looks at a library
//! once.
//!
//! An entry is a file `BUILD.SIZE.TIME.json` in `$XDG_CACHE_HOME/rocov/device-code`, with the build, the size
//! and the last change of the host file in its name. A file that changes gets another entry. Any process may
//! remove any entry at any time. Without a place to write to, there is no cache.
//!
//! An entry decides what a report lacks, so one is believed only if nobody else can have written it (owner and mode of
//! the file and of its directory), if it is whole (a hash of its contents and its name), and if the host file has
//! containers where it says.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rocov::store::{CacheEntry, is_own, read_own, shrink, write_own};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::Xxh3;

use super::host_code::HostCode;
use crate::support::paths::user_directory;

/// The limit for all entries together, in bytes. The oldest go first.
const MAX: u64 = 32 << 20;

/// The version of the entries. An entry of another version is not read.
const VERSION: u32 = 4;

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
    /// The hash of the name and of the text of the code.
    hash: String,
    /// A [`HostCode`].
    code: Box<RawValue>,
}

impl Entry {
    /// The entry of this name.
    fn new(name: &str, code: &HostCode) -> Self {
        let code = serde_json::value::to_raw_value(code).expect("memory takes any text");
        Self {
            rocov_device_code: VERSION,
            hash: hash(name, &code),
            code,
        }
    }

    /// The code in the entry of this name. `None` if the entry is damaged, or another one.
    fn code(&self, name: &str) -> Option<HostCode> {
        let is_whole = self.rocov_device_code == VERSION && self.hash == hash(name, &self.code);
        serde_json::from_str(self.code.get())
            .ok()
            .filter(|_| is_whole)
    }
}

/// The hash of an entry: hexadecimal digits.
fn hash(name: &str, code: &RawValue) -> String {
    let mut hash = Xxh3::new();
    for part in [name, "\0", code.get()] {
        hash.update(part.as_bytes());
    }
    format!("{:032x}", hash.digest128())
}

impl CodeCache {
    /// The cache in `$XDG_CACHE_HOME/rocov`, or in `~/.cache/rocov` if that is not set.
    pub(crate) fn for_user() -> Self {
        let caches = user_directory("XDG_CACHE_HOME", ".cache");
        Self {
            directory: caches.map(|cache| cache.join("device-code")),
            max: MAX,
        }
    }

    /// The directory of the entries.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the device code of a `file` with this `build`, from the cache or by `look`. Ignores an entry that does not
    /// fit.
    pub(crate) fn find_or(
        &self,
        build: &str,
        file: &Metadata,
        fits: impl FnOnce(&HostCode) -> bool,
        look: impl FnOnce() -> HostCode,
    ) -> HostCode {
        let name = format!(
            "{build}.{}.{}_{:09}.{EXTENSION}",
            file.len(),
            file.mtime(),
            file.mtime_nsec()
        );
        let Some(directory) = self.directory().filter(|directory| is_private(directory)) else {
            return look();
        };
        let path = directory.join(&name);
        if let Some(code) = self.read(&path, &name).filter(fits) {
            return code;
        }
        let code = look();
        let text = serde_json::to_vec(&Entry::new(&name, &code)).expect("memory takes any text");
        // A home that cannot be written is no error: the next process looks again.
        if write_own(&path, &text).is_ok() {
            self.trim();
        }
        code
    }

    /// Reads the entry of this name. Returns `None` for a damaged one.
    fn read(&self, path: &Path, name: &str) -> Option<HostCode> {
        let (_, text) = read_own(path, user(), self.max)?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        entry.code(name)
    }

    /// Removes the oldest entries beyond the limit.
    fn trim(&self) {
        shrink(self.entries().filter_map(CacheEntry::from_path), self.max);
    }

    /// The paths of the entries that are there.
    pub(crate) fn entries(&self) -> impl Iterator<Item = PathBuf> {
        let directory = self
            .directory()
            .and_then(|directory| fs::read_dir(directory).ok());
        let entries = directory.into_iter().flatten().flatten();
        let is_entry = |path: &PathBuf| {
            path.extension()
                .is_some_and(|extension| extension == EXTENSION)
        };
        entries.map(|entry| entry.path()).filter(is_entry)
    }
}

/// The user whose rights this process has.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns whether only this user and root can put entries into a directory, or it is not there yet. Earlier releases
/// made it with the rights that the umask left: this takes the right to write from others.
fn is_private(directory: &Path) -> bool {
    const OF_USER: u32 = 0o700;
    let Ok(found) = fs::metadata(directory) else {
        return true;
    };
    if is_own(&found, user()) {
        return true;
    }
    found.uid() == user() && fs::set_permissions(directory, Permissions::from_mode(OF_USER)).is_ok()
}

#[cfg(test)]
#[path = "code_cache_tests.rs"]
mod tests;
