//! The cache of `rocov run --instrument`. Each of its folders has one limit, and what was not used for the longest time
//! goes first.
//!
//! | folder | entries | written by |
//! |---|---|---|
//! | `instrumented` | CUDA code that the driver has compiled, and code objects of AMD GPUs, each by a hash of all that it depends on | `librocov_instrument.so` |
//! | `sources` | the PTX of cubins that the program compiles, each by a hash of the cubin | the stand-in for ptxas, and `librocov_instrument.so` |
//! | `triton` | a folder for each release and kind of counters, with Triton's own directories | Triton |

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_128;

use crate::device::cuda::exchange::INSTRUMENTATION;
use crate::settings::variables::{CACHE, CACHE_MAX, XDG_CACHE_HOME};
use crate::settings::{Counting, parse_bytes};
use crate::store::cache::{CacheEntry, shrink};
use crate::store::{OutputError, read_own, write_own};

/// The limit in bytes for an entry that is read. A code object of AMD's largest libraries takes 1.6 GB with counters.
const MAX_ENTRY: u64 = 4 << 30;
/// The parts of a folder. It is looked at whether a folder is too large when one of them was written.
const PARTS: u64 = 16;
/// The directory that JAX takes for a CUDA toolkit, next to Triton's results: it has the stand-in for ptxas.
const TOOLKIT: &str = "toolkit";
/// The end of the name of a folder with Triton's results whose counters only record which blocks ran.
const OF_REACHED: &str = "-reached";

/// The cache of a user.
#[derive(Debug)]
pub struct InstrumentCache {
    directory: PathBuf,
    /// The most bytes of each folder.
    most: u64,
    /// The bytes that were written since it was looked at last whether a folder is too large. At first, all that can be.
    unchecked: AtomicU64,
}

/// A folder of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheFolder {
    /// Code with counters.
    Code,
    /// The PTX of cubins that programs compile.
    Sources,
    /// Triton's results.
    Triton,
}

impl CacheFolder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Code, Self::Sources, Self::Triton];

    fn name(self) -> &'static str {
        match self {
            Self::Code => "instrumented",
            Self::Sources => "sources",
            Self::Triton => "triton",
        }
    }

    /// Returns whether something in this folder is rocov's by its name, and not a file that is being written.
    fn has(self, name: &OsStr) -> bool {
        match self {
            Self::Code => is_hash(name.as_bytes()),
            Self::Sources => name.as_bytes().strip_suffix(b".ptx").is_some_and(is_hash),
            Self::Triton => is_release(name),
        }
    }
}

impl InstrumentCache {
    /// The cache that the environment names: the directory in [`CACHE`], or else that in `$XDG_CACHE_HOME/rocov`
    /// or `~/.cache/rocov`. `None` without one.
    #[must_use]
    pub fn for_user() -> Option<Self> {
        Self::from_environment(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let is_absolute = |path: &PathBuf| path.is_absolute();
        let path = |name: &str| variable(name).map(PathBuf::from);
        let directory = match path(CACHE.name) {
            Some(named) => named,
            None => {
                // As in the XDG Base Directory Specification, a relative path counts as not set.
                let common = path(XDG_CACHE_HOME.name).filter(is_absolute);
                let in_home = || Some(path("HOME")?.join(".cache"));
                common.or_else(in_home)?.join("rocov")
            }
        };
        let most = variable(CACHE_MAX.name).and_then(|most| parse_bytes(most.to_str()?).ok());
        Some(Self {
            // A relative one would be another after each change of the directory.
            directory: Some(directory).filter(is_absolute)?,
            most: most.or_else(|| parse_bytes(CACHE_MAX.default.literal()).ok())?,
            unchecked: AtomicU64::new(u64::MAX),
        })
    }

    /// The directory of the folders.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn folder(&self, folder: CacheFolder) -> PathBuf {
        self.directory.join(folder.name())
    }

    /// The place of the code with this key.
    #[must_use]
    pub fn code(&self, key: u128) -> PathBuf {
        self.folder(CacheFolder::Code).join(format!("{key:032x}"))
    }

    /// The place of the PTX from which the stand-in for ptxas has made this cubin.
    #[must_use]
    pub fn source(&self, cubin: &[u8]) -> PathBuf {
        let name = format!("{:032x}.ptx", xxh3_128(cubin));
        self.folder(CacheFolder::Sources).join(name)
    }

    /// The directory for Triton's results of this release with such counters.
    #[must_use]
    pub fn results_of_triton(&self, counting: Counting) -> PathBuf {
        let mut release = format!("{}-{INSTRUMENTATION}", env!("CARGO_PKG_VERSION"));
        if counting == Counting::Reached {
            release.push_str(OF_REACHED);
        }
        self.folder(CacheFolder::Triton).join(release)
    }

