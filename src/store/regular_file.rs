//! Opens files in places where others may have put a link, a pipe, a device or an endless file.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::store::OutputError;
use crate::store::interrupted::uninterrupted;

/// Makes `options` open only the file at the place: a link would lead elsewhere, and a pipe would block.
pub(super) fn itself(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed())
}

/// Opens the file at `path`. `None` if there is nothing.
///
/// # Errors
/// Fails if it cannot be opened, or is not a regular file.
pub(super) fn open_regular(
    path: &Path,
    options: &mut OpenOptions,
) -> Result<Option<File>, OutputError> {
    let opened = itself(options).open(path);
    let found = match &opened {
        Ok(file) => uninterrupted(|| file.metadata()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Links, directories and sockets cannot be opened this way.
        Err(_) => uninterrupted(|| fs::symlink_metadata(path)),
    };
    match found.map(|found| found.file_type()) {
        Ok(found) if !found.is_file() => Err(OutputError::NotRegular {
            path: path.to_owned(),
            found: kind(found),
        }),
        _ => opened.map(Some).map_err(OutputError::io("open", path)),
    }
}

/// Opens the regular file at `path` for reading, or the one that a link there leads to. Does not wait for the other end
/// of a pipe.
///
/// # Errors
/// Fails if it cannot be opened. The error for another kind of file is [`io::ErrorKind::InvalidInput`].
pub fn open_input(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    let found = uninterrupted(|| file.metadata())?.file_type();
    match found.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("it is {}, not a regular file", kind(found)),
        )),
    }
}

/// Reads the regular file at `path`, or the one that a link there leads to, if it has at most `most` bytes.
///
/// # Errors
/// Fails if it cannot be opened or read, is not a regular file, or is larger ([`io::ErrorKind::FileTooLarge`]).
pub fn read_input(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    contents(&open_input(path)?, most)
}

/// Opens and reads an entry of a cache for a user, by number, if nobody but this user and root can have written it: a
/// regular file of one of them, which its group and others cannot write, of at most `most` bytes. It reads the
/// file that it has looked at, whatever happens to the path meanwhile. `None` for anything else.
#[must_use]
pub fn read_own(path: &Path, user: u32, most: u64) -> Option<(File, Vec<u8>)> {
    let file = itself(File::options().read(true)).open(path).ok()?;
    let metadata = uninterrupted(|| file.metadata()).ok()?;
    if !metadata.is_file() || !is_own(&metadata, user) {
        return None;
    }
    let contents = contents(&file, most).ok()?;
    Some((file, contents))
}

/// Returns whether a file or a directory belongs to a user, by number, or to root, and its group and others cannot write
/// it.
#[must_use]
pub fn is_own(found: &Metadata, user: u32) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    (found.uid() == user || found.uid() == 0) && found.mode() & WRITABLE_BY_OTHERS == 0
}

/// The contents of an open file of at most `most` bytes.
fn contents(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let too_large = |found: u64| {
        let reason = format!("it has {found} bytes, at most {most} are allowed");
        io::Error::new(io::ErrorKind::FileTooLarge, reason)
    };
    let size = uninterrupted(|| file.metadata())?.len();
    if size > most {
        return Err(too_large(size));
    }
    // It may grow meanwhile.
    let mut contents = Vec::new();
    file.take(most.saturating_add(1))
        .read_to_end(&mut contents)?;
    match contents.len() as u64 {
        found if found > most => Err(too_large(found)),
        _ => Ok(contents),
    }
}

/// The kind of a file that is not regular.
pub(super) fn kind(found: FileType) -> &'static str {
    match found {
        it if it.is_symlink() => "a symbolic link",
        it if it.is_dir() => "a directory",
        it if it.is_fifo() => "a pipe",
        it if it.is_socket() => "a socket",
        _ => "a device",
    }
}

/// The contents of a file that was opened at `path`.
pub(crate) fn read(mut file: &File, path: &Path) -> Result<Vec<u8>, OutputError> {
    let mut contents = Vec::new();
    file.read_to_end(&mut contents)
        .map_err(OutputError::io("read", path))?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size is more than any machine's memory, on a file system with files of 16 TiB at most.
    #[test]
    fn a_file_larger_than_memory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sparse");
        let file = File::create_new(&path).unwrap();
        file.set_len(15 << 40).unwrap();
        let file = File::open(&path).unwrap();
        let said = read(&file, &path).unwrap_err().to_string();
        let expected = format!("cannot read {}: ", path.display());
        assert!(said.starts_with(&expected), "{said}");
        assert!(said.contains("memory"), "{said}");
    }

    /// Calls `act` in a thread, because a test that waits forever names no fault.
    fn at_once<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(act()));
        let result = ended.recv_timeout(std::time::Duration::from_secs(60));
        result.expect("it ends at once")
    }

    fn pipe(directory: &Path) -> std::path::PathBuf {
        let pipe = directory.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        pipe
    }

    #[test]
    fn only_regular_files_are_read_and_up_to_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("file"), "four").unwrap();
        std::os::unix::fs::symlink("file", place("link")).unwrap();
        for name in ["file", "link"] {
            assert_eq!(read_input(&place(name), 4).unwrap(), b"four");
            let error = read_input(&place(name), 3).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(error.to_string(), "it has 4 bytes, at most 3 are allowed");
        }
        File::create(place("sparse"))
            .unwrap()
            .set_len(20 << 30)
            .unwrap();
        let error = read_input(&place("sparse"), 1 << 30).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        for (path, what) in [
            (pipe(directory.path()), "a pipe"),
            (directory.path().to_owned(), "a directory"),
            ("/dev/zero".into(), "a device"),
        ] {
            let error = at_once(move || read_input(&path, 1 << 30).unwrap_err());
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(
                error.to_string(),
                format!("it is {what}, not a regular file")
            );
        }
    }

    #[test]
    fn what_others_can_write_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("file"), "four").unwrap();
        let user = fs::metadata(place("file")).unwrap().uid();
        let read = |name: &str, most| {
            let path = place(name);
            at_once(move || read_own(&path, user, most).map(|(_, contents)| contents))
        };
        for (mode, is_read) in [
            (0o600, true),
            (0o644, true),
            (0o664, false),
            (0o666, false),
            (0o602, false),
        ] {
            fs::set_permissions(place("file"), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read("file", 4).is_some(), is_read, "{mode:o}");
        }
        fs::set_permissions(place("file"), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read("file", 3), None, "it is too large");
        std::os::unix::fs::symlink("file", place("link")).unwrap();
        assert_eq!(read("link", 4), None);
        pipe(directory.path());
        assert_eq!(read("pipe", 4), None);
        // Only root can give files away.
        if std::os::unix::fs::chown(place("file"), Some(65_534), None).is_ok() {
            assert_eq!(read("file", 4), None);
            let by_owner = read_own(&place("file"), 65_534, 4);
            assert!(by_owner.is_some());
        }
    }
}
