//! The socket, in a private directory of the user. It serves the user and root.
#![expect(unsafe_code, reason = "calls unlink in signal handlers")]

use std::ffi::CString;
use std::fs::{DirBuilder, Permissions, set_permissions, symlink_metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rocov::control::{peer, socket_path};
use rocov::support::diagnostic::diagnostic;

use super::owned_fd::OwnedFd;
use crate::guest::log;
use crate::guest::process::effective_user_id;

/// The path of the socket that this process listens on.
static PATH: OnceLock<CString> = OnceLock::new();
/// Set while the path is there.
static IS_THERE: AtomicBool = AtomicBool::new(false);
/// The descriptor of the socket.
static LISTENER: OnceLock<OwnedFd> = OnceLock::new();
/// Set while the process listens.
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Listens below `directory`. Prints a line if that fails: then no client can ask for anything.
pub(super) fn listen(directory: &Path) -> Option<UnixListener> {
    let path = socket_path::socket(directory, std::process::id());
    let listener = match own_directory(directory).and_then(|()| bind(&path)) {
        Ok(listener) => listener,
        Err(error) => {
            log::warn(diagnostic!(
                "cannot listen on {}: {error}; `rocov dump` and `rocov status` cannot find this process",
                path.display();
                "name another directory with ROCOV_CONTROL"
            ));
            return None;
        }
    };
    let fd = OwnedFd::new(listener.as_raw_fd());
    let is_set = fd.is_some_and(|fd| LISTENER.set(fd).is_ok());
    LISTENS.store(is_set, Ordering::Release);
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        IS_THERE.store(PATH.set(path).is_ok(), Ordering::Release);
    }
    Some(listener)
}

/// Makes the directory, or makes sure that it belongs to the user and is closed to others.
fn own_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A symbolic link may lead anywhere, and change later.
    let metadata = symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != effective_user_id() || metadata.mode() & 0o077 != 0 {
        return Err(other(
            "its directory must belong to this user and have mode 0700",
        ));
    }
    Ok(())
}

/// Binds the socket. Replaces one that an earlier process of this number has left. A process that still
/// listens there lives in another PID namespace.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Ok(metadata) = symlink_metadata(path) {
        if !metadata.file_type().is_socket() {
            return Err(other("a file of this name is not a socket"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(other(
                "a process with this PID in another PID namespace listens there",
            ));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn other(why: &str) -> io::Error {
    io::Error::other(why)
}

/// Checks that a client may ask: only the user and root may.
///
/// # Errors
/// Fails if the client is another user; the text names who may ask.
pub(super) fn admits(stream: &UnixStream) -> Result<(), String> {
    let peer = peer::identify(stream).map(|peer| peer.user);
    if peer.is_ok_and(|peer| peer == 0 || peer == effective_user_id()) {
        return Ok(());
    }
    Err(format!(
        "only user {} and root may send requests",
        effective_user_id()
    ))
}

/// Removes the path of the socket. Async-signal-safe.
pub(super) fn remove() {
    if IS_THERE.swap(false, Ordering::AcqRel)
        && let Some(path) = PATH.get()
    {
        // SAFETY: the path ends with a NUL.
        unsafe { libc::unlink(path.as_ptr()) };
    }
}

/// Removes the path, and forgets the listener: nothing will answer.
pub(super) fn gone() {
    LISTENS.store(false, Ordering::Relaxed);
    remove();
}

/// Closes the listener in a forked child, which would keep the socket alive without answering.
pub(super) fn close_in_child() {
    if LISTENS.swap(false, Ordering::Relaxed)
        && let Some(listener) = LISTENER.get()
    {
        listener.close();
    }
}
