//! Files as memory: host files with kernels can be gigabytes, of which little is read.
//!
//! All files that a user names, or that are named in data, are opened here: one may be a pipe that nobody writes to, a
//! device, or a sparse file larger than memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use memmap2::Mmap;
use rocov::store::open_input;
use rocov::support::diagnostic::{diagnostic, fail};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::support::paths::Absent;

/// The limit in bytes of a file that is read into memory. The sections of a profile have 256 MiB at most.
const MAX_READ: u64 = 2 << 30;
/// The limit in bytes of a text that is read from a pipe or a file, such as a diff or a list of profiles.
const MAX_TEXT: u64 = 256 << 20;

/// Maps the file at `path` for reading.
///
/// # Errors
///
/// Fails if it does not exist, is no file, or cannot be opened or mapped.
pub(crate) fn map(path: &Path) -> Result<Mmap> {
    let file = open(path)?;
    // SAFETY: the mapping is private and only read. Another process that cuts the file short while
    // this one reads it can make it end with SIGBUS, as with every program that maps its input; a
    // change of contents gives wrong results and no memory error, as all reading is bounds-checked.
    let mapping = unsafe { Mmap::map(&file) };
    mapping.with_context(|| format!("cannot read {}", path.display()))
}

/// Reads the file at `path`, of which all is needed. A map of a small file costs more than this: all
/// threads wait until it is undone.
///
/// # Errors
///
/// Fails if it does not exist, is no file or too large, or cannot be opened or read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    read_open(&open(path)?, path)
}

/// Reads the file that [`open`] has opened at `path`.
///
/// # Errors
///
/// Fails if it is too large, or cannot be read.
pub(crate) fn read_open(file: &File, path: &Path) -> Result<Vec<u8>> {
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    if size > MAX_READ {
        fail!(
            "{} has {size} bytes, but rocov reads at most {MAX_READ}", path.display();
            "name a file that rocov or a compiler wrote"
        );
    }
    text_of(file, MAX_READ).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a text that the user names: a file, or a pipe as the shell makes it for `<(git diff)`. A pipe that nobody has
/// opened for writing is empty.
///
/// # Errors
///
/// Fails if it does not exist, is neither a file nor a pipe, is too large, or cannot be read.
pub(crate) fn read_text(path: &Path) -> Result<Vec<u8>> {
    let failed = || format!("cannot read {}", path.display());
    let file = match open_input(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput && is_pipe(path) => {
            open_pipe(path).with_context(failed)?
        }
        file => opened(file, path)?,
    };
    text_of(&file, MAX_TEXT).with_context(failed)
}

/// Reads standard input.
///
/// # Errors
///
/// Fails if it is too large, or cannot be read.
pub(crate) fn read_input_text() -> io::Result<Vec<u8>> {
    text_of(io::stdin().lock(), MAX_TEXT)
}

fn text_of(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(most + 1).read_to_end(&mut text)?;
    match text.len() as u64 > most {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            diagnostic!("it has more than {most} bytes"; "use a smaller one"),
        )),
        false => Ok(text),
    }
}

fn is_pipe(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.file_type().is_fifo())
}

/// Opens a pipe without waiting for its other end. Reads wait for what a writer has not written yet.
fn open_pipe(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let pipe = options.custom_flags(nonblocking).open(path)?;
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags - OFlags::NONBLOCK)?;
    Ok(pipe)
}

/// Opens the file at `path` for reading.
///
/// # Errors
///
/// Fails if it does not exist, is no file, or cannot be opened.
pub(crate) fn open(path: &Path) -> Result<File> {
    opened(open_input(path), path)
}

/// The file that was opened at `path`.
fn opened(file: io::Result<File>, path: &Path) -> Result<File> {
    match file {
        Err(error) if Absent::is(&error) => Err(Absent::new(path, "check the path").into()),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            fail!("{} is not a file", path.display(); "name a file")
        }
        file => file.with_context(|| format!("cannot open {}", path.display())),
    }
}
