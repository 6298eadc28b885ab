//! Files that several processes, ranks and GPUs add their counts to (`%m`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::OutputError;
use super::atomic::{create_atomic, write_atomic};
use super::interrupted::uninterrupted;
use super::leftovers::sweep_once;
use super::lock::lock;
use super::regular::{open_regular, read};
use crate::profraw::{Parts, Pooled, Sum, encode};

/// How often another process may make or replace a file while this one is about to: more often than
/// there are processes that do so at a time.
const TRIES: u32 = 10_000;

/// Adds the counts of `parts` to the profile at `path`, or makes it of `parts`.
///
/// Counts are added in place, see [`Pooled`]: the file that replaces another would cost most file
/// systems far more than the counts themselves, and all who wait for the lock would find that they
/// have waited for a file that is gone. Who reads the file meanwhile, without the lock, finds old sums
/// or new; two additions during one reading may mix them, each count being one that was there.
///
/// Records and names of the file are not read: whoever has damaged these is told by who reads them
/// ([`Sum::of`]), not here.
///
/// A raw profile of the same code that has no room for this (a merge of others, or what an earlier
/// release left) is replaced by one that has it, in one step.
///
/// # Errors
/// Fails, with the counts in the file as they were, where it cannot be read, locked or written, or is
/// not a profile of the same code, or no regular file: a link is not followed.
pub fn add_to_pool(path: &Path, parts: &Parts<'_>) -> Result<(), OutputError> {
    let refused = |source| OutputError::Pool {
        path: path.to_owned(),
        source,
    };
    let ours = encode(parts);
    let pooled = Pooled::of(&ours).map_err(refused)?;
    update_pooled(path, &|| pooled.file(), |file| {
        if add_in_place(file, &pooled).map_err(OutputError::io("add to", path))? {
            return Ok(None);
        }
        let mut sum = Sum::of(read(file, path)?).map_err(refused)?;
        sum.add(&ours).map_err(refused)?;
        let pooled = Pooled::of(sum.bytes()).map_err(refused)?;
        Ok(Some(pooled.file()))
    })
}

/// Adds counts to a file that has room for it. Returns whether it is of that kind and of the same
/// code; if not, it is as it was.
fn add_in_place(file: &File, pooled: &Pooled<'_>) -> io::Result<bool> {
    if uninterrupted(|| file.metadata())?.len() != pooled.len() {
        return Ok(false);
    }
    let headers = [0, 1].map(|half| pooled.header(half));
    let mut header = vec![0; headers[0].len()];
    file.read_exact_at(&mut header, 0)?;
    let Some(in_force) = headers.iter().position(|it| *it == header) else {
        return Ok(false);
    };
    let room = pooled.room();
    let place = |half| (room.start + half * room.len()) as u64;
    let mut counts = vec![0; room.len()];
    file.read_exact_at(&mut counts, place(in_force))?;
    if !pooled.add_to(&mut counts) {
        return Ok(false);
    }
    let other = 1 - in_force;
    file.write_all_at(&counts, place(other))?;
    if let Err(error) = file.write_all_at(&headers[other], 0) {
        // Some of it may be there all the same. Counts that are called lost go elsewhere.
        let _ = file.write_all_at(&headers[in_force], 0);
        return Err(error);
    }
    Ok(true)
}

/// Has `change` change the file at `path` under its lock, or replace it, in one step, by what it
/// returns. Where there is no file, it is made of what `create` returns.
///
/// # Errors
/// Fails where the file cannot be opened, locked or replaced, is no regular file, or `change` does.
pub(crate) fn update_pooled<E: From<OutputError>>(
    path: &Path,
    create: &dyn Fn() -> Vec<u8>,
    change: impl FnOnce(&File) -> Result<Option<Vec<u8>>, E>,
) -> Result<(), E> {
    sweep_once(path.parent().unwrap_or(path));
    for _ in 0..TRIES {
        // For writing, as fcntl wants it for this kind of lock.
        let Some(file) = open_regular(path, File::options().read(true).write(true))? else {
            if create_atomic(path, &create())? {
                return Ok(());
            }
            continue;
        };
        let locked = lock(file, path)?;
        if !is_at(&locked.file, path)? {
            // Another process has replaced it while this one waited.
            continue;
        }
        if let Some(contents) = change(&locked.file)? {
            write_atomic(path, &contents)?;
        }
        return Ok(());
    }
    let busy = io::ErrorKind::ResourceBusy.into();
    Err(OutputError::io("add to", path)(busy).into())
}

/// Whether `file` is still at `path`.
fn is_at(file: &File, path: &Path) -> Result<bool, OutputError> {
    let look_at = OutputError::io("look at", path);
    let opened = uninterrupted(|| file.metadata()).map_err(look_at)?;
    match uninterrupted(|| fs::symlink_metadata(path)) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(OutputError::io("look at", path)(error)),
    }
}
