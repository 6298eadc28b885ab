//! Device ELFs, kept by identity next to the profiles. Readers of profiles need them, long after the buffer
//! with the ELF is gone.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::device::ElfBuffer;
use crate::discover::ElfFacts;
use crate::format::codeobject::Identity;
use crate::format::ptx::note_sources;
use crate::store::keep_error::{KeepError, KeptElfError};
use crate::store::layout::{OBJECTS, PTX, device_elf_name, source_name};
use crate::store::{
    OutputError, create_atomic, read_input, sweep_once, write_atomic, write_if_changed,
};
use crate::validate::MAX_SECTION_BYTES;

/// The limit in bytes for the text of a code object that was made from PTX.
const MAX_SOURCE: u64 = MAX_SECTION_BYTES;

/// The limit in bytes for the text of a source that a code object refers to.
const MAX_TEXT: u64 = 1 << 24;

/// The device ELFs that this process has kept.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// The parent of the `objects` folder.
    directory: PathBuf,
    /// The kept ELFs by identity and target, with the latest place of each.
    kept: HashMap<(Identity, String), Kept>,
    /// True if some of them are in other directories.
    is_scattered: bool,
    /// The number of bytes that may still be written.
    left: u64,
    has_said_full: bool,
    max: u64,
    /// The directory of ELFs, and whether there was none before this process wrote there.
    first_look: Option<(PathBuf, bool)>,
}

/// The bytes of an ELF to keep.
pub(super) enum Contents {
    /// Those that the identity was computed from.
    Known(ElfBuffer),
    /// Those that were read later.
    Read(Vec<u8>),
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    size: u64,
}

impl Objects {
    /// Makes an empty list for `directory`, with a limit of `max` bytes.
    pub(super) fn new(directory: PathBuf, max: u64) -> Self {
        Self {
            directory,
            left: max,
            max,
            ..Self::default()
        }
    }

