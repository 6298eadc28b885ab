//! One drain pass: from loads to files, and what became of each as a value.
//!
//! ```text
//! freeze hook  -> Session::loaded    discover
//! destroy hook -> Session::unloading read, validate, encode, write; then forget the load
//! exit         -> Session::drain     the same for every load that is still there
//! on request   -> Session::mark      what was counted since the last one goes to a label
//! ```
//!
//! A pass goes on after a failure: what is wrong with one code object costs no other its counts.

mod blank;
mod complete;
mod copies;
mod counted;
mod drainer;
mod ledger;
mod on_request;
mod outcome;
mod pass;
mod scope;
mod shares;
mod snapshot;
mod unseen;

pub use complete::Idle;
pub use drainer::Drainer;
pub use outcome::{Cause, Copied, Loss, Outcome};
pub use scope::{Scope, Scopes, Window};

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::at_rest::AtRest;
use crate::device::{Agent, Device, DeviceError, DeviceRange, Executable};
use crate::filter::{Filter, file_of};
use crate::host::HostFiles;
use crate::load::{Demangle, Discovery, Elfs, Load, discover};
use crate::output::{OutputError, ProfileName, move_beside};
use crate::registry::{KeepError, Keeper, NeverLoaded, Registry, clock};
use crate::sections::NamesChecker;
use complete::Complete;
use copies::{Copies, first_look};
use ledger::Ledger;
use pass::{Pass, Writes};
use shares::Shares;

/// The loads of a process and what was written of them. Owned by whoever hooks the runtime.
#[derive(Debug, Default)]
pub struct Session {
    agents: Vec<Arc<Agent>>,
    elfs: Elfs,
    /// Those that are to be drained. By generation, so that files are written in the order of
    /// loading.
    loads: BTreeMap<u64, Load>,
    /// Executables that were looked at, with the generations of their loads: most have none.
    seen: HashMap<Executable, Vec<u64>>,
    ledger: Ledger,
    shares: Shares,
    /// Where what is counted now goes.
    scope: Scope,
    complete: Complete,
    /// The same for what was marked.
    marked: Complete,
    /// Executables that could not be looked at.
    missed: HashSet<Executable>,
    filter: Filter,
    names: NamesChecker,
    /// Where code objects come from.
    files: HostFiles,
    /// All loads, to be drained or not.
    registry: Registry,
    keeper: Keeper,
    is_ending: bool,
    /// Whether executables have come past the hooks.
    has_missed: bool,
}

impl Session {
    /// A session that drains what `filter` admits.
    #[must_use]
    pub fn filtered(filter: Filter) -> Session {
        Session {
            filter,
            ..Session::default()
        }
    }

    /// The same session, which beside profiles leaves what `keeper` keeps.
    #[must_use]
    pub fn with_keeper(self, keeper: Keeper) -> Session {
        Session { keeper, ..self }
    }

    /// The same session, which has the names of kernels demangled by this.
    #[must_use]
    pub fn with_demangler(self, demangle: Demangle) -> Session {
        let elfs = Elfs::demangled_by(demangle);
        Session { elfs, ..self }
    }

    /// Has the session learn from `files` which host files code objects come from.
    #[must_use]
    pub fn with_files(self, files: HostFiles) -> Session {
        Session { files, ..self }
    }

    /// What is drained.
    #[must_use]
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// What was loaded, when and where.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Looks at an executable that has just been frozen, and remembers its code objects. Nothing is
    /// read from the device.
    ///
    /// # Errors
    /// Fails where the runtime cannot list agents or code objects.
    pub fn loaded(
        &mut self,
        device: &dyn Device,
        executable: Executable,
    ) -> Result<Outcome, DeviceError> {
        self.loaded_by(device, executable, &|| None)
    }

