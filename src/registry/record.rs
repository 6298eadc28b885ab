//! The registry of a running process.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::model::Unload;
use super::places::Places;
use crate::codeobject::{Identity, Kernel};
use crate::device::{Agent, DeviceRange, Executable};
use crate::host::HostFile;
use crate::load::{ElfFacts, Found};

/// All code objects that a process has loaded, instrumented or not, and when they were there.
///
/// Addresses and handles are used again after an unload. So every load and every unload has a
/// number, its generation, and what an address means is asked as of one: [`Registry::lookup`].
///
/// A load takes some two hundred bytes for good; what its ELF says is shared by all loads of it.
#[derive(Debug, Default)]
pub struct Registry {
    agents: Vec<Arc<Agent>>,
    /// By generation.
    loads: Vec<Loaded>,
    /// Places in `loads` of those that are still there.
    live: HashMap<Executable, Vec<usize>>,
    places: Places,
    /// Each path once.
    profiles: HashSet<Arc<Path>>,
    never_loaded: Vec<NeverLoaded>,
    start: Option<u64>,
    is_instrumented: bool,
    generation: u64,
    changes: u64,
}

/// A code object that counts, and that the process could have loaded and did not.
#[derive(Clone, Debug)]
pub struct NeverLoaded {
    /// The program or library that it is in.
    pub file: Arc<Path>,
    /// The build of that, if it is known.
    pub build: Option<String>,
    /// Index of the agent that it is for.
    pub agent: usize,
    /// Its identity.
    pub identity: Identity,
    /// What its ELF says; `None` if another process has written that down.
    pub code_object: Option<Arc<ElfFacts>>,
}

/// A code object on an agent, from its load to its unload.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Number of the event, from 1: loads and unloads are counted together.
    pub generation: u64,
    /// When, in nanoseconds of the boot clock.
    pub time: u64,
    /// The executable that holds it.
    pub executable: Executable,
    /// Index of the agent that it is loaded on.
    pub agent: usize,
    /// Where its ELF came from.
    pub uri: Box<str>,
    /// The device memory that it occupies.
    pub segment: DeviceRange,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// What its ELF says; `None` where that was out of reach.
    pub code_object: Option<Arc<ElfFacts>>,
    /// Whether it counts anything.
    pub instrumented: bool,
    /// The file of the host that it came from, if that is known and it counts.
    pub host: Option<Arc<HostFile>>,
    /// The file that its counts were written to last.
    pub profile: Option<Arc<Path>>,
    /// Its end.
    pub unload: Option<Unload>,
}

/// What an address means.
#[derive(Clone, Copy, Debug)]
pub struct Resolved<'a> {
    /// The address.
    pub address: u64,
    /// The load that had it; `None` where no code object was there.
    pub load: Option<&'a Loaded>,
    /// The kernel whose kernel object (descriptor) or first instruction is there.
    pub kernel: Option<&'a Kernel>,
}

