//! Files that several processes, ranks and GPUs add their counts to (`%m`).

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::OutputError;
use super::atomic::{create_atomic, write_atomic};
use super::lock::lock;
use crate::profraw::{Counts, Parts, ProfileError, RawProfile, encode};

/// Adds `counts` to the profile at `path`, or makes it of `parts`, whose counts they are.
///
/// The new contents replace the old in one step, under the lock; a reader that takes no lock sees
/// one or the other.
///
/// # Errors
/// Fails, with the file as it was, where it cannot be read, locked or replaced, or is not a
/// profile of the same code.
pub fn add_to_pool(path: &Path, parts: &Parts<'_>, counts: &Counts) -> Result<(), OutputError> {
    let ours = encode(parts);
    loop {
        if create_atomic(path, &ours)? {
            return Ok(());
        }
        // For writing, as fcntl wants it for this kind of lock.
        let opened = File::options().read(true).write(true).open(path);
        let mut file = match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            opened => opened.map_err(OutputError::io("open", path))?,
        };
        lock(&file, path)?;
        if !is_at(&file, path)? {
            // Another process has replaced it while this one waited.
            continue;
        }
        let mut theirs = Vec::new();
        file.read_to_end(&mut theirs)
            .map_err(OutputError::io("read", path))?;
        let sum = add(theirs, &ours, parts, counts).map_err(|source| OutputError::Pool {
            path: path.to_owned(),
            source,
        })?;
        // The lock goes with `file`, after this.
        return write_atomic(path, &sum);
    }
}

/// Whether `path` still leads to `file`.
fn is_at(file: &File, path: &Path) -> Result<bool, OutputError> {
    let opened = file.metadata().map_err(OutputError::io("look at", path))?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(OutputError::io("look at", path)(error)),
    }
}

/// The file `theirs` with `counts` added. Apart from what is counted, both files must be alike.
fn add(
    mut theirs: Vec<u8>,
    ours: &[u8],
    parts: &Parts<'_>,
    counts: &Counts,
) -> Result<Vec<u8>, ProfileError> {
    let profile = RawProfile::parse(&theirs)?;
    let expected = RawProfile::parse(ours)?;
    let constant = |profile: &RawProfile, file: &[u8]| {
        [
            &file[..profile.counters.start],
            &file[profile.names.clone()],
        ]
        .concat()
    };
    if theirs.len() != ours.len() || constant(&profile, &theirs) != constant(&expected, ours) {
        return Err(ProfileError::OtherCode);
    }
    let mut sum = Counts {
        counters: theirs[profile.counters.clone()].to_vec(),
        bitmap: theirs[profile.bitmap.clone()].to_vec(),
        uniform: theirs[profile.uniform.clone()].to_vec(),
    };
    sum.add(counts, &parts.version)?;
    theirs[profile.counters].copy_from_slice(&sum.counters);
    theirs[profile.bitmap].copy_from_slice(&sum.bitmap);
    theirs[profile.uniform].copy_from_slice(&sum.uniform);
    Ok(theirs)
}
