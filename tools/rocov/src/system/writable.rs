//! Checks that a directory can be written to, without leaving anything there: a program that never
//! uses a GPU leaves no directory.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Result;

use crate::support::failure::failure;
use crate::support::temporary::without_path;

/// Checks that files can be made in `directory`, or in the nearest directory above it that exists.
///
/// # Errors
///
/// Fails if they cannot.
pub(crate) fn check(directory: &Path) -> Result<()> {
    let mut above = directory.ancestors();
    let there = above
        .find(|path| fs::symlink_metadata(path).is_ok())
        .unwrap_or(Path::new("/"));
    // A file without a name, if the file system has such.
    let made = match fs::metadata(there) {
        Ok(metadata) if !metadata.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => tempfile::tempfile_in(there),
        Err(error) => Err(error),
    };
    made.map(drop).map_err(|error| {
        failure!(
            "profiles cannot be written to {}: {}: {}",
            directory.display(), there.display(), without_path(&error);
            "choose another directory with --output"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_need_not_be_there_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        check(&directory.path().join("a/b")).unwrap();
        check(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        fs::write(&file, "").unwrap();
        let below = file.join("data");
        let said = check(&below).unwrap_err().to_string();
        let expected = format!(
            "profiles cannot be written to {}: {}: not a directory; choose another directory with \
             --output",
            below.display(),
            file.display()
        );
        assert_eq!(said, expected);
        // No file can be made there, by nobody.
        let said = check(Path::new("/proc/1/data")).unwrap_err().to_string();
        assert!(
            said.starts_with("profiles cannot be written to /proc/1/data: /proc/1: "),
            "{said}"
        );
    }
}