    /// Reads an entry for a user, by number. The entry counts as used then. `None` if there is none, or one that somebody
    /// else can have written ([`read_own`]).
    #[must_use]
    pub fn read(entry: &Path, user: u32) -> Option<Vec<u8>> {
        let (file, contents) = read_own(entry, user, MAX_ENTRY)?;
        let _ = file.set_modified(SystemTime::now());
        Some(contents)
    }

    /// Writes an entry of a folder, wholly or not at all, and removes others if the folder is too large then. Looks at the
    /// folder with the first entry, and whenever this process has written a part of what the folder may have, because that
    /// takes long if there are thousands of entries. Returns whether it did: an entry that is larger than the limit is not
    /// written.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn write(
        &self,
        folder: CacheFolder,
        entry: &Path,
        contents: &[u8],
    ) -> Result<bool, OutputError> {
        if contents.len() as u64 > self.most {
            return Ok(false);
        }
        write_own(entry, contents)?;
        let written = contents.len() as u64;
        let unchecked = self.unchecked.load(Ordering::Relaxed);
        let unchecked = unchecked.saturating_add(written);
        let is_due = unchecked > self.most / PARTS;
        if is_due {
            shrink(self.entries(folder), self.most);
        }
        let unchecked = if is_due { 0 } else { unchecked };
        self.unchecked.store(unchecked, Ordering::Relaxed);
        Ok(true)
    }

    /// Makes the directory for Triton's results, and shrinks the folder if no other run uses it: Triton reads several files
    /// of an entry, one after the other. The folder is in use until what is returned is dropped. On a file system without
    /// locks it does not shrink. `None` if the directory cannot be made.
    #[must_use]
    pub fn use_triton(&self, counting: Counting) -> Option<File> {
        fs::create_dir_all(self.results_of_triton(counting)).ok()?;
        let folder = File::open(self.folder(CacheFolder::Triton)).ok()?;
        if folder.try_lock().is_ok() {
            shrink(self.entries(CacheFolder::Triton), self.most);
        }
        let _ = folder.lock_shared();
        Some(folder)
    }

    /// Makes the directory that JAX takes for a CUDA toolkit, and returns it. Its ptxas is a link to `assembler`.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub fn use_toolkit(&self, counting: Counting, assembler: &Path) -> io::Result<PathBuf> {
        let toolkit = self.results_of_triton(counting).join(TOOLKIT);
        let folder = toolkit.join("bin");
        fs::create_dir_all(&folder)?;
        let place = folder.join("ptxas");
        if fs::read_link(&place).is_ok_and(|found| found == assembler) {
            return Ok(toolkit);
        }
        // Another run may use it at this moment.
        let new = folder.join(format!("ptxas-{}", std::process::id()));
        let _ = fs::remove_file(&new);
        symlink(assembler, &new)?;
        fs::rename(new, place)?;
        Ok(toolkit)
    }

    /// The entries of a folder.
    fn entries(&self, folder: CacheFolder) -> impl Iterator<Item = CacheEntry> {
        let found = self.found(folder);
        let found = found.into_iter().flat_map(move |path| match folder {
            CacheFolder::Triton => in_directory(&path).map(|entry| entry.1).collect(),
            _ => vec![path],
        });
        found.filter_map(CacheEntry::from_path)
    }

    /// The folders that are there, with what rocov has put into each: files, and directories of Triton's results.
    #[must_use]
    pub fn folders(&self) -> Vec<(PathBuf, Vec<PathBuf>)> {
        let all = CacheFolder::ALL.into_iter();
        let all = all.map(|folder| (self.folder(folder), self.found(folder)));
        all.filter(|(folder, _)| folder.is_dir()).collect()
    }

    fn found(&self, folder: CacheFolder) -> Vec<PathBuf> {
        let is_directory = |path: &PathBuf| {
            let metadata = fs::symlink_metadata(path);
            metadata.is_ok_and(|metadata| metadata.is_dir())
        };
        let found = in_directory(&self.folder(folder));
        let found = found
            .filter(|(name, _)| folder.has(name))
            .map(|entry| entry.1);
        let mut found: Vec<_> = found
            .filter(|path| is_directory(path) == (folder == CacheFolder::Triton))
            .collect();
        found.sort();
        found
    }
}

/// The names and paths of what is in a directory.
fn in_directory(directory: &Path) -> impl Iterator<Item = (OsString, PathBuf)> + use<> {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    found.map(|entry| (entry.file_name(), entry.path()))
}

/// Returns whether a name is a hash of 128 bits.
fn is_hash(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether a name is a version of rocov, and the number and the kind of its counters.
fn is_release(name: &OsStr) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.to_str();
    let name = name.map(|name| name.strip_suffix(OF_REACHED).unwrap_or(name));
    let parts = name.and_then(|name| name.rsplit_once('-'));
    parts.is_some_and(|(version, number)| {
        is_number(number)
            && version.split('.').count() == 3
            && version.starts_with(char::is_numeric)
    })
}

#[cfg(test)]
#[path = "instrument_cache_tests.rs"]
mod tests;
