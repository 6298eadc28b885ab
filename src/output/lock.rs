//! Locks between processes.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};

use super::OutputError;

/// How long another process may hold the lock. It is held for reading, adding and writing one
/// file: a process that needs longer is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes the lock that compiler-rt takes on a file it merges into: fcntl's, for writing, on all of
/// it. (The standard library's `File::lock` is flock's, and the two do not see each other.) It is
/// given back when the process closes the file, or ends.
///
/// Asks again and again instead of waiting in the kernel, which could not be bounded without a
/// signal: in somebody else's process that is not ours to send.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), OutputError> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
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
        let waited = start.elapsed();
        if waited >= PATIENCE {
            return Err(OutputError::Locked {
                path: path.to_owned(),
                waited,
            });
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
