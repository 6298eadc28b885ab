//! Results on disk: an entry for each cubin that was made, and for each PTX that the driver refuses.
//!
//! An entry is named for everything that it depends on, and starts with a hash of its contents. So a damaged entry is made
//! again. Entries appear wholly or not at all, so several processes may write one at a time. A cache that cannot be written
//! is no failure.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | in ASCII: `rocovins`, or `rocovnot` for a refusal |
//! | 16 | XXH3 of the contents, 128 bits, little endian |
//! | | the contents: the code that was made, or the reason of the refusal |

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rocov::device::cuda::exchange::{ENTRIES, SOURCES, source_name};
use rocov::settings::{defaults, parse_bytes};
use rocov::store::write_atomic;
use xxhash_rust::xxh3::xxh3_128;

/// The start of code that was made.
const MADE: &[u8; 8] = b"rocovins";
/// The start of a refusal.
const REFUSED: &[u8; 8] = b"rocovnot";
const HEADER: usize = 24;
/// The variable that names the cache.
const DIRECTORY: &str = "ROCOV_CACHE";
/// The variable that limits it.
const MOST: &str = "ROCOV_CACHE_MAX";

/// The cache of this user.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    /// The most bytes of all entries together.
    most: u64,
}

impl Cache {
    /// The cache that the environment names. `None` if it names none.
    pub(crate) fn of_user() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let own = set(DIRECTORY).map(PathBuf::from);
        let in_home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let common = || set("XDG_CACHE_HOME").map(PathBuf::from).or_else(in_home);
        let directory = own.or_else(|| Some(common()?.join("rocov")))?;
        let most = set(MOST).and_then(|most| parse_bytes(most.to_str()?).ok());
        let usual = || parse_bytes(defaults::CACHE_MAX).ok();
        Some(Self {
            // A relative one would be another after each change of the directory.
            directory: directory.is_absolute().then_some(directory)?,
            most: most.or_else(usual)?,
        })
    }

    /// The result with this key: code, or the reason why there is none. `None` if there is no entry, or a damaged one, or
    /// one that another user has written.
    pub(crate) fn get(&self, key: u128) -> Option<Result<Vec<u8>, String>> {
        let path = self.entry(key);
        let file = File::open(&path).ok()?;
        let is_trusted = |owner: u32| owner == 0 || owner == user();
        file.metadata().ok().filter(|it| is_trusted(it.uid()))?;
        let bytes = fs::read(&path).ok()?;
        let result = contents(&bytes)?;
        // The oldest are removed first.
        let _ = file.set_modified(SystemTime::now());
        Some(result)
    }

    /// Keeps a result, and removes the oldest entries if all together are too large.
    pub(crate) fn put(&self, key: u128, result: Result<&[u8], &str>) {
        let (magic, contents) = match result {
            Ok(code) => (MADE, code),
            Err(reason) => (REFUSED, reason.as_bytes()),
        };
        let hash = xxh3_128(contents).to_le_bytes();
        let entry = [magic.as_slice(), &hash, contents].concat();
        if entry.len() as u64 <= self.most && write_atomic(&self.entry(key), &entry).is_ok() {
            self.shrink();
        }
    }

    /// The PTX from which the stand-in for ptxas has made the cubin with these contents.
    pub(crate) fn source(&self, cubin: &[u8]) -> Option<String> {
        fs::read_to_string(self.directory.join(SOURCES).join(source_name(cubin))).ok()
    }

    fn entry(&self, key: u128) -> PathBuf {
        self.directory.join(ENTRIES).join(format!("{key:032x}"))
    }

    fn shrink(&self) {
        let Ok(files) = fs::read_dir(self.directory.join(ENTRIES)) else {
            return;
        };
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = files
            .flatten()
            .filter(|file| is_entry(&file.path()))
            .filter_map(|file| {
                let data = file.metadata().ok()?;
                Some((data.modified().ok()?, data.len(), file.path()))
            })
            .collect();
        let mut size: u64 = entries.iter().map(|(_, size, _)| size).sum();
        entries.sort_unstable();
        for (_, own, path) in entries {
            if size <= self.most {
                break;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            size -= own;
        }
    }
}

/// Returns whether a file is an entry, and not one that is being written.
fn is_entry(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The result in an entry. `None` if it is damaged.
fn contents(entry: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let (header, contents) = entry.split_at_checked(HEADER)?;
    let (magic, hash) = header.split_at(MADE.len());
    if hash != xxh3_128(contents).to_le_bytes() {
        return None;
    }
    match magic {
        magic if magic == MADE => Some(Ok(contents.to_vec())),
        magic if magic == REFUSED => Some(Err(String::from_utf8(contents.to_vec()).ok()?)),
        _ => None,
    }
}

/// The number of this user.
#[expect(unsafe_code, reason = "asks for the user of the process")]
fn user() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn cache(directory: &Path, most: u64) -> Cache {
        Cache {
            directory: directory.to_owned(),
            most,
        }
    }

    #[test]
    fn an_entry_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), 1000);
        assert_eq!(cache.get(1), None);
        cache.put(1, Ok(b"one"));
        cache.put(2, Ok(b""));
        assert_eq!(cache.get(1).unwrap(), Ok(b"one".to_vec()));
        assert_eq!(cache.get(2).unwrap(), Ok(Vec::new()));
        assert_eq!(cache.get(3), None);
        cache.put(3, Err("it is wrong"));
        assert_eq!(cache.get(3).unwrap(), Err("it is wrong".to_owned()));
    }

    #[test]
    fn a_damaged_entry_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), 1000);
        cache.put(7, Ok(b"cubin"));
        let whole = fs::read(cache.entry(7)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(cache.entry(7), &bytes).unwrap();
            assert_eq!(cache.get(7), None, "byte {at}");
            fs::write(cache.entry(7), &whole[..at]).unwrap();
            assert_eq!(cache.get(7), None, "{at} bytes");
        }
        cache.put(7, Ok(b"cubin"));
        assert_eq!(cache.get(7).unwrap(), Ok(b"cubin".to_vec()));
    }

    #[test]
    fn the_oldest_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let one = (HEADER + 100) as u64;
        let cache = cache(directory.path(), 3 * one);
        let at = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        for key in 0..3 {
            cache.put(key, Ok(&[0; 100]));
            let file = File::options().append(true).open(cache.entry(key)).unwrap();
            file.set_modified(at(key as u64)).unwrap();
        }
        // It was used last.
        assert!(cache.get(0).is_some());
        cache.put(3, Ok(&[0; 100]));
        let found: Vec<bool> = (0..4).map(|key| cache.get(key).is_some()).collect();
        assert_eq!(found, [true, false, true, true]);
        cache.put(4, Ok(&[0; 1000]));
        assert_eq!(cache.get(4), None, "it is larger than the cache");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_failure() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let below_a_file = cache(&file.join("below"), 1000);
        below_a_file.put(1, Ok(b"one"));
        assert_eq!(below_a_file.get(1), None);
        let closed = directory.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        let closed = cache(&closed, 1000);
        closed.put(1, Ok(b"one"));
        // Root writes everywhere.
        assert_eq!(closed.get(1).is_some(), user() == 0);
    }

    #[test]
    fn several_writers_leave_whole_entries() {
        let directory = tempfile::tempdir().unwrap();
        let cubin = vec![5; 100_000];
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let cache = cache(directory.path(), 1 << 20);
                    for _ in 0..10 {
                        cache.put(9, Ok(&cubin));
                        assert_eq!(cache.get(9).unwrap(), Ok(cubin.clone()));
                    }
                });
            }
        });
    }
}
