//! Files that are not in place yet, and the removal of those that killed processes have left.
//!
//! Such a file is called `.rocov-KERNEL-RANDOM` until it is renamed, and its writer holds its lock (`flock`).
//! KERNEL is a part of the boot id of the writer's kernel. Processes under one kernel see each other's locks,
//! in any container and on any file system: there, an unlocked file has no writer. Other hosts see these
//! locks only on some file systems, so a file from another kernel must also be [`OLD`]. Process ids would not
//! help: they repeat in every container and on every host.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::store::regular_file::itself;

/// The prefix of files and directories that are not yet in place.
pub const PARTIAL: &str = ".rocov-";

/// The time after the last change when a file from another kernel counts as abandoned. Writing one takes
/// milliseconds.
const OLD: Duration = Duration::from_secs(60 * 60);

/// The prefix of this process's partial files: [`PARTIAL`], its kernel, and a dash.
#[must_use]
pub fn partial_prefix() -> String {
    format!("{PARTIAL}{:08x}-", kernel())
}

/// Takes the lock of a new file or directory. The lock is held until `file` is closed. Returns whether the
/// file is still there: another process may have removed it as a leftover.
#[must_use]
pub fn hold(file: &File) -> bool {
    // If the metadata cannot be read, assume that the file is there: a new one would be no better.
    lock_new(file) && !file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

/// Takes the lock of a new file as [`hold`] does, without a look whether it is still there. Returns whether no other
/// process has the lock, to remove the file.
pub(super) fn lock_new(file: &File) -> bool {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        // If the file system has no locks, no process takes the file for a leftover.
        Ok(()) | Err(TryLockError::Error(_)) => true,
    }
}

/// Calls `remove` for all abandoned files in `directory`. If it fails, the file stays.
pub fn sweep(directory: &Path, remove: impl Fn(&Path) -> io::Result<()>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PARTIAL));
        let Some((writer, _)) = rest.and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        let path = entry.path();
        // Holds the lock until the file is removed, so that no other process uses it.
        if let Some(_locked) = abandoned(&path, u32::from_str_radix(writer, 16).ok()) {
            let _ = remove(&path);
        }
    }
}

/// Removes abandoned files, the first time that this process writes to `directory`.
pub(crate) fn sweep_once(directory: &Path) {
    // Each label has a directory, and there may be thousands.
    static SWEPT: LazyLock<Mutex<HashSet<Arc<OsStr>>>> = LazyLock::new(Mutex::default);
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !swept.contains(directory.as_os_str()) {
        swept.insert(directory.as_os_str().into());
        drop(swept);
        sweep(directory, |path| fs::remove_file(path));
    }
}

/// Opens and locks the file at `path`, if no process that runs under the kernel `writer` writes to it.
fn abandoned(path: &Path, writer: Option<u32>) -> Option<File> {
    let file = itself(File::options().read(true)).open(path).ok()?;
    file.try_lock().ok()?;
    let is_ours = kernel() != 0 && writer == Some(kernel());
    let changed = file.metadata().ok()?.modified().ok()?;
    (is_ours || changed.elapsed().is_ok_and(|age| age >= OLD)).then_some(file)
}

/// The number of the running kernel: the start of its boot id. 0 if that is unknown.
fn kernel() -> u32 {
    static KERNEL: OnceLock<u32> = OnceLock::new();
    *KERNEL.get_or_init(|| {
        let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits = id.get(..8).and_then(|digits| str::from_utf8(digits).ok());
        digits.map_or(0, |digits| u32::from_str_radix(digits, 16).unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::SystemTime;

    use super::*;

    fn make(directory: &Path, name: &str, age: Duration) -> File {
        let file = File::create(directory.join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        file
    }

    fn names(directory: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn what_nobody_writes_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let (new, old) = (Duration::ZERO, OLD + Duration::from_secs(1));
        let ours = partial_prefix();
        let theirs = format!("{PARTIAL}{:08x}-", !kernel());
        for name in ["left", "held"] {
            make(path, &format!("{ours}{name}"), new);
            make(path, &format!("{theirs}old-{name}"), old);
        }
        let kept = [
            format!("{ours}held"),
            format!("{theirs}old-held"),
            format!("{theirs}new"),
            ".rocov-unknown-new".to_owned(),
            ".rocov-nothing".to_owned(),
            "app.profraw".to_owned(),
        ];
        for name in &kept[2..] {
            make(path, name, if name.ends_with("new") { new } else { old });
        }
        let held = kept[..2].iter().map(|name| {
            let file = File::open(path.join(name)).unwrap();
            assert!(hold(&file));
            file
        });
        let held: Vec<_> = held.collect();
        // The target of the link is not ours.
        std::os::unix::fs::symlink("app.profraw", path.join(format!("{ours}link"))).unwrap();

        sweep(path, |path| fs::remove_file(path));
        let mut expected = BTreeSet::from(kept);
        expected.insert(format!("{ours}link"));
        assert_eq!(names(path), expected);

        drop(held);
        sweep(path, |path| fs::remove_file(path));
        assert_eq!(names(path).len(), expected.len() - 2);
    }

    #[test]
    fn who_makes_a_file_knows_that_it_was_swept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let name = format!("{}x", partial_prefix());
        let file = make(path, &name, Duration::ZERO);
        sweep(path, |path| fs::remove_file(path));
        assert!(!hold(&file), "it is gone");
        let file = make(path, &name, Duration::ZERO);
        sweep(path, |path| {
            assert!(!hold(&file), "it is about to go");
            fs::remove_file(path)
        });
        assert_eq!(names(path), BTreeSet::new());
    }

    #[test]
    fn a_directory_is_swept_once() {
        let directory = tempfile::tempdir().unwrap();
        for left in [0, 1] {
            make(
                directory.path(),
                &format!("{}x", partial_prefix()),
                Duration::ZERO,
            );
            sweep_once(directory.path());
            assert_eq!(names(directory.path()).len(), left);
        }
    }
}
