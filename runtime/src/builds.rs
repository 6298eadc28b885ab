//! Which build of a program or library code comes from.
//!
//! The file may have been replaced since it was loaded: the build id of a loaded object is read in
//! memory. What has none there, and what is no loaded object, is looked at on the disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rocov::host::{HostFiles, build_of};

use crate::{caller, objects};

/// What tells a file from another that takes its place: device, inode, time of the last change.
type Stamp = (u64, u64, i64, i64);

/// What was found for each file, and `None` for one without a build.
type Known = BTreeMap<(PathBuf, Option<Stamp>), Option<String>>;

/// How a session learns where code comes from.
pub(crate) fn files() -> HostFiles {
    HostFiles::new(place, of_file)
}

/// The file that code is from: the program, unless the runtime names another. HIP means the program by
/// `/proc/self/exe`, which is the dynamic linker if that was named to start it.
fn place(named: Option<PathBuf>) -> Option<PathBuf> {
    let own = fs::read_link("/proc/self/exe").ok();
    let other = named.filter(|named| Some(named) != own.as_ref());
    let other = other.map(|other| match other.to_str() {
        Some(name) => caller::without_mark(name).into(),
        None => other,
    });
    other.or_else(objects::executable_file)
}

/// The build of a file, which is looked for once.
fn of_file(file: &Path) -> Option<String> {
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let stamp = fs::metadata(file).ok();
    let stamp = stamp.map(|it| (it.dev(), it.ino(), it.mtime(), it.mtime_nsec()));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let build = known
        .entry((file.to_owned(), stamp))
        .or_insert_with(|| loaded(file).or_else(|| on_disk(file)));
    build.clone()
}

/// The build id of the object that `file` was loaded as.
fn loaded(file: &Path) -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    // HIP maps files too, as data.
    caller::mappings_of(file, &maps).find_map(objects::build_id_at)
}

fn on_disk(file: &Path) -> Option<String> {
    let is_executable = objects::executable_file().is_some_and(|it| it == file);
    // The kernel keeps the program's file for as long as it runs.
    let own = is_executable.then(|| build_of(Path::new("/proc/self/exe")).ok());
    own.flatten().or_else(|| build_of(file).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_loaded_file_that_was_replaced_is_known_by_what_is_in_memory() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let library = directory.path().join("liba.so");
        let link = |id: &str| {
            let mut link = Command::new("cc");
            link.args(["-shared", "-x", "c", "/dev/null", "-o"]);
            link.arg(&library).arg(format!("-Wl,--build-id={id}"));
            assert!(link.status().expect("a C compiler").success());
        };
        link("0x0123456789abcdef");
        // SAFETY: the library has no initialisers.
        let opened = unsafe { libloading::Library::new(&library) }.expect("a library");
        assert_eq!(of_file(&library).as_deref(), Some("0123456789abcdef"));
        fs::remove_file(&library).expect("a file can be removed");
        link("0xfedcba9876543210");
        assert_eq!(of_file(&library).as_deref(), Some("0123456789abcdef"));
        fs::remove_file(&library).expect("a file can be removed");
        assert_eq!(of_file(&library).as_deref(), Some("0123456789abcdef"));
        std::mem::forget(opened);

        let other = directory.path().join("libb.so");
        fs::write(&other, "no object").expect("a file can be written");
        assert_eq!(of_file(&other), build_of(&other).ok());
        fs::remove_file(&other).expect("a file can be removed");
        assert_eq!(of_file(&other), None);
    }

    #[test]
    fn the_executable_is_this_test() {
        let test = std::env::current_exe().expect("a path");
        assert_eq!(objects::executable_file().as_ref(), Some(&test));
        assert_eq!(of_file(&test), build_of(&test).ok());
        let other = Some(PathBuf::from("/usr/lib/libother.so"));
        assert_eq!(place(other.clone()), other);
        let removed = PathBuf::from("/usr/lib/libother.so (deleted)");
        assert_eq!(place(Some(removed)), other);
        assert_eq!(place(Some(test.clone())).as_ref(), Some(&test));
        assert_eq!(place(None), Some(test));
    }
}
