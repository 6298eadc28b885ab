//! The state of data directories, to find out when a program has written to them.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::walk::{DirectoryWalk, FoundFile};

/// A number that changes if a file of the data directories is written, replaced or removed. Files that are not of
/// data directories do not count.
///
/// It looks at each file. inotify(7) would report no change on a file system of the network, where ranks write.
pub(crate) fn fingerprint(directories: &[PathBuf]) -> u64 {
    let mut state = DefaultHasher::new();
    for directory in directories {
        directory.hash(&mut state);
        if !directory.is_dir() {
            add(directory, &mut state);
            continue;
        }
        let mut found = |file: FoundFile, _| add(file.path(), &mut state);
        DirectoryWalk::new(&mut found).named(directory);
    }
    state.finish()
}

/// Adds the place, size and time of a file.
fn add(path: &Path, state: &mut impl Hasher) {
    path.hash(state);
    let metadata = fs::metadata(path).ok();
    let metadata = metadata.map(|metadata| {
        (
            metadata.ino(),
            metadata.size(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        )
    });
    metadata.hash(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_change_it_and_other_files_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let directories = [directory.path().join("data")];
        let now = || fingerprint(&directories);
        let absent = now();
        fs::create_dir(&directories[0]).unwrap();
        let empty = now();
        assert_ne!(empty, absent);
        fs::write(directories[0].join("notes.txt"), "mine").unwrap();
        assert_eq!(now(), empty);
        let profile = directories[0].join("gfx90a.0123456789abcdef.0.1.profraw");
        fs::write(&profile, "one").unwrap();
        let one = now();
        assert_ne!(one, empty);
        fs::write(&profile, "another").unwrap();
        assert_ne!(now(), one);
        fs::remove_file(&profile).unwrap();
        assert_eq!(now(), empty);
    }
}
