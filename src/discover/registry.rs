//! The registry of a running process.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::device::cuda::modules::is_cuda;
use crate::device::{Agent, DeviceRange, Executable};
use crate::discover::host_files::HostFile;
use crate::discover::{ElfFacts, Found};
use crate::format::registry::model::{MAX_STOPS, Unload};

/// All code objects that a process has loaded, instrumented or not, with the times of their loads and
/// unloads.
///
/// Addresses and handles are reused after an unload. So every load and every unload has a number, its
/// generation, and a query for an address names one:
/// [`ProcessRecord::lookup`](crate::format::registry::model::ProcessRecord::lookup).
///
/// A load takes some two hundred bytes that are never freed. All loads of one ELF share its facts.
#[derive(Debug, Default)]
pub struct Registry {
    agents: Vec<Arc<Agent>>,
    /// By generation.
    loads: Vec<Loaded>,
    /// The indices in `loads` of code objects that are still loaded.
    live: HashMap<Executable, Vec<usize>>,
    /// Each path once.
    profiles: HashSet<Arc<OsStr>>,
    device_code: Vec<CodeFile>,
    is_traced: bool,
    stops: Vec<Box<str>>,
    start: Option<u64>,
    is_instrumented: bool,
    generation: u64,
    changes: u64,
}

/// A host file with device code that the process had loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFile {
    /// Its path.
    pub path: PathBuf,
    /// Its GNU build id. `None` if it has none.
    pub build: Option<String>,
    /// The time of its last change, in nanoseconds since 1970, if it has no build id and was still there.
    pub modified: Option<u64>,
}

/// A code object on an agent, from its load to its unload.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The number of the event, from 1. Loads and unloads share one count.
    pub generation: u64,
    /// The time of the load, in nanoseconds of the boot clock.
    pub time: u64,
    /// The executable that holds it.
    pub executable: Executable,
    /// The index of the agent that it is loaded on.
    pub agent: usize,
    /// The URI of its ELF.
    pub uri: Box<str>,
    /// The device memory that it occupies.
    pub segment: DeviceRange,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// The facts from its ELF. `None` if it could not be read.
    pub code_object: Option<Arc<ElfFacts>>,
    /// True if it has counters.
    pub instrumented: bool,
    /// The host file that it came from, if that is known and it has counters.
    pub host: Option<Arc<HostFile>>,
    /// The file that last got its counts.
    pub profile: Option<Arc<OsStr>>,
    /// The reason why the file lacks some of its counts, and the next step. `None` if it lacks none.
    pub partial: Option<Box<str>>,
    /// Its end.
    pub unload: Option<Unload>,
}