    /// The same for an executable that code in the file `loader` has loaded: the origin of code
    /// objects that lie in no file. It is asked for if there is one.
    ///
    /// # Errors
    /// As for [`Session::loaded`].
    pub fn loaded_by(
        &mut self,
        device: &dyn Device,
        executable: Executable,
        loader: &dyn Fn() -> Option<PathBuf>,
    ) -> Result<Outcome, DeviceError> {
        // A handle that comes back belongs to a new executable.
        self.forget(executable);
        self.missed.insert(executable);
        if self.agents.is_empty() {
            self.agents = device.agents()?.into_iter().map(Arc::new).collect();
            self.registry.see_agents(&self.agents);
        }
        let filter = &self.filter;
        let asked = OnceCell::new();
        let loader = || asked.get_or_init(loader).clone();
        let origin = |uri: &str| file_of(uri).or_else(loader);
        let wanted = |uri: &str| filter.is_open() || filter.admits(origin(uri).as_deref());
        let Discovery {
            found,
            skipped,
            failures,
        } = discover(device, &self.agents, executable, &mut self.elfs, wanted)?;
        self.missed.remove(&executable);
        let generations = self.seen.entry(executable).or_default();
        let pairs = found.len();
        let mut not_kept = Vec::new();
        let now = clock::now();
        for found in found {
            let counts = found.is_instrumented();
            let host = counts.then(|| self.files.of(origin(&found.code_object.uri)));
            let host = host.flatten();
            let generation = self.registry.loaded_from(&found, host.clone(), now);
            not_kept.extend(self.keeper.keep(device, &found).err());
            if let Some(load) = found.into_load(generation, host) {
                generations.push(generation);
                self.loads.insert(generation, load);
            }
        }
        let losses = failures
            .into_iter()
            .map(|(code_object, error)| Loss {
                code_object,
                cause: Cause::Failed(error),
            })
            .collect();
        Ok(Outcome {
            agents: self.agents.len(),
            pairs,
            skipped,
            found: generations.len(),
            losses,
            not_kept,
            ..Outcome::default()
        })
    }

    /// Drains an executable that is about to be destroyed, and forgets it.
    pub fn unloading(
        &mut self,
        device: &dyn Device,
        executable: Executable,
        name: &ProfileName,
    ) -> Outcome {
        let is_missed = self.missed.contains(&executable);
        let missed = is_missed.then(|| self.look_late(device, executable));
        let generations = self.seen.get(&executable).cloned().unwrap_or_default();
        let (mut outcome, _) = self.drain_those(device, name, &generations, Writes::All);
        outcome.absorb(missed.unwrap_or_default());
        outcome.not_kept.extend(self.gone(executable, name));
        outcome
    }

    /// Whether nothing of `executable` can have run since it was drained, as its agents have been
    /// `idle` since before that.
    #[must_use]
    pub fn is_complete(&self, executable: Executable, idle: &Idle) -> bool {
        let Some(generations) = self.seen.get(&executable) else {
            return false;
        };
        let is_complete = |generation| {
            let load = self.loads.get(generation);
            load.is_some_and(|load| self.complete.has(load, idle))
        };
        !generations.is_empty() && generations.iter().all(is_complete)
    }

    /// Forgets an executable that is about to be destroyed, undrained.
    pub fn gone(&mut self, executable: Executable, name: &ProfileName) -> Vec<KeepError> {
        self.forget(executable);
        if self.is_ending {
            return Vec::new();
        }
        let mut not_kept = self.keeper.gather_in(name);
        let written = self.keeper.write_now_and_then(&self.registry, name);
        not_kept.extend(written.err());
        not_kept
    }

    /// Drains every load that is still there, those included whose freeze was not seen. What else is
    /// kept, [`Session::keep`] writes.
    pub fn drain(&mut self, device: &dyn Device, name: &ProfileName) -> Outcome {
        self.drain_busy(device, name, &Idle::new())
    }

    /// Drains every load that is still there, but for those that were drained before and of which
    /// nothing can have run since, as their agents have been `idle` (see
    /// [`crate::hsa::Queues::idle`], which is asked before the drain).
    pub fn drain_busy(&mut self, device: &dyn Device, name: &ProfileName, idle: &Idle) -> Outcome {
        self.drain_due(device, name, Writes::All, idle)
    }

