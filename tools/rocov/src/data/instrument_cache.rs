//! The cache of `rocov run --instrument`: code that the driver has compiled, the PTX of Triton's kernels, and what Triton
//! keeps. `librocov_instrument.so` and the stand-in for ptxas write it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rocov::device::cuda::exchange::{ENTRIES, INSTRUMENTATION, SOURCES};

use crate::support::paths::of_user;

/// The variable that names the cache.
pub(crate) const CACHE_VARIABLE: &str = "ROCOV_CACHE";
/// The folder with a directory of Triton's results for each release of the counters.
const TRITON: &str = "triton";

/// The cache of a user.
#[derive(Debug)]
pub(crate) struct InstrumentCache {
    directory: PathBuf,
}

impl InstrumentCache {
    /// The cache that `ROCOV_CACHE` names, or that in `$XDG_CACHE_HOME/rocov` or `~/.cache/rocov`. `None` without one.
    pub(crate) fn of_user() -> Option<Self> {
        let named = env::var_os(CACHE_VARIABLE).filter(|value| !value.is_empty());
        let directory = match named {
            Some(named) => PathBuf::from(named),
            None => of_user("XDG_CACHE_HOME", ".cache")?,
        };
        // A relative one would be another after each change of the directory.
        directory.is_absolute().then_some(Self { directory })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory for what Triton keeps of this release.
    pub(crate) fn results_of_triton(&self) -> PathBuf {
        let release = format!("{}-{INSTRUMENTATION}", env!("CARGO_PKG_VERSION"));
        self.directory.join(TRITON).join(release)
    }

    /// The folders that are there, with what rocov has put into each: files, and directories of Triton's results.
    pub(crate) fn folders(&self) -> Vec<(PathBuf, Vec<PathBuf>)> {
        let is_own = |name, entry: &OsStr| match name {
            ENTRIES => is_hash(entry),
            SOURCES => is_source(entry),
            _ => is_release(entry),
        };
        let found = [ENTRIES, SOURCES, TRITON].into_iter().filter_map(|name| {
            let folder = self.directory.join(name);
            let entries = fs::read_dir(&folder).ok()?.flatten();
            let entries = entries.filter(|entry| {
                let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
                is_own(name, &entry.file_name()) && is_directory == (name == TRITON)
            });
            let mut entries: Vec<_> = entries.map(|entry| entry.path()).collect();
            entries.sort();
            Some((folder, entries))
        });
        found.collect()
    }
}

/// Returns whether a name is a hash of 128 bits.
fn is_hash(name: &OsStr) -> bool {
    name.len() == 32 && name.as_bytes().iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether a name is that of kept PTX.
fn is_source(name: &OsStr) -> bool {
    let hash = name.as_bytes().strip_suffix(b".ptx");
    hash.is_some_and(|hash| is_hash(OsStr::from_bytes(hash)))
}

/// Returns whether a name is a version of rocov and the number of its counters.
fn is_release(name: &OsStr) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let parts = name.to_str().and_then(|it| it.rsplit_once('-'));
    parts.is_some_and(|(version, number)| {
        is_number(number)
            && version.split('.').count() == 3
            && version.starts_with(char::is_numeric)
    })
}
