//! Who counted what into which file, so that nothing is counted twice and nothing overwritten.
//!
//! A code object that is loaded, unloaded and loaded again has one profile name and starts from
//! zero each time: the file must hold the sum. A load that is drained twice (on request, then at
//! exit) has one contribution, the later one.
//!
//! The sum is in the file and nowhere else: a program with thousands of code objects would
//! otherwise have all their counters in its memory too. What a load has contributed is kept where it
//! may have to be taken off again: where the file has the counts of others as well.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::counted::{Counted, Digest};
use crate::output::OutputError;
use crate::profraw::{Counts, Version};

/// What this process has contributed to each file.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    files: HashMap<Arc<Path>, File>,
    /// The file that each live load contributes to, by generation.
    paths: HashMap<u64, Arc<Path>>,
}

#[derive(Debug, Default)]
struct File {
    /// The latest contribution of each load that is there, by generation.
    live: HashMap<u64, Contribution>,
    /// Whether it holds the counts of loads that are gone.
    holds_more: bool,
    /// Whether all it holds is this process's, under a name that another may take.
    is_own: bool,
    /// Where it is, if elsewhere than its name says.
    place: Option<PathBuf>,
    /// Which file that was when it was last written, if it is not a pool.
    inode: Option<Inode>,
}

/// What tells a file from another of its name: device and inode.
type Inode = (u64, u64);

#[derive(Debug)]
struct Contribution {
    digest: Digest,
    /// `None` where the file holds just that.
    counts: Option<Counts>,
}

/// What is to be done to a file.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing: it holds the counts.
    Nothing,
    /// The counts are all that it is to hold.
    Replace,
    /// They are to be added to what it holds: these, or all of them.
    Add(Option<Counts>),
}

impl File {
    /// Whether load `generation` is the only one whose counts it holds, or nobody's are there yet.
    fn is_sole(&self, generation: u64) -> bool {
        !self.holds_more && self.live.keys().all(|other| *other == generation)
    }

    /// Where the file called `path` is.
    fn place<'a>(&'a self, path: &'a Path) -> &'a Path {
        self.place.as_deref().unwrap_or(path)
    }

    /// Notes which file the one called `path` is, now that it was written.
    fn note_inode(&mut self, path: &Path, is_pool: bool) {
        self.inode = match is_pool {
            true => None,
            false => inode(self.place(path)).unwrap_or_default(),
        };
    }

    /// Forgets all that was contributed, if the file called `path` is not the one that it went into:
    /// somebody has taken that away, with what it held, or put another in its place.
    fn forget_if_taken(&mut self, path: &Path) {
        // A file that cannot be looked at has not gone.
        let Ok(now) = inode(self.place(path)) else {
            return;
        };
        if self.inode.is_some() && self.inode != now {
            self.live.clear();
            self.holds_more = false;
            self.inode = None;
        }
    }

    /// Reads back what the one load has contributed of which only the file called `path` knows.
    ///
    /// # Errors
    /// Fails where the file cannot be read: added to, it would hold the same counts twice one day.
    fn recall(&mut self, path: &Path) -> Result<(), OutputError> {
        let place = self.place(path).to_owned();
        let mut unknown = self.live.values_mut().filter(|it| it.counts.is_none());
        let Some(contribution) = unknown.next() else {
            return Ok(());
        };
        let file = fs::read(&place).map_err(OutputError::io("read", place))?;
        let counts = Counts::of_profile(&file).ok();
        contribution.counts = counts.filter(|it| Counted::of(it).digest() == contribution.digest);
        Ok(())
    }
}