    /// Has a pass over all loads that are due, and remembers which of them are done with as long as
    /// their agents are `idle`: those of which nothing was to be said.
    fn drain_due(
        &mut self,
        device: &dyn Device,
        name: &ProfileName,
        writes: Writes,
        idle: &Idle,
    ) -> Outcome {
        let unseen = self.look_for_unseen(device);
        let done = match writes {
            Writes::Labels => &self.marked,
            Writes::All | Writes::New => &self.complete,
        };
        let is_due = |(_, load): &(&u64, &Load)| !done.has(load, idle);
        let due: Vec<u64> = self.loads.iter().filter(is_due).map(|it| *it.0).collect();
        let (mut outcome, well) = self.drain_those(device, name, &due, writes);
        // A walk that broke off may have missed code that is loaded, and launched, past the hooks.
        if unseen.losses.is_empty() {
            let well = || well.iter().filter_map(|it| self.loads.get(it));
            self.marked.record(well(), idle);
            if writes != Writes::Labels {
                self.complete.record(well(), idle);
            }
        }
        outcome.absorb(unseen);
        outcome
    }

    /// Writes a profile of zeros for a code object of `file` that an agent of `device` could have
    /// loaded, unless this process has, and keeps its ELF. The registry lists it.
    ///
    /// All processes share such a profile: one that is there already is left alone.
    pub fn drain_never_loaded(
        &mut self,
        device: &AtRest,
        file: &Arc<Path>,
        name: &ProfileName,
    ) -> Outcome {
        let (agent, identity) = (device.agent(), device.identity());
        if self.registry.has_loaded(identity, agent.index) {
            return Outcome::default();
        }
        let name = name.for_zeros();
        let place = name.for_load(&agent.name, identity, agent.index);
        let (mut outcome, mut elf) = (Outcome::default(), None);
        if !place.exists() {
            let mut apart = Session {
                keeper: std::mem::take(&mut self.keeper),
                elfs: std::mem::take(&mut self.elfs),
                ..Session::default()
            };
            outcome = apart.drain_due(device, &name, Writes::New, &Idle::new());
            elf = apart.registry.loads()[..]
                .first()
                .and_then(|load| load.code_object.clone());
            (self.keeper, self.elfs) = (apart.keeper, apart.elfs);
        }
        let never = NeverLoaded {
            file: file.clone(),
            build: self
                .files
                .of(Some(file.to_path_buf()))
                .map(|host| host.build.clone()),
            agent: agent.index,
            identity: identity.clone(),
            code_object: elf,
        };
        let agent = Arc::new(agent.clone());
        self.registry.was_not_loaded(&agent, never, clock::now());
        outcome
    }

    /// The process is ending: the registry is written by [`Session::keep`] alone from now on, which
    /// is to be called once more, last of all.
    ///
    /// Where a destructor launches a kernel, HIP 5.2 and 5.7 write to a block of the heap that they
    /// have freed. The more the heap is used before, the likelier that ends the program.
    pub fn ends(&mut self) {
        self.is_ending = true;
    }

    /// What is kept of code objects that are loaded from now on goes beside profiles of this name.
    /// What was drained goes there too, by the next drain.
    pub fn go_on_beside(&mut self, name: &ProfileName) {
        self.complete.forget_all();
        self.keeper.go_on_in(name);
    }

    /// Writes what is kept beside the profiles of this name. The device is not asked.
    pub fn keep(&mut self, name: &ProfileName) -> Vec<KeepError> {
        let mut not_kept = self.keeper.gather_in(name);
        not_kept.extend(self.keeper.write(&self.registry, name).err());
        not_kept
    }

    /// The process is about to be given to another program, which may load the same code objects
    /// and take the same names: files of this one are renamed ([`move_beside`]), and later drains,
    /// if it stays, write to them. Pools stay, as everybody adds to them.
    ///
    /// Returns the new names; what could not be renamed is an error.
    pub fn hand_over(&mut self) -> Vec<Result<PathBuf, OutputError>> {
        let mut names = HashMap::new();
        let own = self.ledger.take_own().into_iter();
        let mut renamed: Vec<_> = own
            .map(|path| {
                let place = move_beside(&path)?;
                self.ledger.moved(path.clone(), place.clone());
                names.insert(path, place.clone());
                Ok(place)
            })
            .collect();
        self.registry.renamed(&names);
        renamed.append(&mut self.keeper.hand_over());
        renamed
    }

    /// The runtime is gone, and with it all executables: what was written of them stays.
    pub fn forget_all(&mut self) {
        for generation in std::mem::take(&mut self.loads).into_keys() {
            self.settle(generation);
        }
        self.registry.unloaded_all(clock::now());
        self.seen.clear();
        self.missed.clear();
        self.agents.clear();
    }