impl Registry {
    /// Number of the last event, 0 before the first.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The GPU agents, by index.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().map(Arc::as_ref)
    }

    /// All loads there were, by generation.
    #[must_use]
    pub fn loads(&self) -> &[Loaded] {
        &self.loads
    }

    /// When the first code object was loaded, or seen not to be, in nanoseconds of the boot clock; 0
    /// before.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start.unwrap_or_default()
    }

    /// What could have been loaded and was not.
    pub fn never_loaded(&self) -> impl Iterator<Item = &NeverLoaded> {
        let never = self.never_loaded.iter();
        // A library may be closed, opened again, and used then.
        never.filter(|it| !self.has_loaded(&it.identity, it.agent))
    }

    /// Returns whether a code object was loaded, on the agent with this index or on another of its name.
    #[must_use]
    pub fn has_loaded(&self, identity: &Identity, agent: usize) -> bool {
        let name = |index| {
            let agent = self.agents.iter().find(|it| it.index == index);
            agent.map(|agent| &agent.name)
        };
        self.loads.iter().any(|load| {
            let elf = load.code_object.as_ref();
            elf.is_some_and(|elf| elf.identity == *identity) && name(load.agent) == name(agent)
        })
    }

    /// Returns whether a code object was loaded that counts, or could have been.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        self.is_instrumented
    }

    /// How often something has changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes agents. An index that comes back after HSA was started again is the new agent's.
    pub(crate) fn see_agents(&mut self, agents: &[Arc<Agent>]) {
        for agent in agents {
            let mut known = self.agents.iter_mut();
            match known.find(|known| known.index == agent.index) {
                Some(known) => *known = agent.clone(),
                None => self.agents.push(agent.clone()),
            }
        }
    }

    /// Notes at `time` that a code object for `agent` was not loaded.
    pub fn was_not_loaded(&mut self, agent: &Arc<Agent>, never: NeverLoaded, time: u64) {
        let is_known = |it: &NeverLoaded| {
            (it.agent, &it.identity, &it.file) == (never.agent, &never.identity, &never.file)
        };
        if self.never_loaded.iter().any(is_known) {
            return;
        }
        if !self.agents.iter().any(|it| it.index == agent.index) {
            self.see_agents(std::slice::from_ref(agent));
        }
        self.start.get_or_insert(time);
        self.never_loaded.push(never);
        self.is_instrumented = true;
        self.changes += 1;
    }

    /// Notes a load at `time`. Returns its generation.
    pub fn loaded(&mut self, found: &Found, time: u64) -> u64 {
        self.loaded_from(found, None, time)
    }

    /// Notes a load, at `time`, of a code object that came from `host`. Returns its generation.
    pub fn loaded_from(&mut self, found: &Found, host: Option<Arc<HostFile>>, time: u64) -> u64 {
        let code_object = &found.code_object;
        let generation = self.next();
        self.start.get_or_insert(time);
        self.is_instrumented |= found.is_instrumented();
        self.places.insert(code_object.segment, generation);
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
            unload: None,
        });
        generation
    }

    /// Notes at `time` that all loads of `executable` are gone, those that are there.
    pub fn unloaded(&mut self, executable: Executable, time: u64) {
        for at in self.live.remove(&executable).unwrap_or_default() {
            self.end(at, time);
        }
    }

    /// Notes at `time` that nothing is loaded any more: what is there ends in the order of loading.
    pub fn unloaded_all(&mut self, time: u64) {
        self.live.clear();
        for at in 0..self.loads.len() {
            if self.loads[at].unload.is_none() {
                self.end(at, time);
            }
        }
    }

    /// The executables of which something is loaded.
    pub(crate) fn live(&self) -> impl Iterator<Item = Executable> {
        self.live.keys().copied()
    }

    /// What is loaded of `executable`.
    pub(crate) fn loads_of(&self, executable: Executable) -> impl Iterator<Item = &Loaded> {
        let places = self.live.get(&executable).into_iter().flatten();
        places.map(|at| &self.loads[*at])
    }

    fn end(&mut self, at: usize, time: u64) {
        let generation = self.next();
        self.loads[at].unload = Some(Unload { generation, time });
    }

    /// Notes the file that the counts of load `generation` are in.
    pub fn profiled(&mut self, generation: u64, file: &Path) {
        let Some(at) = self.position(generation) else {
            return;
        };
        if self.loads[at].profile.as_deref() == Some(file) {
            return;
        }
        let shared = self.profiles.get(file).cloned().unwrap_or_else(|| {
            let new: Arc<Path> = file.into();
            self.profiles.insert(new.clone());
            new
        });
        self.loads[at].profile = Some(shared);
        self.changes += 1;
    }

    /// Notes that files of counts have other names.
    pub(crate) fn renamed(&mut self, names: &HashMap<PathBuf, PathBuf>) {
        for (file, name) in names {
            if self.profiles.remove(file.as_path()) {
                self.profiles.insert(name.as_path().into());
            }
        }
        for load in &mut self.loads {
            let name = load.profile.as_ref().and_then(|file| names.get(&**file));
            if let Some(name) = name.and_then(|name| self.profiles.get(name.as_path())) {
                load.profile = Some(name.clone());
                self.changes += 1;
            }
        }
    }

    /// What `address` meant when `generation` was the last event: the code object that was loaded
    /// there, and its kernel where the address is a kernel object or a kernel's first instruction.
    #[must_use]
    pub fn lookup(&self, address: u64, generation: u64) -> Resolved<'_> {
        let is_there = |load: &&Loaded| {
            let past_start = address.checked_sub(load.segment.start);
            past_start.is_some_and(|offset| offset < load.segment.len)
                && load.unload.is_none_or(|end| generation < end.generation)
        };
        let candidates = self.places.candidates(address, generation);
        let load = candidates
            .filter_map(|candidate| self.loads.get(self.position(candidate)?))
            .filter(is_there)
            // Were two there, the end of the earlier one has not been seen.
            .max_by_key(|load| load.generation);
        let kernel = load.and_then(|load| {
            let elf = load.code_object.as_deref()?;
            elf.kernels.at(address.wrapping_sub(load.load_delta))
        });
        Resolved {
            address,
            load,
            kernel,
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
#[path = "record_tests.rs"]
pub(super) mod tests;
