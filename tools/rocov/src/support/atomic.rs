//! Files and directories that appear whole or not at all, for writers that need a path, such as LLVM's
//! tools and SQLite. The library's own writer takes bytes ([`rocov::store::write_atomic`]). Both use one kind
//! of temporary names and locks, so that each removes the leftovers of the other.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use rocov::store::{hold, partial_prefix, sweep};
use rocov::support::diagnostic::fail;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::{Builder, TempDir, TempPath};

use super::temporary;
use crate::support::failure::failure;

/// A file or directory that has another name until it is complete.
#[derive(Debug)]
pub(crate) struct Partial<P> {
    pub(crate) path: P,
    /// Locked, so that nobody takes it for a leftover.
    _file: File,
}

/// Replaces the file at `path` at once by the file that `write` makes at the path it is given. The new
/// file has the rights of the old one. Links are followed. Pipes and devices are written to.
///
/// # Errors
///
/// Fails if `write` fails, or the file cannot be made there. Then the old file is still there.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let Ok(there) = fs::metadata(path) else {
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            fail!("{}: its name is that of a directory", cannot_write(path); "name a file");
        }
        let temporary = beside(path)?;
        write(&temporary.path)?;
        let put = temporary.path.persist(path);
        return put.with_context(|| cannot_write(path));
    };
    if there.is_dir() {
        fail!("{}: it is a directory", cannot_write(path); "name a file");
    }
    if !there.is_file() {
        let temporary = temporary::file("rocov-")?;
        write(temporary.path())?;
        let copied = File::open(temporary.path()).and_then(|mut from| {
            let mut to = File::options().write(true).open(path)?;
            io::copy(&mut from, &mut to)
        });
        return copied.map(drop).with_context(|| cannot_write(path));
    }
    let place = path.canonicalize().with_context(|| cannot_write(path))?;
    let temporary = beside(&place)?;
    write(&temporary.path)?;
    fs::set_permissions(&temporary.path, there.permissions())
        .with_context(|| cannot_write(path))?;
    let put = temporary.path.persist(&place);
    put.with_context(|| cannot_write(path))
}

/// Makes the file at `path`, as [`replace`] does, if there is none.
///
/// # Errors
///
/// Fails if there is a file, or if `write` fails. A file that is there stays as it is.
pub(crate) fn create(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let is_there = || failure!("{} exists", path.display(); "use --force to replace it");
    if path.exists() {
        return Err(is_there());
    }
    let temporary = beside(path)?;
    write(&temporary.path)?;
    match temporary.path.persist_noclobber(path) {
        // Another process has made it since the check above.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(is_there()),
        result => result.with_context(|| cannot_write(path)),
    }
}

/// An empty file next to `path`, as one cannot be renamed to another file system.
fn beside(path: &Path) -> Result<Partial<TempPath>> {
    let made = partial(parent(path), |builder, directory| {
        // The mode of any new file, from which the kernel takes the process's umask.
        builder.permissions(Permissions::from_mode(0o666));
        let (file, path) = builder.tempfile_in(directory)?.into_parts();
        Ok((path, file))
    });
    made.with_context(|| cannot_write(path))
}

/// An empty directory in `directory`, to be moved or taken from, with the rights that `mode` and the
/// umask leave.
///
/// # Errors
///
/// Fails if it cannot be made.
pub(crate) fn directory_in(directory: &Path, mode: u32) -> io::Result<Partial<TempDir>> {
    partial(directory, |builder, directory| {
        builder.permissions(Permissions::from_mode(mode));
        loop {
            let made = builder.tempdir_in(directory)?;
            match File::open(made.path()) {
                // Another process removed it as a leftover before it could be locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                file => return Ok((made, file?)),
            }
        }
    })
}

/// Calls `make` to make a file or directory in `directory`. Removes the leftovers of killed commands
/// there first.
fn partial<P>(
    directory: &Path,
    make: impl Fn(&mut Builder<'_, '_>, &Path) -> io::Result<(P, File)>,
) -> io::Result<Partial<P>> {
    sweep(directory, |path| match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    });
    let prefix = partial_prefix();
    loop {
        let made = make(Builder::new().prefix(&prefix), directory);
        let (path, file) = made.map_err(|error| temporary::without_path(&error))?;
        // If this fails, another process removed it as a leftover before it was locked.
        if hold(&file) {
            return Ok(Partial { path, _file: file });
        }
    }
}

/// Exchanges the directories at two paths, at once. Returns false if the file system cannot do that, such as NFS.
///
/// # Errors
///
/// Fails if one of them is not there, or cannot be renamed.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The directory that `path` is in.
pub(crate) fn parent(path: &Path) -> &Path {
    let parent = path.parent();
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn write(text: &str) -> impl FnOnce(&Path) -> Result<()> {
        move |path| Ok(fs::write(path, text)?)
    }

    #[test]
    fn files_keep_their_rights_and_links_lead_on() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        replace(&file, write("one")).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        replace(&link, write("two")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_killed_commands_have_left_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        // A kill leaves files and directories that nobody locks.
        fs::write(path.join(format!("{}a", partial_prefix())), "half").unwrap();
        let left = path.join(format!("{}b", partial_prefix()));
        fs::create_dir_all(left.join("c")).unwrap();
        fs::write(left.join("c/d"), "half").unwrap();
        let other = directory_in(path, 0o700).unwrap();
        fs::write(other.path.path().join("e"), "half").unwrap();
        replace(&path.join("file"), write("one")).unwrap();
        assert_eq!(fs::read_dir(path).unwrap().count(), 2);
        assert!(other.path.path().join("e").exists(), "it is still written");
    }

    #[test]
    fn commands_at_once_keep_their_directories() {
        let directory = tempfile::tempdir().unwrap();
        let make = || {
            for _ in 0..300 {
                let made = directory_in(directory.path(), 0o700).unwrap();
                fs::write(made.path.path().join("file"), "half").unwrap();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(make);
            }
        });
    }

    #[test]
    fn what_is_no_file_is_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        replace(&pipe, write("all of it")).unwrap();
        assert_eq!(reader.join().unwrap(), "all of it");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

        let error = replace(directory.path(), write("")).unwrap_err();
        assert!(format!("{error:#}").ends_with(": it is a directory; name a file"));
    }
}
