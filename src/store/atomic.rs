//! Files that appear wholly or not at all.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, open, renameat_with};
use rustix::io::Errno;

use crate::store::OutputError;
use crate::store::interrupted::uninterrupted;
use crate::store::layout::REGISTRY;
use crate::store::partial_files::{lock_new, partial_prefix, sweep_once};
use crate::store::regular_file::read_input;

/// Writes `contents` to `path`, and makes its directories. It writes a file under another name in that
/// directory and renames it. So a reader of `path` finds the old contents or the new, whatever happens in
/// between.
///
/// # Errors
/// Fails if a step fails; the error names the step and the file. `path` does not change then.
pub fn write_atomic(path: &Path, contents: &[u8]) -> Result<(), OutputError> {
    Temporary::write(path, contents)?.rename(path)
}

/// Writes `contents` to `path` as [`write_atomic`] does, so that only its user can write or read it: an entry of a cache,
/// which [`read_own`](crate::store::read_own) takes for its own. Makes its directories so, too.
///
/// # Errors
/// Fails if a step fails; the error names the step and the file. `path` does not change then.
pub fn write_own(path: &Path, contents: &[u8]) -> Result<(), OutputError> {
    const OF_USER: u32 = 0o700;
    let directory = path.parent().unwrap_or(path);
    let mut maker = DirBuilder::new();
    maker.recursive(true).mode(OF_USER);
    uninterrupted(|| maker.create(directory))
        .map_err(OutputError::io("make the directory", directory))?;
    let temporary = Temporary::write(path, contents)?;
    let restricted = temporary
        .file
        .set_permissions(Permissions::from_mode(OF_USER & !0o111));
    restricted.map_err(OutputError::io("write", path))?;
    temporary.rename(path)
}

/// Writes `contents` to `path` as [`write_atomic`] does, unless the file there has them already. Returns
/// whether it wrote the file.
///
/// # Errors
/// Fails if the file has to be written, and [`write_atomic`] fails.
pub fn write_if_changed(path: &Path, contents: &[u8]) -> Result<bool, OutputError> {
    // Replaces a link, which reading would follow.
    let there = fs::symlink_metadata(path);
    let is_same = there.is_ok_and(|file| file.is_file() && file.len() == contents.len() as u64)
        && read_input(path, contents.len() as u64).is_ok_and(|old| old == contents);
    if !is_same {
        write_atomic(path, contents)?;
    }
    Ok(!is_same)
}

/// Writes `contents` to `path`, wholly or not at all, if there is no such file. Returns whether it did.
pub(crate) fn create_atomic(path: &Path, contents: &[u8]) -> Result<bool, OutputError> {
    if let Some(made) = link_new(path, contents) {
        return Ok(made);
    }
    let mut temporary = Temporary::write(path, contents)?;
    temporary
        .take_new_name(path)
        .map_err(OutputError::io("make", path))
}

/// Writes `contents` to a file that gets its first name, `path`, when it is whole, if there is no such file. Returns whether
/// it did. No other process can find the file before, so that this needs no lock and no second name.
///
/// Returns `None` if the directory or the system has no such files, or an earlier call has found that.
fn link_new(path: &Path, contents: &[u8]) -> Option<bool> {
    static IS_IMPOSSIBLE: AtomicBool = AtomicBool::new(false);
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())?;
    if IS_IMPOSSIBLE.load(Ordering::Relaxed) {
        return None;
    }
    sweep_once(directory);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let linked = open(directory, flags, Mode::from_raw_mode(0o666)).and_then(|file| {
        let mut file = File::from(file);
        // The other way reports what fails.
        file.write_all(contents).map_err(|_| Errno::NOENT)?;
        link(&file, path)
    });
    match linked {
        Ok(()) => Some(true),
        Err(Errno::EXIST) => Some(false),
        // The directory is not there yet, or full.
        Err(Errno::NOENT) => None,
        Err(error) => {
            // A file system or a system without such files: others may pass.
            let is_lasting = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::INVAL, Errno::PERM];
            if is_lasting.contains(&error) {
                IS_IMPOSSIBLE.store(true, Ordering::Relaxed);
            }
            None
        }
    }
}

