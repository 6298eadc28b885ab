//! Adding up the profiles of code objects on several threads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use rocov::format::profraw::{ProfileError, RawProfile, Sum};
use rocov::validate::for_each_name;

use super::damaged::Damaged;
use super::progress::Progress;
use crate::data::DeviceProfile;
use crate::profdata::pooled::{CodeObjectKey, PooledProfile};
use crate::support::failure::failure;
use crate::support::mmap;

/// Files that a thread takes at once: few enough for the threads to end together, enough for the
/// queue to cost nothing compared with reading them.
const BATCH: usize = 32;

/// The counts of one code object in all processes.
pub(super) struct Summed {
    pub(super) sum: Sum,
    /// Number of the profiles in it.
    pub(super) profiles: usize,
    /// True if all of them are of zeros: of code that was never launched.
    pub(super) is_of_zeros: bool,
}

impl Summed {
    /// The sum, for a pooled directory.
    fn pooled<'a>(&'a self, key: &'a CodeObjectKey) -> PooledProfile<'a> {
        PooledProfile {
            key,
            is_of_zeros: self.is_of_zeros,
            bytes: self.sum.bytes(),
        }
    }
}

/// The sums, and the files that are in none of them.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) code_objects: BTreeMap<CodeObjectKey, Summed>,
    /// The damaged inputs, in no order.
    pub(super) damaged: Vec<Damaged>,
    /// Files that were given more than once: how often beyond that, and one of them.
    pub(super) repeated: Option<(usize, PathBuf)>,
}

impl Sums {
    /// The sums, for a pooled directory.
    pub(super) fn pooled(&self) -> impl Iterator<Item = PooledProfile<'_>> {
        let sums = self.code_objects.iter();
        sums.map(|(key, summed)| summed.pooled(key))
    }
}

/// A sum that is being added to.
struct Growing {
    /// The first profile, which all others must be like.
    first: PathBuf,
    sum: Mutex<Sum>,
    /// Size of each profile in bytes.
    size: usize,
    profiles: AtomicUsize,
    is_of_zeros: AtomicBool,
}

/// A file to be added.
struct Job {
    path: PathBuf,
    to: Arc<Growing>,
}

/// The state that the threads share.
#[derive(Default)]
struct ThreadState {
    /// Device and inode number of every file.
    seen: Mutex<HashSet<(u64, u64)>>,
    damaged: Mutex<Vec<Damaged>>,
    repeated: Mutex<Option<(usize, PathBuf)>>,
}

/// Takes profiles to be added, in the order of the inputs.
pub(super) struct Adder<'a> {
    growing: HashMap<CodeObjectKey, Arc<Growing>>,
    /// True if the counts of each label are kept apart.
    by_label: bool,
    batch: Vec<Job>,
    queue: SyncSender<Vec<Job>>,
    shared: &'a ThreadState,
    progress: &'a Progress,
}

