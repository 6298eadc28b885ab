//! The contributions of loads to files, so that nothing is counted twice and nothing is overwritten.
//!
//! A code object that is loaded, unloaded and loaded again has one profile name and starts from zero each
//! time, so the file must hold the sum. If a load is drained twice (on request, then at exit), the later
//! counts replace the earlier.
//!
//! The sum is only in the file: otherwise a program with thousands of code objects would have all their
//! counters in its memory too. A load's contribution is kept in memory only if it may have to be subtracted
//! again, because the file also has the counts of others.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::profraw::{Counts, Version};
use crate::read::counted::{Counted, Digest};
use crate::store::{OutputError, read_input};
use crate::validate::MAX_SECTION_BYTES;

/// The limit in bytes for a profile, which has five sections.
const MAX_PROFILE: u64 = 5 * MAX_SECTION_BYTES + (1 << 20);

/// This process's contributions to each file.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By path, whose bytes take less time to hash than the names within it.
    files: HashMap<Arc<OsStr>, File>,
    /// The file that each live load contributes to, by generation.
    paths: HashMap<u64, Arc<OsStr>>,
    /// True if the process ends: nobody replaces a file until the last drain.
    is_ending: bool,
}

#[derive(Debug, Default)]
struct File {
    /// The latest contribution of each current load, by generation.
    live: HashMap<u64, Contribution>,
    /// True if the file holds the counts of loads that are gone.
    holds_more: bool,
    /// True if this process has written the file, and it is still there. If not, another process may have one of
    /// this name.
    is_there: bool,
    /// The place of the file, if it is not the one that its name says.
    place: Option<PathBuf>,
    /// The inode at the last write. `None` for a pool, and at the end of the process.
    inode: Option<Inode>,
}

/// The device and inode, which distinguish files of the same name.
type Inode = (u64, u64);

#[derive(Debug)]
struct Contribution {
    digest: Digest,
    /// `None` if the file holds exactly these counts.
    counts: Option<Counts>,
}

/// The next step for a file.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing: the file holds the counts already.
    Nothing,
    /// Make the file, which no other process may have made.
    Create,
    /// Replace the contents of the file by the counts.
    Replace,
    /// Add to the contents of the file: these counts, or all if `None`.
    Add(Option<Counts>),
}

impl File {
    /// Returns whether the file holds the counts of load `generation` only, or no counts yet.
    fn is_sole(&self, generation: u64) -> bool {
        !self.holds_more && self.live.keys().all(|other| *other == generation)
    }

    /// The place of the file called `path`.
    fn place<'a>(&'a self, path: &'a Path) -> &'a Path {
        self.place.as_deref().unwrap_or(path)
    }

    /// Records that the file called `path` was written, and its inode if that is `wanted`.
    fn note_written(&mut self, path: &Path, wanted: bool) {
        self.is_there = true;
        self.inode = match wanted {
            true => inode(self.place(path)).unwrap_or_default(),
            false => None,
        };
    }

    /// Forgets all contributions if the file called `path` is another one now: somebody has removed it with
    /// its contents, or put another in its place.
    fn forget_if_taken(&mut self, path: &Path) {
        // If the metadata cannot be read, assume that the file is still there.
        let Ok(now) = inode(self.place(path)) else {
            return;
        };
        if self.inode.is_some() && self.inode != now {
            self.live.clear();
            self.holds_more = false;
            self.is_there = false;
            self.inode = None;
        }
    }

    /// Reads back the one load's contribution that only the file called `path` has.
    ///
    /// # Errors
    /// Fails if the file cannot be read. A further addition could later count something twice.
    fn recall(&mut self, path: &Path) -> Result<(), OutputError> {
        let place = self.place(path).to_owned();
        let mut unknown = self
            .live
            .values_mut()
            .filter(|contribution| contribution.counts.is_none());
        let Some(contribution) = unknown.next() else {
            return Ok(());
        };
        let file = read_input(&place, MAX_PROFILE).map_err(OutputError::io("read", place))?;
        let counts = Counts::from_profile(&file).ok();
        contribution.counts =
            counts.filter(|counts| Counted::from_counts(counts).digest() == contribution.digest);
        Ok(())
    }
}

