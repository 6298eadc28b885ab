//! Locks between processes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, fcntl_lock};

use crate::store::OutputError;
use crate::store::interrupted::uninterrupted;
use crate::support::backoff::Pauses;

/// The longest time that another process may hold a lock. A process holds it to read, add to and write one
/// file. If it needs longer, it is stuck or wants to block others.
const PATIENCE: Duration = Duration::from_secs(60);

static LOCKS: Locks = Locks::with_patience(PATIENCE);

/// A process's experience with locks.
///
/// Any process that may read a file may lock it, and so block the processes that add to it. So a process
/// waits in full for only one stuck lock. While that one is held, it tries others once.
#[derive(Debug)]
struct Locks {
    patience: Duration,
    /// Excludes the threads of this process from each other, because fcntl locks belong to the process. Holds
    /// the path of the stuck lock.
    threads: Mutex<Option<PathBuf>>,
}

/// A file whose lock is held until this is dropped. The file is closed before another thread can lock it:
/// closing a file releases the process's locks on it, whoever took them.
pub(super) struct Locked {
    pub(super) file: File,
    threads: MutexGuard<'static, Option<PathBuf>>,
}

/// Takes the lock that compiler-rt takes on a file that it merges into: an fcntl lock for writing, on the
/// whole file. (The standard library's `File::lock` uses flock, and the two do not see each other.)
///
/// It polls instead of waiting in the kernel. Only a signal could limit that wait, and rocov must not send
/// one in a guest process.
pub(super) fn lock(file: File, path: &Path) -> Result<Locked, OutputError> {
    LOCKS.lock(file, path)
}

impl Locks {
    const fn with_patience(patience: Duration) -> Self {
        Self {
            patience,
            threads: Mutex::new(None),
        }
    }

    fn lock(&'static self, file: File, path: &Path) -> Result<Locked, OutputError> {
        let stuck = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = match *stuck {
            Some(_) => Duration::ZERO,
            None => self.patience,
        };
        let mut locked = Locked {
            file,
            threads: stuck,
        };
        let mut pauses = Pauses::new(
            waited,
            Duration::from_micros(100),
            Duration::from_millis(10),
        );
        while !is_taken(&locked.file).map_err(OutputError::io("lock", path))? {
            if !pauses.take() {
                locked.threads.get_or_insert_with(|| path.to_owned());
                return Err(OutputError::Locked {
                    path: path.to_owned(),
                    waited,
                });
            }
        }
        // The lock that was stuck is free again.
        locked.threads.take_if(|stuck| stuck == path);
        Ok(locked)
    }
}

/// Tries to take the lock. Returns whether it did.
fn is_taken(file: &File) -> io::Result<bool> {
    let take = || Ok(fcntl_lock(file, FlockOperation::NonBlockingLockExclusive)?);
    match uninterrupted(take) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied => Ok(false),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// The variable that passes the directory of the files to the process that holds locks.
    const HELD: &str = "ROCOV_TEST_HELD";

    #[test]
    #[ignore = "runs within the other test here, as another process"]
    fn a_process_that_may_only_read() {
        let directory = PathBuf::from(std::env::var_os(HELD).expect("a directory"));
        let files = ["one", "other"].map(|name| File::open(directory.join(name)).expect("a file"));
        for file in &files {
            fcntl_lock(file, FlockOperation::NonBlockingLockShared).expect("a lock");
        }
        io::stderr().write_all(b".").expect("a pipe");
        io::stdin().read_to_end(&mut Vec::new()).expect("a pipe");
    }

    fn holds(directory: &Path) -> Child {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--ignored",
                "--exact",
                "store::lock::tests::a_process_that_may_only_read",
            ])
            .env(HELD, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let said = child.stderr.as_mut().expect("a pipe");
        said.read_exact(&mut [0]).expect("its locks");
        child
    }

    #[test]
    fn one_lock_alone_is_waited_for_in_vain() {
        static LOCKS: Locks = Locks::with_patience(Duration::from_millis(50));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let paths = ["one", "other", "free"].map(|name| directory.path().join(name));
        let [one, other, free] = &paths;
        let waited = |path: &Path| {
            let file = File::options().read(true).write(true).open(path);
            match LOCKS.lock(file.expect("a file"), path) {
                Ok(_) => None,
                Err(OutputError::Locked { waited, .. }) => Some(waited),
                Err(error) => panic!("{error}"),
            }
        };
        for path in &paths {
            std::fs::write(path, "").expect("a file");
        }
        let mut holder = holds(directory.path());
        assert_eq!(waited(free), None);
        assert_eq!(waited(one), Some(LOCKS.patience));
        assert_eq!(waited(other), Some(Duration::ZERO));
        assert_eq!(waited(free), None);
        assert_eq!(waited(one), Some(Duration::ZERO));
        drop(holder.stdin.take());
        assert!(holder.wait().expect("its end").success());
        assert_eq!(waited(other), None);
        assert_eq!(waited(one), None);
        let mut holder = holds(directory.path());
        assert_eq!(
            waited(other),
            Some(LOCKS.patience),
            "nothing is stuck any more"
        );
        drop(holder.stdin.take());
        assert!(holder.wait().expect("its end").success());
    }
}