/// Adds up the profiles that `give` gives to the adder, on `threads` threads, those of each label by themselves
/// if `by_label`. Returns also the result of `give`.
pub(super) fn add_all<T>(
    threads: usize,
    by_label: bool,
    progress: &Progress,
    give: impl FnOnce(&mut Adder<'_>) -> T,
) -> (Sums, T) {
    let shared = ThreadState::default();
    // Bounded, so that the walk over the inputs does not run ahead and remember all of them.
    let (queue, jobs) = sync_channel(2 * threads);
    let jobs = Arc::new(Mutex::new(jobs));
    let mut adder = Adder {
        growing: HashMap::new(),
        by_label,
        batch: Vec::new(),
        queue,
        shared: &shared,
        progress,
    };
    let (growing, result) = thread::scope(|scope| {
        for _ in 0..threads {
            let jobs = Arc::clone(&jobs);
            let shared = &shared;
            scope.spawn(move || work(&jobs, shared, progress));
        }
        // It goes with the threads: nothing is sent to those that have panicked.
        drop(jobs);
        let result = give(&mut adder);
        adder.send();
        // The queue goes with the rest of the adder, which ends the threads.
        (adder.growing, result)
    });
    let code_objects = growing.into_iter().map(|(code_object, growing)| {
        let growing = Arc::into_inner(growing).expect("the jobs are gone with the threads");
        let summed = Summed {
            sum: growing
                .sum
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
            profiles: growing.profiles.into_inner(),
            is_of_zeros: growing.is_of_zeros.into_inner(),
        };
        (code_object, summed)
    });
    let sums = Sums {
        code_objects: code_objects.collect(),
        damaged: std::mem::take(&mut lock(&shared.damaged)),
        repeated: lock(&shared.repeated).take(),
    };
    (sums, result)
}

impl Adder<'_> {
    /// Adds a profile, now or later.
    pub(super) fn add(&mut self, profile: DeviceProfile, build: Option<String>) {
        let is_of_zeros = profile.is_of_zeros;
        let code_object = CodeObjectKey {
            arch: profile.arch,
            identity: profile.identity,
            build,
            label: profile.label.filter(|_| self.by_label),
        };
        let path = profile.path;
        if let Some(to) = self.growing.get(&code_object) {
            let to = Arc::clone(to);
            to.is_of_zeros.fetch_and(is_of_zeros, Ordering::Relaxed);
            self.batch.push(Job { path, to });
            if self.batch.len() == BATCH {
                self.send();
            }
            return;
        }
        // At once, as all others are compared with it: were it the one that a thread happens to read
        // first, another could be named as damaged the next time.
        match self.first(&path) {
            Ok(Some(growing)) => {
                let growing = Growing {
                    is_of_zeros: is_of_zeros.into(),
                    ..growing
                };
                self.growing.insert(code_object, Arc::new(growing));
            }
            Ok(None) => {}
            Err(error) => self.shared.damaged(path, error),
        }
    }

    /// Returns whether `path` is a file that was not given before.
    pub(super) fn is_new(&self, path: &Path) -> bool {
        // A file without metadata is new. Reading it reports the fault.
        std::fs::metadata(path).map_or(true, |metadata| self.shared.is_new(path, &metadata))
    }

    fn first(&self, path: &Path) -> Result<Option<Growing>> {
        // Not mapped: others may add to it meanwhile.
        let file = mmap::read(path)?;
        if !self.is_new(path) {
            return Ok(None);
        }
        let size = file.len();
        // A sum starts with the counts that are whole, if need be with those before.
        let checked = RawProfile::parse(&file).and_then(|profile| profile.check_counts(&file));
        let sum = checked
            .and_then(|()| Sum::new(file))
            .with_context(|| cannot_merge(path))?;
        // Another profile of the code object may have whole names, and profiles of others are merged anyway.
        let names = &sum.bytes()[sum.profile().sections.names.clone()];
        for_each_name(names, |_| {}).with_context(|| cannot_merge(path))?;
        self.progress.add(size);
        Ok(Some(Growing {
            first: path.to_owned(),
            size,
            sum: Mutex::new(sum),
            profiles: AtomicUsize::new(1),
            is_of_zeros: AtomicBool::new(false),
        }))
    }

    fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        // The threads end after the queue, unless they have panicked, which the scope passes on.
        let _ = self.queue.send(batch);
    }
}

fn work(jobs: &Mutex<Receiver<Vec<Job>>>, shared: &ThreadState, progress: &Progress) {
    let mut buffer = Vec::new();
    loop {
        // The lock is held while waiting, and by one that waits for the same.
        let Ok(batch) = lock(jobs).recv() else { return };
        for job in batch {
            if let Err(error) = job.run(&mut buffer, shared, progress) {
                shared.damaged(job.path, error);
            }
        }
    }
}

impl Job {
    fn run(&self, buffer: &mut Vec<u8>, shared: &ThreadState, progress: &Progress) -> Result<()> {
        let path = &self.path;
        let mut file = mmap::open(path)?;
        let metadata = file
            .metadata()
            .with_context(|| format!("cannot look at {}", path.display()))?;
        if !shared.is_new(path, &metadata) {
            return Ok(());
        }
        let added = if metadata.len() == self.to.size as u64 {
            // Reading is faster than mapping for files of this size: no page is set up.
            let size = self.to.size;
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            let bytes = &mut buffer[..size];
            file.read_exact(bytes)
                .with_context(|| format!("cannot read {}", path.display()))?;
            lock(&self.to.sum).add(bytes)
        } else {
            // It has room for the sums of many processes and the first has not, or cannot be added.
            let bytes = mmap::read_open(&file, path)?;
            lock(&self.to.sum).add(&bytes)
        };
        match added {
            Ok(()) => {
                self.to.profiles.fetch_add(1, Ordering::Relaxed);
                progress.add(self.to.size);
                Ok(())
            }
            Err(error @ ProfileError::OtherCode) => {
                let compared = failure!(
                    "{error}, compared with {}", self.to.first.display();
                    "remove whichever is wrong"
                );
                Err(compared.context(cannot_merge(path)))
            }
            Err(error) => Err(error).with_context(|| cannot_merge(path)),
        }
    }
}

impl ThreadState {
    fn is_new(&self, path: &Path, metadata: &Metadata) -> bool {
        let is_new = lock(&self.seen).insert((metadata.dev(), metadata.ino()));
        if !is_new {
            let mut repeated = lock(&self.repeated);
            let (number, first) = repeated.get_or_insert_with(|| (0, path.to_owned()));
            *number += 1;
            // The first by name, so that the order of the threads does not matter.
            if path < first.as_path() {
                *first = path.to_owned();
            }
        }
        is_new
    }

    fn damaged(&self, path: PathBuf, error: anyhow::Error) {
        lock(&self.damaged).push(Damaged { path, error });
    }
}

fn cannot_merge(path: &Path) -> String {
    format!("cannot merge {}", path.display())
}

/// Locks. That another thread panicked is passed on by the scope.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