    /// Whether an executable was looked at, or was to be. Most of them have nothing to drain.
    #[must_use]
    pub fn has_seen(&self, executable: Executable) -> bool {
        self.seen.contains_key(&executable) || self.missed.contains(&executable)
    }

    /// Handles of the agents on which kernels of `executable` count, or of any.
    #[must_use]
    pub fn counting_agents(&self, executable: Option<Executable>) -> Vec<u64> {
        let mut agents = Vec::new();
        let note = |load: &Load| {
            if !agents.contains(&load.agent.handle) {
                agents.push(load.agent.handle);
            }
        };
        match executable {
            None => self.loads.values().for_each(note),
            Some(executable) => {
                let generations = self.seen.get(&executable).into_iter().flatten();
                let loads = generations.filter_map(|generation| self.loads.get(generation));
                loads.for_each(note);
            }
        }
        agents
    }

    /// The device memory of an executable's code objects.
    #[must_use]
    pub fn memory_of(&self, executable: Executable) -> Vec<DeviceRange> {
        let loads = self.registry.loads_of(executable);
        loads.map(|load| load.segment).collect()
    }

    /// GPU agents, 0 before the first load.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.agents.len()
    }

    /// Loads that are there to be drained.
    #[must_use]
    pub fn loads(&self) -> usize {
        self.loads.len()
    }

    /// Whether there is no load to drain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Lets go of an executable's loads. It stays among the seen: until the runtime has destroyed it,
    /// it is still listed as alive, and a drain on another thread would find it anew and read memory
    /// that is being freed. When the handle comes back, `loaded` says so.
    fn forget(&mut self, executable: Executable) {
        self.missed.remove(&executable);
        let Some(generations) = self.seen.get_mut(&executable) else {
            return;
        };
        let generations = std::mem::take(generations);
        self.registry.unloaded(executable, clock::now());
        for generation in generations {
            self.loads.remove(&generation);
            self.settle(generation);
        }
    }

    /// A load is gone, or its counters start from zero: what was written of them stays, and all else
    /// that is remembered of them ends.
    fn settle(&mut self, generation: u64) {
        self.complete.forget(generation);
        self.marked.forget(generation);
        self.shares.forget(generation);
        self.ledger.settle(generation);
    }

    /// Drains the loads with these `generations`: while one is written, the next are copied. Returns
    /// besides those of which nothing is to be said.
    fn drain_those(
        &mut self,
        device: &dyn Device,
        name: &ProfileName,
        generations: &[u64],
        writes: Writes,
    ) -> (Outcome, Vec<u64>) {
        let loads: Vec<&Load> = generations
            .iter()
            .filter_map(|generation| self.loads.get(generation))
            .collect();
        let mut outcome = Outcome {
            agents: self.agents.len(),
            pairs: loads.len(),
            found: loads.len(),
            files: Vec::with_capacity(loads.len()),
            copied: Vec::with_capacity(loads.len()),
            ..Outcome::default()
        };
        let mut well = Vec::with_capacity(loads.len());
        let ranges: Vec<_> = loads.iter().map(|load| first_look(load)).collect();
        device.read_each(&ranges, &mut |place, read| {
            let load = loads[place];
            let mut copies = match read {
                Ok(bytes) => Copies::of(device, ranges[place].start, bytes),
                // What cannot be copied and why shows when it is looked for.
                Err(_) => Copies::none(device),
            };
            let books = (&mut self.ledger, &mut self.shares);
            let mut pass = Pass::of(load, name, &self.scope, writes, books);
            pass.run(&mut copies, &mut self.names);
            if let Some(own) = &pass.own {
                self.registry.profiled(load.generation, own);
            }
            outcome.files.append(&mut pass.files);
            outcome.copied.append(&mut pass.copied);
            if pass.causes.is_empty() {
                well.push(load.generation);
            }
            let losses = pass.causes.into_iter().map(|cause| Loss {
                code_object: load.to_string(),
                cause,
            });
            outcome.losses.extend(losses);
        });
        (outcome, well)
    }
}

fn walk_failed(error: DeviceError) -> Loss {
    Loss {
        code_object: "the walk over executables".into(),
        cause: Cause::Failed(error.into()),
    }
}
