//! Locks between processes.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, fcntl_lock};

use super::OutputError;
use crate::pauses::Pauses;

/// How long another process may hold the lock. It is held for reading, adding and writing one
/// file: a process that needs longer is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// What excludes the threads of this process from each other: fcntl's lock is the process's.
static THREADS: Mutex<()> = Mutex::new(());

/// A file whose lock is held until this goes. The file is closed before another thread can lock it:
/// closing gives back the locks of the process, whoever took them.
pub(super) struct Locked {
    pub(super) file: File,
    _threads: MutexGuard<'static, ()>,
}

/// Takes the lock that compiler-rt takes on a file it merges into: fcntl's, for writing, on all of
/// it. (The standard library's `File::lock` is flock's, and the two do not see each other.)
///
/// Asks again and again instead of waiting in the kernel, which could not be bounded without a
/// signal: in somebody else's process that is not ours to send.
pub(super) fn lock(file: File, path: &Path) -> Result<Locked, OutputError> {
    let _threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let locked = Locked { file, _threads };
    let mut pauses = Pauses::new(
        PATIENCE,
        Duration::from_micros(100),
        Duration::from_millis(10),
    );
    loop {
        match fcntl_lock(&locked.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(locked),
            Err(error) => {
                let error = io::Error::from(error);
                let held = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::PermissionDenied
                        | io::ErrorKind::Interrupted
                );
                if !held {
                    return Err(OutputError::io("lock", path)(error));
                }
            }
        }
        if !pauses.take() {
            return Err(OutputError::Locked {
                path: path.to_owned(),
                waited: PATIENCE,
            });
        }
    }
}