/// Gives a file without a name the name `path`.
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    static IS_BY_NUMBER: AtomicBool = AtomicBool::new(false);
    if !IS_BY_NUMBER.load(Ordering::Relaxed) {
        match linkat(file, c"", CWD, path, AtFlags::EMPTY_PATH) {
            Err(error) if error != Errno::EXIST => IS_BY_NUMBER.store(true, Ordering::Relaxed),
            linked => return linked,
        }
    }
    link_by_number(file, path)
}

/// Gives a file without a name the name `path`, as [`link`] does. Before Linux 6.10, a link by the descriptor itself needs a
/// right that few processes have. This way takes longer, because the kernel finds the number in /proc.
fn link_by_number(file: &File, path: &Path) -> Result<(), Errno> {
    let number = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    linkat(CWD, number, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(|error| match error {
        Errno::NOENT => Errno::PERM,
        other => other,
    })
}

/// Writes `contents`, wholly or not at all, to a new file next to `path` with the process id in its name:
/// `app.4711.profraw` next to `app.profraw`. If an earlier process of that number has left this file, the name
/// is `app.4711.1.profraw`. Returns its path.
pub(crate) fn create_beside(path: &Path, contents: &[u8]) -> Result<PathBuf, OutputError> {
    let mut temporary = Temporary::write(path, contents)?;
    let pid = std::process::id();
    let numbered = (1_u32..).map(|number| format!("{pid}.{number}"));
    let mut words = std::iter::once(pid.to_string()).chain(numbered);
    loop {
        let word = words.next().expect("numbers do not end");
        let name = with_word(path, &word);
        let taken = temporary.take_new_name(&name);
        if taken.map_err(OutputError::io("make", &name))? {
            return Ok(name);
        }
    }
}

/// Writes `contents`, wholly or not at all, to a new file at `path`, or next to it as [`create_beside`] does if
/// there is a file already. Returns its path.
pub(crate) fn create_at_or_beside(path: &Path, contents: &[u8]) -> Result<PathBuf, OutputError> {
    match create_atomic(path, contents)? {
        true => Ok(path.to_owned()),
        false => create_beside(path, contents),
    }
}

/// `path` with a word before its extension. Readers collect profiles and registries by the extension.
fn with_word(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (base, extension) = match name.strip_suffix(REGISTRY) {
        Some(base) => (base, REGISTRY),
        None => name.split_at(name.rfind('.').filter(|at| *at > 0).unwrap_or(name.len())),
    };
    path.with_file_name(format!("{base}.{word}{extension}"))
}

/// Renames `from` to `to` if there is no such file. Returns whether it did.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<bool> {
    let rename = || renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
    let renamed = match uninterrupted(|| rename().map_err(io::Error::from)) {
        // Some file systems cannot do this, such as NFS.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            match uninterrupted(|| fs::hard_link(from, to)) {
                Ok(()) => {
                    // The file has its new name. If the old one stays too, the rename has still succeeded.
                    let _ = uninterrupted(|| fs::remove_file(from));
                    Ok(())
                }
                // Some have no links either, such as those of virtual machines and of FUSE. Only two processes that
                // choose one name within this moment could then collide.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
                    ) =>
                {
                    match uninterrupted(|| fs::symlink_metadata(to)) {
                        Ok(_) => return Ok(false),
                        Err(_) => uninterrupted(|| fs::rename(from, to)),
                    }
                }
                Err(error) => Err(error),
            }
        }
        renamed => renamed,
    };
    match renamed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A number that no other process has, on any machine or in any container. Process ids repeat across