impl Registry {
    /// The number of the last event. 0 before the first.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The GPU agents, by index.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().map(Arc::as_ref)
    }

    /// All loads so far, by generation.
    #[must_use]
    pub fn loads(&self) -> &[Loaded] {
        &self.loads
    }

    /// The time of the first load, or of the end of a process that has loaded nothing, in nanoseconds of the
    /// boot clock. 0 before that.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start.unwrap_or_default()
    }

    /// The host files with device code that the process had, by path. Empty before [`Registry::record_end`].
    #[must_use]
    pub fn device_code(&self) -> &[CodeFile] {
        &self.device_code
    }

    /// Returns whether the device counted what it executed. False before [`Registry::record_end`].
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.is_traced
    }

    /// The reasons why the GPU has stopped kernels, in the order of time: the first [`MAX_STOPS`].
    #[must_use]
    pub fn stops(&self) -> &[Box<str>] {
        &self.stops
    }

    /// Returns whether a code object with counters was loaded.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        self.is_instrumented
    }

    /// The number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Records agents. If an index returns after a restart of HSA, it belongs to the new agent.
    pub(crate) fn see_agents(&mut self, agents: &[Arc<Agent>]) {
        for agent in agents {
            let mut known = self.agents.iter_mut();
            let is_it = |known: &&mut Arc<Agent>| {
                known.index == agent.index && is_cuda(known.handle) == is_cuda(agent.handle)
            };
            match known.find(is_it) {
                Some(known) => *known = agent.clone(),
                None => self.agents.push(agent.clone()),
            }
        }
    }

    /// Records at `time` that the process ends and has had device code in `files`, and whether the device counted
    /// what it executed.
    pub fn record_end(&mut self, mut files: Vec<CodeFile>, is_traced: bool, time: u64) {
        // By their bytes: the names within paths take longer to compare.
        files.sort_unstable_by(|one, other| {
            let paths = one.path.as_os_str().cmp(other.path.as_os_str());
            paths.then_with(|| one.build.cmp(&other.build))
        });
        files.dedup();
        if self.device_code != files {
            self.start.get_or_insert(time);
            self.device_code = files;
            self.is_traced = is_traced;
            self.changes += 1;
        }
    }

    /// Records the reason why the GPU has stopped a kernel.
    pub fn stopped(&mut self, reason: &str) {
        if self.stops.len() < MAX_STOPS {
            self.stops.push(reason.into());
            self.changes += 1;
        }
    }

    /// Records a load at `time`. Returns its generation.
    pub fn loaded(&mut self, found: &Found, time: u64) -> u64 {
        self.loaded_from(found, None, time)
    }

    /// Records a load, at `time`, of a code object from `host`. Returns its generation.
    pub fn loaded_from(&mut self, found: &Found, host: Option<Arc<HostFile>>, time: u64) -> u64 {
        let code_object = &found.code_object;
        let generation = self.next();
        self.start.get_or_insert(time);
        self.is_instrumented |= found.is_instrumented();
        let of_executable = self.live.entry(code_object.executable).or_default();
        of_executable.push(self.loads.len());
        self.loads.push(Loaded {
            generation,
            time,
            executable: code_object.executable,
            agent: found.agent.index,
            uri: code_object.uri.as_str().into(),
            segment: code_object.segment,
            load_delta: code_object.load_delta,
            code_object: found.elf.clone(),
            instrumented: found.is_instrumented(),
            host,
            profile: None,
            partial: None,
            unload: None,
        });
        generation
    }

    /// Records at `time` that all current loads of `executable` have ended.
    pub fn unloaded(&mut self, executable: Executable, time: u64) {
        for at in self.live.remove(&executable).unwrap_or_default() {
            self.end(at, time);
        }
    }

    /// Records at `time` that all current loads have ended, in the order of loading.
    pub fn unloaded_all(&mut self, time: u64) {
        self.live.clear();
        for at in 0..self.loads.len() {
            if self.loads[at].unload.is_none() {
                self.end(at, time);
            }
        }
    }

    /// The executables with current loads.
    pub(crate) fn live(&self) -> impl Iterator<Item = Executable> {
        self.live.keys().copied()
    }

    /// The current loads of `executable`.
    pub(crate) fn loads_of(&self, executable: Executable) -> impl Iterator<Item = &Loaded> {
        let places = self.live.get(&executable).into_iter().flatten();
        places.map(|at| &self.loads[*at])
    }

    fn end(&mut self, at: usize, time: u64) {
        let generation = self.next();
        self.loads[at].unload = Some(Unload { generation, time });
    }

    /// Records the file with the counts of load `generation`.
    pub fn profiled(&mut self, generation: u64, file: &Path) {
        let Some(at) = self.position(generation) else {
            return;
        };
        let file = file.as_os_str();
        if self.loads[at].profile.as_deref() == Some(file) {
            return;
        }
        let shared = self.profiles.get(file).cloned().unwrap_or_else(|| {
            let new: Arc<OsStr> = file.into();
            self.profiles.insert(new.clone());
            new
        });
        self.loads[at].profile = Some(shared);
        self.changes += 1;
    }

    /// Records the reason why the profile of load `generation` is partial. The first one stays.
    pub fn note_missing_counts(&mut self, generation: u64, reason: &str) {
        if let Some(at) = self.position(generation)
            && self.loads[at].partial.is_none()
        {
            self.loads[at].partial = Some(reason.into());
            self.changes += 1;
        }
    }

    fn position(&self, generation: u64) -> Option<usize> {
        self.loads
            .binary_search_by_key(&generation, |load| load.generation)
            .ok()
    }

    fn next(&mut self) -> u64 {
        self.generation += 1;
        self.changes += 1;
        self.generation
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
pub(crate) mod tests;
