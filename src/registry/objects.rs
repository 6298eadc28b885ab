//! Device ELFs, kept by identity beside the profiles: readers of these need them, and at that time
//! the buffer that held one is long gone.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::keeper::KeepError;
use crate::codeobject::{Identity, file_name};
use crate::error::Error;
use crate::load::ElfFacts;
use crate::output::layout::OBJECTS;
use crate::output::{OutputError, sweep_once, write_atomic};

/// The device ELFs that this process has kept.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Where the directory of this name is.
    directory: PathBuf,
    /// By identity and target, and where each was kept last.
    kept: HashMap<(Identity, String), Kept>,
    /// Whether some of them are elsewhere.
    is_scattered: bool,
    /// Bytes that may still be written.
    left: u64,
    has_said_full: bool,
    max: u64,
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    size: u64,
}

impl Objects {
    /// Nothing kept yet; to go to `directory`, and have `max` bytes at most.
    pub(super) fn new(directory: PathBuf, max: u64) -> Objects {
        Objects {
            directory,
            left: max,
            max,
            ..Objects::default()
        }
    }

    /// Keeps the ELF that says this of itself, whose bytes `read` gets, unless it is kept already.
    pub(super) fn keep(
        &mut self,
        elf: &ElfFacts,
        read: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<(), KeepError> {
        let key = (elf.identity.clone(), elf.target.clone());
        let path = self.path(&key);
        if self.kept.get(&key).is_some_and(|kept| kept.path == path) {
            return Ok(());
        }
        let size = elf.size;
        if self.place(&path, &elf.identity, size, read)? {
            self.kept.insert(key, Kept { path, size });
        }
        Ok(())
    }

    /// What is kept from now on goes to `directory`.
    pub(super) fn go_on_in(&mut self, directory: PathBuf) {
        if self.directory != directory {
            self.directory = directory;
            self.is_scattered = true;
        }
    }

    /// Brings into the directory what was kept elsewhere.
    pub(super) fn gather(&mut self) -> Vec<KeepError> {
        if !std::mem::take(&mut self.is_scattered) {
            return Vec::new();
        }
        let mut kept = std::mem::take(&mut self.kept);
        let mut failures = Vec::new();
        for (key, kept) in &mut kept {
            let path = self.path(key);
            let read = || {
                let read = fs::read(&kept.path);
                Ok(read.map_err(OutputError::io("read", &kept.path))?)
            };
            match self.place(&path, &key.0, kept.size, read) {
                Ok(true) => kept.path = path,
                Ok(false) => {}
                Err(error) => failures.push(error),
            }
        }
        self.kept = kept;
        failures
    }

    /// Where in the directory an ELF is kept; `None` where it is not.
    pub(super) fn file(&self, elf: &ElfFacts) -> Option<String> {
        let key = (elf.identity.clone(), elf.target.clone());
        let kept = self.kept.get(&key)?;
        let file = kept.path.strip_prefix(&self.directory).ok()?;
        Some(file.to_string_lossy().into_owned())
    }

    fn path(&self, (identity, target): &(Identity, String)) -> PathBuf {
        let name = file_name(target, identity);
        self.directory.join(OBJECTS).join(name)
    }

    /// Writes an ELF to `path`, unless it is there. Returns whether it is then: that there is no room
    /// for it is an error the first time only.
    fn place(
        &mut self,
        path: &Path,
        identity: &Identity,
        size: u64,
        read: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<bool, KeepError> {
        // Where all device ELFs are kept already, nothing is written that would do so.
        if let Some(directory) = path.parent() {
            sweep_once(directory);
        }
        if holds(path, identity, size) {
            return Ok(true);
        }
        if size > self.left {
            return match std::mem::replace(&mut self.has_said_full, true) {
                true => Ok(false),
                false => Err(KeepError::Full {
                    identity: identity.clone(),
                    size,
                    max: self.max,
                }),
            };
        }
        let not_kept = |source| KeepError::NotKept {
            identity: identity.clone(),
            source,
        };
        let bytes = read().map_err(not_kept)?;
        if !is(&bytes, identity, size) {
            return Err(KeepError::Changed {
                identity: identity.clone(),
            });
        }
        write_atomic(path, &bytes).map_err(|error| not_kept(error.into()).at(&self.directory))?;
        self.left -= size;
        Ok(true)
    }
}

/// Whether the file at `path` is the ELF. What else lies there, such as one that was cut short, is
/// replaced: its name promises this ELF to readers.
fn holds(path: &Path, identity: &Identity, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == size)
        && fs::read(path).is_ok_and(|bytes| is(&bytes, identity, size))
}

fn is(bytes: &[u8], identity: &Identity, size: u64) -> bool {
    bytes.len() as u64 == size && Identity::of(bytes).is_ok_and(|found| found == *identity)
}
