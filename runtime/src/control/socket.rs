//! The socket: in a directory that is the user's alone, for the user and root.

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

use rocov::control::{peer, place};

use super::own::Own;
use crate::log;
use crate::process::user;

/// The path of the socket that this process listens on.
static PATH: OnceLock<CString> = OnceLock::new();
/// Whether it is there.
static IS_THERE: AtomicBool = AtomicBool::new(false);
/// Its descriptor.
static LISTENER: OnceLock<Own> = OnceLock::new();
/// Whether somebody listens.
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Listens below `directory`. Where that cannot be, it is said, and nobody can ask for anything.
pub(super) fn listen(directory: &Path) -> Option<UnixListener> {
    let path = place::socket(directory, std::process::id());
    let listener = match own_directory(directory).and_then(|()| bind(&path)) {
        Ok(listener) => listener,
        Err(error) => {
            log::warn(format_args!(
                "cannot listen on {}: {error}; `rocov dump` and `rocov status` find nobody here",
                path.display()
            ));
            return None;
        }
    };
    let own = Own::new(listener.as_raw_fd());
    let is_set = own.is_some_and(|own| LISTENER.set(own).is_ok());
    LISTENS.store(is_set, Ordering::Release);
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        IS_THERE.store(PATH.set(path).is_ok(), Ordering::Release);
    }
    Some(listener)
}

/// Makes the directory, or makes sure that it is the user's own and no other's business.
fn own_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A symbolic link may lead anywhere, also later than now.
    let metadata = symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != user() || metadata.mode() & 0o077 != 0 {
        return Err(other(
            "its directory has to be a directory of this user's with the mode 0700",
        ));
    }
    Ok(())
}

/// A process of this number may have left its socket behind. But one that listens lives, in another
/// PID namespace.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Ok(metadata) = symlink_metadata(path) {
        if !metadata.file_type().is_socket() {
            return Err(other("there is a file that is no socket"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(other(
                "a process of the same number, of another PID namespace, listens there",
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

/// Whether whoever has connected may ask: the user, and root.
///
/// # Errors
/// Says who may.
pub(super) fn admits(stream: &UnixStream) -> Result<(), String> {
    let peer = peer::of(stream).map(|peer| peer.user);
    if peer.is_ok_and(|peer| peer == 0 || peer == user()) {
        return Ok(());
    }
    Err(format!("only user {} and root may ask", user()))
}

/// Takes the socket's name away. Async-signal-safe.
pub(super) fn remove() {
    if IS_THERE.swap(false, Ordering::AcqRel)
        && let Some(path) = PATH.get()
    {
        // SAFETY: the path ends with a NUL.
        unsafe { libc::unlink(path.as_ptr()) };
    }
}

/// The same where nobody will answer: the listener is closed.
pub(super) fn gone() {
    LISTENS.store(false, Ordering::Relaxed);
    remove();
}

/// A child of a fork that kept it would keep the name alive, and answer nobody.
pub(super) fn close_in_child() {
    if LISTENS.swap(false, Ordering::Relaxed)
        && let Some(listener) = LISTENER.get()
    {
        listener.close();
    }
}
