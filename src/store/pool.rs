//! Files that several processes, ranks and GPUs add their counts to (`%m`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::format::profraw::{Parts, Pooled, Sum, encode};
use crate::store::OutputError;
use crate::store::atomic::{create_atomic, write_atomic};
use crate::store::interrupted::uninterrupted;
use crate::store::lock::{Locked, lock};
use crate::store::partial_files::sweep_once;
use crate::store::regular_file::{open_regular, read};

/// The limit on attempts when other processes make or replace the file meanwhile. It is larger than the
/// number of processes that do so at a time.
const TRIES: u32 = 10_000;

/// Adds the counts of `parts` to the profile at `path`, or makes the profile from `parts`.
///
/// Counts are added in place (see `Pooled`). On most file systems, replacing the file would cost far more
/// than the counts, and all processes that wait for the lock would then hold a file that is gone. A reader
/// without the lock finds old sums or new ones. If two additions happen during one read, it may mix them, but
/// each count is one that was there.
///
/// This does not read the records and names of the file. If they are damaged, their readers ([`Sum::new`])
/// report it.
///
/// A raw profile of equal code without room for this (a merge of others, or a profile of an earlier release)
/// is replaced in one step by one with room.
///
/// # Errors
/// Fails if the file cannot be read, locked or written, is not a profile of this code, or is not a regular
/// file: links are not followed. The counts in the file do not change then.
pub fn add_to_pool(path: &Path, parts: &Parts<'_>) -> Result<(), OutputError> {
    let refused = |source| OutputError::Pool {
        path: path.to_owned(),
        source,
    };
    let ours = encode(parts);
    let pooled = Pooled::new(&ours).map_err(refused)?;
    update_pooled(path, &|| pooled.file(), |file| {
        if add_in_place(file, &pooled).map_err(OutputError::io("add to", path))? {
            return Ok(None);
        }
        let mut sum = Sum::new(read(file, path)?).map_err(refused)?;
        sum.add(&ours).map_err(refused)?;
        let pooled = Pooled::new(sum.bytes()).map_err(refused)?;
        Ok(Some(pooled.file()))
    })
}

/// Adds counts to a file that has room for them. Returns whether the file has room and is of this code. If
/// not, it does not change.
fn add_in_place(file: &File, pooled: &Pooled<'_>) -> io::Result<bool> {
    if uninterrupted(|| file.metadata())?.len() != pooled.len() {
        return Ok(false);
    }
    let headers = [0, 1].map(|half| pooled.header(half));
    let mut header = vec![0; headers[0].len()];
    file.read_exact_at(&mut header, 0)?;
    let Some(in_force) = headers.iter().position(|known| *known == header) else {
        return Ok(false);
    };
    let room = pooled.room();
    let place = |half| (room.start + half * room.len()) as u64;
    let mut counts = vec![0; room.len()];
    file.read_exact_at(&mut counts, place(in_force))?;
    if !pooled.add_to(&mut counts) {
        return Ok(false);
    }
    if let Some(records) = pooled.records_with_wave_sizes() {
        let start = records.start as u64;
        let mut records = vec![0; records.len()];
        file.read_exact_at(&mut records, start)?;
        // All other bytes stay, so a part of this write leaves whole records, too.
        if pooled.take_wave_sizes(&mut records) {
            file.write_all_at(&records, start)?;
        }
    }
    let other = 1 - in_force;
    file.write_all_at(&counts, place(other))?;
    if let Err(error) = file.write_all_at(&headers[other], 0) {
        // A part of it may have been written. These counts are reported as lost, so they must not be in the
        // file.
        let _ = file.write_all_at(&headers[in_force], 0);
        return Err(error);
    }
    Ok(true)
}

/// Calls `change` for the file at `path`, under its lock. If `change` returns contents, they replace the file
/// in one step. If there is no file, makes one from the result of `create`.
///
/// # Errors
/// Fails if the file cannot be opened, locked or replaced, is not a regular file, or `change` fails.
pub(crate) fn update_pooled<E: From<OutputError>>(
    path: &Path,
    create: &dyn Fn() -> Vec<u8>,
    change: impl FnOnce(&File) -> Result<Option<Vec<u8>>, E>,
) -> Result<(), E> {
    sweep_once(path.parent().unwrap_or(path));
    for _ in 0..TRIES {
        let Some(locked) = lock_at(path)? else {
            if create_atomic(path, &create())? {
                return Ok(());
            }
            continue;
        };
        if let Some(contents) = change(&locked.file)? {
            write_atomic(path, &contents)?;
        }
        return Ok(());
    }
    Err(busy(path).into())
}

/// Locks the file at `path`. `None` if there is none.
///
/// # Errors
/// Fails if the file cannot be opened or locked, or is not a regular file.
pub(super) fn lock_at(path: &Path) -> Result<Option<Locked>, OutputError> {
    for _ in 0..TRIES {
        // Open for writing: fcntl requires it for this kind of lock.
        let Some(file) = open_regular(path, File::options().read(true).write(true))? else {
            return Ok(None);
        };
        let locked = lock(file, path)?;
        // Another process may have replaced the file during the wait.
        if is_at(&locked.file, path)? {
            return Ok(Some(locked));
        }
    }
    Err(busy(path))
}

fn busy(path: &Path) -> OutputError {
    OutputError::io("add to", path)(io::ErrorKind::ResourceBusy.into())
}

/// Returns whether `file` is still at `path`.
fn is_at(file: &File, path: &Path) -> Result<bool, OutputError> {
    let look_at = OutputError::io("look at", path);
    let opened = uninterrupted(|| file.metadata()).map_err(look_at)?;
    match uninterrupted(|| fs::symlink_metadata(path)) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(OutputError::io("look at", path)(error)),
    }
}
