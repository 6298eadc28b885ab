//! Files that appear whole or not at all, written by tools that want a path to write to.

use anyhow::{Context, Result, bail};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, NamedTempFile, TempPath};

/// How the names start of files and directories that are not yet put in place.
pub(crate) const PARTIAL: &str = ".rocov-";

/// Has `write` make a file at the path it is given, then puts that at `path` at once, with the rights
/// that a file there had. A link there is followed. What is no file, as a pipe or a device, is written
/// to.
///
/// # Errors
///
/// When `write` fails, or the file cannot be made there; then what was at `path` is still there.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let Ok(there) = fs::metadata(path) else {
        let temporary = beside(path)?;
        write(&temporary)?;
        return temporary.persist(path).with_context(|| cannot_write(path));
    };
    if there.is_dir() {
        bail!("{}: it is a directory, give a file", cannot_write(path));
    }
    if !there.is_file() {
        let temporary = NamedTempFile::new().context("cannot make a temporary file")?;
        write(temporary.path())?;
        let copied = File::open(temporary.path()).and_then(|mut from| {
            let mut to = File::options().write(true).open(path)?;
            io::copy(&mut from, &mut to)
        });
        return copied.map(drop).with_context(|| cannot_write(path));
    }
    let place = path.canonicalize().with_context(|| cannot_write(path))?;
    let temporary = beside(&place)?;
    write(&temporary)?;
    fs::set_permissions(&temporary, there.permissions()).with_context(|| cannot_write(path))?;
    temporary
        .persist(&place)
        .with_context(|| cannot_write(path))
}

/// The same where there must be no file yet.
///
/// # Errors
///
/// Also when there is one, which is left as it is.
pub(crate) fn create(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let is_there = || {
        format!(
            "{} is there already: give --force to replace it",
            path.display()
        )
    };
    if path.exists() {
        bail!(is_there());
    }
    let temporary = beside(path)?;
    write(&temporary)?;
    match temporary.persist_noclobber(path) {
        // Since then.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => bail!(is_there()),
        result => result.with_context(|| cannot_write(path)),
    }
}

/// An empty file beside `path`, as one cannot be renamed to another file system.
fn beside(path: &Path) -> Result<TempPath> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let file = Builder::new()
        .prefix(PARTIAL)
        // As for any file that a tool writes; the process's umask takes from it.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent.unwrap_or(Path::new(".")));
    Ok(file.with_context(|| cannot_write(path))?.into_temp_path())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

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
        assert!(format!("{error:#}").ends_with(": it is a directory, give a file"));
    }
}