/// The inode of the file at `path`, if there is one.
fn inode(path: &Path) -> io::Result<Option<Inode>> {
    match fs::metadata(path) {
        Ok(file) => Ok(Some((file.dev(), file.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Ledger {
    /// Marks the end of the process.
    pub(super) fn begin_end(&mut self) {
        self.is_ending = true;
    }

    /// The next step for the file at `path`, a pool or not, after load `generation` has `counted`. If
    /// counters have gone down, they were reset, and all their counts are new.
    ///
    /// # Errors
    /// Fails if the contents of the file are needed and cannot be read.
    pub(super) fn step(
        &mut self,
        path: &Path,
        generation: u64,
        counted: &Counted<'_>,
        version: &Version,
        is_pool: bool,
    ) -> Result<Step, OutputError> {
        let Some(file) = self.files.get_mut(path.as_os_str()) else {
            return Ok(if is_pool {
                Step::Add(None)
            } else {
                Step::Create
            });
        };
        file.forget_if_taken(path);
        if !is_pool && !file.is_there {
            return Ok(Step::Create);
        }
        let written = file.live.get(&generation);
        if written.is_some_and(|written| written.digest == counted.digest()) {
            return Ok(Step::Nothing);
        }
        if !is_pool && file.is_sole(generation) {
            return Ok(Step::Replace);
        }
        let written = written.and_then(|written| written.counts.as_ref());
        let news = written.map(|written| counted.to_counts().since(written, version));
        if news.is_none() {
            file.recall(path)?;
        }
        Ok(Step::Add(news))
    }

    /// The contribution of load `generation` to the file called `path`. `counted` has its current counts: if
    /// nobody can tell any more, these are the contribution. `None` if there is no contribution, or if it was
    /// removed.
    ///
    /// # Errors
    /// Fails if only the file has the contribution, and cannot be read.
    pub(super) fn contributed(
        &mut self,
        path: &Path,
        generation: u64,
        counted: &Counted<'_>,
    ) -> Result<Option<Counts>, OutputError> {
        let Some(file) = self.files.get_mut(path.as_os_str()) else {
            return Ok(None);
        };
        file.forget_if_taken(path);
        let is_known = |file: &File| {
            file.live
                .get(&generation)
                .map(|contribution| contribution.counts.clone())
        };
        if is_known(file) == Some(None) {
            file.recall(path)?;
        }
        Ok(is_known(file).map(|counts| counts.unwrap_or_else(|| counted.to_counts())))
    }

    /// The number of files in directories whose path ends in `directory`.
    pub(super) fn files_in(&self, directory: &Path) -> usize {
        let parents = self
            .files
            .keys()
            .filter_map(|path| Path::new(path).parent());
        parents.filter(|parent| parent.ends_with(directory)).count()
    }

    /// Records that the file at `path` now has the counts `counted` of load `generation`, with or without
    /// others.
    pub(super) fn written(
        &mut self,
        path: &Path,
        generation: u64,
        counted: &Counted<'_>,
        step: &Step,
        is_pool: bool,
    ) {
        let counts = match step {
            Step::Nothing => return,
            Step::Create | Step::Replace => None,
            Step::Add(_) => Some(counted.to_counts()),
        };
        let digest = counted.digest();
        let has_inode = !is_pool && !self.is_ending;
        let (name, file) = self.file(path);
        file.live
            .insert(generation, Contribution { digest, counts });
        file.note_written(path, has_inode);
        self.paths.insert(generation, name);
    }

    /// Records that the file at `path` now has counts that are never subtracted again.
    pub(super) fn settled(&mut self, path: &Path, is_pool: bool) {
        let has_inode = !is_pool && !self.is_ending;
        let (_, file) = self.file(path);
        file.holds_more = true;
        file.note_written(path, has_inode);
    }

    /// The place of the file called `path`.
    pub(super) fn place<'a>(&'a self, path: &'a Path) -> &'a Path {
        let file = self.files.get(path.as_os_str());
        file.map_or(path, |file| file.place(path))
    }

    /// Returns whether this process has written the file called `path`.
    pub(super) fn has(&self, path: &Path) -> bool {
        let file = self.files.get(path.as_os_str());
        file.is_some_and(|file| file.is_there)
    }

    /// Records that the file called `path` is at `place` from now on.
    pub(super) fn moved(&mut self, path: &Path, place: PathBuf) {
        if place.as_os_str() != path.as_os_str() {
            self.file(path).1.place = Some(place);
        } else if let Some(file) = self.files.get_mut(path.as_os_str()) {
            file.place = None;
        }
    }

    /// Ends the contributions of load `generation`. Its counts stay. Further counts belong to another load.
    pub(super) fn settle(&mut self, generation: u64) {
        let path = self.paths.remove(&generation);
        if let Some(file) = path.and_then(|path| self.files.get_mut(&path)) {
            file.holds_more |= file.live.remove(&generation).is_some();
        }
    }

    /// The record of the file called `path`, and its name.
    fn file(&mut self, path: &Path) -> (Arc<OsStr>, &mut File) {
        let known = self.files.get_key_value(path.as_os_str());
        let name = known.map_or_else(|| path.as_os_str().into(), |(name, _)| name.clone());
        (name.clone(), self.files.entry(name).or_default())
    }
}
