//! The build of the program or library that device code comes from.
//!
//! The file may have been replaced since it was loaded, so librocov reads the build id of a loaded
//! object from memory. It reads the file if the object has no build id there, or is not loaded.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use rocov::discover::host_files::{HostFiles, build_of};

use crate::guest::elf_objects;
use crate::guest::elf_objects::maps::{Maps, without_mark};

/// The identity of a file: device, inode, time of the last change. A file that takes its place has
/// another.
type Stamp = (u64, u64, i64, i64);

/// The build of each file that was looked at; `None` for a file without a build.
type Known = BTreeMap<(PathBuf, Option<Stamp>), Option<String>>;

/// Returns the functions by which a session finds the origin of code.
pub(super) fn files() -> HostFiles {
    HostFiles::new(place, known_build)
}

/// Returns the file of code: the program, unless the runtime names another. HIP means the program by
/// `/proc/self/exe`, which is the dynamic linker if the program was started by naming that.
fn place(named: Option<PathBuf>) -> Option<PathBuf> {
    static OWN: LazyLock<Option<PathBuf>> = LazyLock::new(|| fs::read_link("/proc/self/exe").ok());
    let other = named.filter(|named| Some(named) != OWN.as_ref());
    let other = other.map(|other| match other.to_str() {
        Some(name) => without_mark(name).into(),
        None => other,
    });
    other.or_else(elf_objects::executable_file)
}

/// Returns the build of a file. Looks for it once. The file of the program stays the one that runs, whatever takes its place.
fn known_build(file: &Path) -> Option<String> {
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let stamp = (!is_executable(file))
        .then(|| fs::metadata(file).ok())
        .flatten();
    let stamp = stamp.map(|data| (data.dev(), data.ino(), data.mtime(), data.mtime_nsec()));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let build = known
        .entry((file.to_owned(), stamp))
        .or_insert_with(|| loaded(file).or_else(|| on_disk(file)));
    build.clone()
}

/// Returns the build id of the loaded object of `file`.
fn loaded(file: &Path) -> Option<String> {
    if is_executable(file) {
        return elf_objects::executable_build();
    }
    // HIP maps files too, as data.
    Maps::read()
        .starts_of(file)
        .find_map(elf_objects::build_id_at)
}

/// Returns whether a file is that of the program.
fn is_executable(file: &Path) -> bool {
    elf_objects::executable_file().is_some_and(|program| program == file)
}

/// Returns the build of a file on the disk.
fn on_disk(file: &Path) -> Option<String> {
    // The kernel keeps the program's file for as long as it runs.
    let own = is_executable(file).then(|| build_of(Path::new("/proc/self/exe")).ok());
    own.flatten().or_else(|| build_of(file).ok())
}

#[expect(unsafe_code, reason = "loads a library")]
#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn memory_tells_the_build_of_a_loaded_file_that_was_replaced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let library = directory.path().join("liba.so");
        let link = |library: &Path, id: &str| {
            let mut link = Command::new("cc");
            link.args(["-shared", "-x", "c", "/dev/null", "-o"]);
            link.arg(library).arg(format!("-Wl,--build-id={id}"));
            assert!(link.status().expect("a C compiler").success());
        };
        let open = |file: &Path| {
            // SAFETY: the library has no initialisers.
            let opened = unsafe { libloading::Library::new(file) }.expect("a library");
            std::mem::forget(opened);
        };
        link(&library, "0x0123456789abcdef");
        open(&library);
        assert_eq!(known_build(&library).as_deref(), Some("0123456789abcdef"));
        fs::remove_file(&library).expect("a file can be removed");
        link(&library, "0xfedcba9876543210");
        assert_eq!(known_build(&library).as_deref(), Some("0123456789abcdef"));
        fs::remove_file(&library).expect("a file can be removed");
        assert_eq!(known_build(&library).as_deref(), Some("0123456789abcdef"));

        // A library that was opened through a link is known by its own file.
        let target = directory.path().join("libc.so.1.0");
        let name = directory.path().join("libc.so.1");
        link(&target, "0x0123");
        std::os::unix::fs::symlink(&target, &name).expect("a link");
        open(&name);
        let start = Maps::read().starts_of(&target).next().expect("a mapping");
        let object = elf_objects::containing(start as *const _).expect("a loaded object");
        let file = object.mapped_file();
        assert_eq!(file, target);
        fs::remove_file(&target).expect("a file can be removed");
        link(&target, "0x4567");
        assert_eq!(known_build(&file).as_deref(), Some("0123"));

        let other = directory.path().join("libb.so");
        fs::write(&other, "no object").expect("a file can be written");
        assert_eq!(known_build(&other), build_of(&other).ok());
        fs::remove_file(&other).expect("a file can be removed");
        assert_eq!(known_build(&other), None);
    }

    #[test]
    fn the_executable_is_this_test() {
        let test = std::env::current_exe().expect("a path");
        assert_eq!(elf_objects::executable_file().as_ref(), Some(&test));
        assert_eq!(known_build(&test), build_of(&test).ok());
        let other = Some(PathBuf::from("/usr/lib/libother.so"));
        assert_eq!(place(other.clone()), other);
        let removed = PathBuf::from("/usr/lib/libother.so (deleted)");
        assert_eq!(place(Some(removed)), other);
        assert_eq!(place(Some(test.clone())).as_ref(), Some(&test));
        assert_eq!(place(None), Some(test));
    }
}