/// containers. The standard library gets the keys of its hash tables from the kernel.
pub(super) fn random() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A file that is removed unless it was renamed.
struct Temporary<'a> {
    path: PathBuf,
    /// Locked while it is open, so that no other process removes it as a leftover.
    file: File,
    contents: &'a [u8],
    is_renamed: bool,
}

impl<'a> Temporary<'a> {
    /// Writes `contents` next to `path`, under a name that no other process or thread uses.
    fn write(path: &Path, contents: &'a [u8]) -> Result<Self, OutputError> {
        let directory = path.parent().unwrap_or(path);
        sweep_once(directory);
        let mut temporary = loop {
            let name = format!("{}{:016x}", partial_prefix(), random());
            let temporary = Self::make(directory.join(name), path, contents)?;
            if lock_new(&temporary.file) {
                break temporary;
            }
        };
        let written = temporary.file.write_all(contents);
        written.map_err(OutputError::io("write", path))?;
        Ok(temporary)
    }

    /// Writes the file once more if another process has removed it as a leftover, between the moments when it was made and
    /// locked. The rename shows that, so that no other system call has to look. Returns whether it did.
    fn write_again_if_removed(&mut self, error: &io::Error, path: &Path) -> io::Result<bool> {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let is_removed = is_missing && {
            let here = uninterrupted(|| self.file.metadata());
            here.is_ok_and(|file| file.nlink() == 0)
        };
        if is_removed {
            let again = Self::write(path, self.contents);
            *self = again.map_err(|error| match error {
                OutputError::Io { source, .. } => source,
                _ => io::ErrorKind::Other.into(),
            })?;
        }
        Ok(is_removed)
    }

    /// Makes a new file at `place` for the contents of `path`, and its directory.
    fn make(place: PathBuf, path: &Path, contents: &'a [u8]) -> Result<Self, OutputError> {
        let create = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).open(&place)
        };
        let created = match create() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                let directory = place.parent().unwrap_or(&place);
                uninterrupted(|| fs::create_dir_all(directory))
                    .map_err(OutputError::io("make the directory", directory))?;
                create()
            }
            created => created,
        };
        let file = created.map_err(OutputError::io("write", path))?;
        // From here on, dropping this removes the file.
        Ok(Self {
            path: place,
            file,
            contents,
            is_renamed: false,
        })
    }

    /// Renames the file to `path` if there is none. Returns whether it did.
    fn take_new_name(&mut self, path: &Path) -> io::Result<bool> {
        match rename_to_new(&self.path, path) {
            Ok(true) => {
                self.is_renamed = true;
                Ok(true)
            }
            Ok(false) => Ok(self.is_at(path)),
            // Network file systems may do what they report as failed. A second file would then have the counts again.
            Err(_) if self.is_at(path) => Ok(true),
            Err(error) => match self.write_again_if_removed(&error, path)? {
                true => self.take_new_name(path),
                false => Err(error),
            },
        }
    }

    /// Returns whether the file at `path` is this one.
    fn is_at(&self, path: &Path) -> bool {
        let ours = uninterrupted(|| self.file.metadata());
        let there = uninterrupted(|| fs::symlink_metadata(path));
        let id = |file: fs::Metadata| (file.dev(), file.ino());
        ours.is_ok_and(|ours| there.is_ok_and(|there| id(there) == id(ours)))
    }

    /// Replaces the file at `path` by this one.
    fn rename(mut self, path: &Path) -> Result<(), OutputError> {
        match uninterrupted(|| fs::rename(&self.path, path)) {
            Err(error) if !self.is_at(path) => {
                let again = self.write_again_if_removed(&error, path);
                return match again.map_err(OutputError::io("write", path))? {
                    true => self.rename(path),
                    false => Err(OutputError::io("replace", path)(error)),
                };
            }
            _ => {}
        }
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_renamed {
            // If the file was renamed, it is gone. If not, the important error has been returned.
            let _ = uninterrupted(|| fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
#[path = "atomic_tests.rs"]
mod tests;