/// Which file is at `path`, if there is one.
fn inode(path: &Path) -> io::Result<Option<Inode>> {
    match fs::metadata(path) {
        Ok(file) => Ok(Some((file.dev(), file.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Ledger {
    /// What the file at `path` needs, a pool or not, when load `generation` has `counted` this.
    /// Counters that have gone down were reset: all they show is new.
    ///
    /// # Errors
    /// Fails where what is in the file has to be known and cannot be read.
    pub(super) fn step(
        &mut self,
        path: &Path,
        generation: u64,
        counted: &Counted<'_>,
        version: &Version,
        is_pool: bool,
    ) -> Result<Step, OutputError> {
        let Some(file) = self.files.get_mut(path) else {
            return Ok(if is_pool {
                Step::Add(None)
            } else {
                Step::Replace
            });
        };
        file.forget_if_taken(path);
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

    /// What load `generation`, which has counted this by now, has contributed to the file called `path`:
    /// all of it, where nobody can tell any more. `None` where it has contributed nothing, or that was
    /// taken away.
    ///
    /// # Errors
    /// Fails where only the file knows, and cannot be read.
    pub(super) fn contributed(
        &mut self,
        path: &Path,
        generation: u64,
        counted: &Counted<'_>,
    ) -> Result<Option<Counts>, OutputError> {
        let Some(file) = self.files.get_mut(path) else {
            return Ok(None);
        };
        file.forget_if_taken(path);
        let is_known = |file: &File| file.live.get(&generation).map(|it| it.counts.clone());
        if is_known(file) == Some(None) {
            file.recall(path)?;
        }
        Ok(is_known(file).map(|counts| counts.unwrap_or_else(|| counted.to_counts())))
    }

    /// How many files there are in directories that end so.
    pub(super) fn files_in(&self, directory: &Path) -> usize {
        let parents = self.files.keys().filter_map(|path| path.parent());
        parents.filter(|parent| parent.ends_with(directory)).count()
    }

    /// Records that the file at `path` now has what load `generation` has `counted`, alone or among
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
            Step::Replace => None,
            Step::Add(_) => Some(counted.to_counts()),
        };
        let digest = counted.digest();
        let (path, file) = self.file(path);
        file.live
            .insert(generation, Contribution { digest, counts });
        file.note_inode(&path, is_pool);
        self.paths.insert(generation, path);
    }

    /// Records that the file at `path` now has counts that nobody will take off again.
    pub(super) fn settled(&mut self, path: &Path, is_pool: bool) {
        let (path, file) = self.file(path);
        file.holds_more = true;
        file.note_inode(&path, is_pool);
    }

    /// Where the file called `path` is.
    pub(super) fn place<'a>(&'a self, path: &'a Path) -> &'a Path {
        self.files.get(path).map_or(path, |file| file.place(path))
    }

    /// Records that the file called `path` is this process's own.
    pub(super) fn own(&mut self, path: &Path) {
        let (_, file) = self.file(path);
        file.is_own = file.place.is_none();
    }

    /// Takes the names of this process's own files, of those that were not moved.
    pub(super) fn take_own(&mut self) -> Vec<PathBuf> {
        let files = self.files.iter_mut();
        let own = files.filter_map(|(path, file)| {
            std::mem::take(&mut file.is_own).then(|| path.to_path_buf())
        });
        own.collect()
    }

    /// Records that the file called `path` is at `place` from now on.
    pub(super) fn moved(&mut self, path: PathBuf, place: PathBuf) {
        self.file(&path).1.place = Some(place);
    }

    /// Ends the contributions of load `generation`: what it has counted stays, and its next drain
    /// would be another's.
    pub(super) fn settle(&mut self, generation: u64) {
        let path = self.paths.remove(&generation);
        if let Some(file) = path.and_then(|path| self.files.get_mut(&path)) {
            file.holds_more |= file.live.remove(&generation).is_some();
        }
    }

    /// What is known of the file called `path`, and its name.
    fn file(&mut self, path: &Path) -> (Arc<Path>, &mut File) {
        let known = self.files.get_key_value(path);
        let name = known.map_or_else(|| path.into(), |(name, _)| name.clone());
        (name.clone(), self.files.entry(name).or_default())
    }
}