    /// Counts `bytes` that were written before.
    pub(super) fn count(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Keeps the ELF with these facts, unless it is kept already. `read` returns its bytes.
    pub(super) fn keep(
        &mut self,
        elf: &ElfFacts,
        read: impl FnOnce() -> Result<Contents, KeptElfError>,
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

    /// Keeps the PTX that the ELF with these facts was made from, next to the ELF, unless it is there. Comments after it tell
    /// how its sources are now: a report then names those that were edited after the run.
    pub(super) fn keep_source(&mut self, elf: &ElfFacts, source: &str) -> Result<(), KeepError> {
        let name = source_name(&elf.target, &elf.identity);
        let path = self.directory.join(OBJECTS).join(name);
        let not_kept = |source| KeepError::SourceNotKept {
            identity: elf.identity.clone(),
            source,
        };
        let read = |path: &str| read_input(Path::new(path), MAX_TEXT).ok();
        let comments = note_sources(source, read);
        let text = source.trim_end_matches(['\0', '\n']);
        let with_comments = format!("{text}\n{comments}");
        let source = if comments.is_empty() {
            source
        } else {
            &with_comments
        };
        write_if_changed(&path, source.as_bytes())
            .map_err(|error| not_kept(error).at(&self.directory))?;
        Ok(())
    }

    /// Keeps further ELFs in `directory`.
    pub(super) fn go_on_in(&mut self, directory: PathBuf) {
        if self.directory != directory {
            self.directory = directory;
            self.is_scattered = true;
        }
    }

    /// Copies ELFs from other directories into this one.
    pub(super) fn gather(&mut self) -> Vec<KeepError> {
        if !std::mem::take(&mut self.is_scattered) {
            return Vec::new();
        }
        let mut kept = std::mem::take(&mut self.kept);
        let mut failures = Vec::new();
        for (key, kept) in &mut kept {
            let path = self.path(key);
            let read = || {
                let read = read_input(&kept.path, kept.size);
                let bytes = read.map_err(OutputError::io("read", &kept.path))?;
                Ok(Contents::Read(bytes))
            };
            // The PTX that it was made from has its name.
            if let Ok(source) = read_input(&kept.path.with_extension(PTX), MAX_SOURCE) {
                let written = write_if_changed(&path.with_extension(PTX), &source);
                failures.extend(written.err().map(|source| KeepError::SourceNotKept {
                    identity: key.0.clone(),
                    source,
                }));
            }
            match self.place(&path, &key.0, kept.size, read) {
                Ok(true) => kept.path = path,
                Ok(false) => {}
                Err(error) => failures.push(error),
            }
        }
        self.kept = kept;
        // The next call tries again.
        self.is_scattered = !failures.is_empty();
        failures
    }

    /// The path of a kept ELF within the directory. `None` if it is not kept there.
    pub(super) fn file(&self, elf: &ElfFacts) -> Option<String> {
        let key = (elf.identity.clone(), elf.target.clone());
        let kept = self.kept.get(&key)?;
        let directory = self.directory.as_os_str().as_bytes();
        // By bytes, which takes less time than by names.
        let below = kept.path.as_os_str().as_bytes().strip_prefix(directory);
        match below.and_then(|file| file.strip_prefix(b"/")) {
            Some(file) => Some(String::from_utf8_lossy(file).into_owned()),
            None => {
                let file = kept.path.strip_prefix(&self.directory).ok()?;
                Some(file.to_string_lossy().into_owned())
            }
        }
    }

    fn path(&self, (identity, target): &(Identity, String)) -> PathBuf {
        let name = device_elf_name(target, identity);
        self.directory.join(OBJECTS).join(name)
    }

    /// Returns whether the directory of `path` had nothing when this process came there. Then this ELF is not there, unless
    /// another process has written it meanwhile: each looks for all other ELFs in vain, and a look takes as long as a
    /// rename.
    fn look_whether_new(&mut self, path: &Path) -> bool {
        let directory = path.parent().unwrap_or(path);
        match &self.first_look {
            Some((known, is_new)) if known == directory => *is_new,
            _ => {
                let is_new = fs::read_dir(directory).is_ok_and(|mut found| found.next().is_none())
                    || !directory.exists();
                self.first_look = Some((directory.to_owned(), is_new));
                is_new
            }
        }
    }

    /// Writes an ELF to `path`, unless it is there. Returns whether it is there afterwards. If there is no
    /// room, only the first time is an error.
    fn place(
        &mut self,
        path: &Path,
        identity: &Identity,
        size: u64,
        read: impl FnOnce() -> Result<Contents, KeptElfError>,
    ) -> Result<bool, KeepError> {
        // If the directory has all ELFs already, nothing else would write to it and sweep it.
        if let Some(directory) = path.parent() {
            sweep_once(directory);
        }
        let is_new = self.look_whether_new(path);
        if !is_new && holds(path, identity, size) {
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
        let contents = read().map_err(not_kept)?;
        let bytes: &[u8] = match &contents {
            Contents::Known(bytes) => bytes,
            Contents::Read(bytes) if is(bytes, identity, size) => bytes,
            Contents::Read(_) => {
                return Err(KeepError::Changed {
                    identity: identity.clone(),
                });
            }
        };
        let made = match is_new {
            true => create_atomic(path, bytes),
            false => Ok(false),
        };
        let written = made.and_then(|is_made| match is_made {
            true => Ok(()),
            false => write_atomic(path, bytes),
        });
        written.map_err(|error| not_kept(error.into()).at(&self.directory))?;
        self.left -= size;
        Ok(true)
    }
}

/// Returns whether the file at `path` is this ELF. If not, the ELF replaces it, for example a truncated one:
/// its name promises this ELF to readers.
fn holds(path: &Path, identity: &Identity, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == size)
        && read_input(path, size).is_ok_and(|bytes| is(&bytes, identity, size))
}

fn is(bytes: &[u8], identity: &Identity, size: u64) -> bool {
    bytes.len() as u64 == size && Identity::from_image(bytes).is_ok_and(|found| found == *identity)
}
