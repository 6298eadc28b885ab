//! Files as memory: host files with kernels can be gigabytes, of which little is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use memmap2::Mmap;

use crate::support::paths::Absent;

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
/// Fails if it does not exist, is no file, or cannot be opened or read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut contents = Vec::new();
    let result = file.read_to_end(&mut contents);
    result.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(contents)
}

fn open(path: &Path) -> Result<File> {
    let file = match File::open(path) {
        Err(error) if Absent::is(&error) => bail!(Absent::new(path, "check the path")),
        file => file.with_context(|| format!("cannot open {}", path.display()))?,
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        bail!("{} is not a file: give a file", path.display());
    }
    Ok(file)
}
