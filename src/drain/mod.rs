//! A drain pass: from loads to files, with the result for each as a value.
//!
//! ```text
//! freeze hook  -> Session::loaded    discover
//! destroy hook -> Session::unloading read, validate, encode, write; then forget the load
//! exit         -> Session::drain     drain every load that is still there
//! on request   -> Session::mark      assign the counts since the last mark to a label
//! ```
//!
//! A pass continues after a failure: an error in one code object costs no other its counts.

mod blank;
mod complete;
pub mod error;
mod ledger;
mod missed_loads;
mod on_request;
mod outcome;
mod pass;
mod scope;
mod shares;
mod zeros;

pub use complete::Idle;
pub use outcome::{Cause, Copied, Loss, Outcome, Taken};
pub use scope::{Scope, Scopes, Window};
pub use zeros::{ZeroProfile, ZeroWriter};

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::device::cuda::modules::is_cuda;
use crate::device::{Agent, Device, DeviceError, DeviceRange, Executable};
use crate::discover::filter::{Filter, file_of};
use crate::discover::host_files::HostFiles;
use crate::discover::{CodeFile, Discovery, Elfs, Load, Loader, Registry, discover};
use crate::read::copied_memory::{CopiedMemory, first_look};
use crate::store::{KeepError, Keeper, ProfileName};
use crate::support::clock;
use crate::validate::NamesChecker;
use complete::Complete;
use ledger::Ledger;
use pass::{Pass, Writes};
use shares::Shares;

/// The loads of a process, and its records of written counts. The code that hooks the runtime owns them.
#[derive(Debug, Default)]
pub struct Session {
    agents: Vec<Arc<Agent>>,
    elfs: Elfs,
    /// The loads to drain. Ordered by generation, so that files are written in the order of loading.
    loads: BTreeMap<u64, Load>,
    /// The examined executables, with the generations of their loads. Most have none.
    seen: HashMap<Executable, Vec<u64>>,
    ledger: Ledger,
    shares: Shares,
    /// The destination of current counts.
    scope: Scope,
    complete: Complete,
    /// The loads that were marked while their agents were idle.
    marked: Complete,
    /// Executables that could not be examined.
    missed: HashSet<Executable>,
    filter: Filter,
    names: NamesChecker,
    /// The files that code objects come from.
    files: HostFiles,
    /// All loads, with or without anything to drain.
    registry: Registry,
    keeper: Keeper,
    is_ending: bool,
    /// True if LLVM's drain takes the code objects that it supports.
    takes_copies_only: bool,
    /// True if executables were loaded past the hooks.
    has_missed: bool,
}

impl Session {
    /// Makes a session that drains the code objects that `filter` admits.
    #[must_use]
    pub fn filtered(filter: Filter) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// Sets the keeper of files next to the profiles.
    #[must_use]
    pub fn with_keeper(self, keeper: Keeper) -> Self {
        Self { keeper, ..self }
    }

    /// Sets the lookup of the host files that code objects come from.
    #[must_use]
    pub fn with_files(self, files: HostFiles) -> Self {
        Self { files, ..self }
    }

    /// The filter of code objects.
    #[must_use]
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The record of all loads.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Records the reason why the GPU has stopped a kernel.
    pub fn kernel_stopped(&mut self, reason: &str) {
        self.registry.stopped(reason);
    }

    /// Examines an executable that has just been frozen, and remembers its code objects. Reads nothing from
    /// the device.
    ///
    /// # Errors
    /// Fails if the runtime cannot list agents or code objects.
    pub fn loaded(
        &mut self,
        device: &dyn Device,
        executable: Executable,
    ) -> Result<Outcome, DeviceError> {
        self.loaded_by(device, executable, &Loader::default())
    }

    /// Does the work of [`Session::loaded`] for an executable that `loader` is loading. Its file is the origin of code
    /// objects in memory. Calls `loader` only if there is such a code object.
    ///
    /// # Errors
    /// Fails if [`Session::loaded`] would.
    pub fn loaded_by(
        &mut self,
        device: &dyn Device,
        executable: Executable,
        loader: &Loader,
    ) -> Result<Outcome, DeviceError> {
        if let Some(executions) = device.executions() {
            // Nothing of it has run. The counts are those of other code that was there before.
            let code_objects = device.code_objects(executable).unwrap_or_default();
            code_objects
                .iter()
                .for_each(|code_object| executions.forget(code_object.segment));
        }
        self.examine(device, executable, loader)
    }

    /// Examines an executable that `loader` is loading.
    fn examine(
        &mut self,
        device: &dyn Device,
        executable: Executable,
        loader: &Loader,
    ) -> Result<Outcome, DeviceError> {
        // A reused handle belongs to a new executable.
        self.forget(executable);
        self.missed.insert(executable);
        if self.agents.is_empty() {
            self.agents = device.agents()?.into_iter().map(Arc::new).collect();
            self.registry.see_agents(&self.agents);
        }
        let filter = &self.filter;
        let origin = |uri: &str| file_of(uri).or_else(|| loader.file.clone());
        let wanted = |uri: &str| filter.is_open() || filter.admits(origin(uri).as_deref());
        let Discovery {
            found,
            skipped,
            failures,
        } = discover(
            device,
            &self.agents,
            executable,
            &mut self.elfs,
            loader,
            wanted,
        )?;
        self.missed.remove(&executable);
        let generations = self.seen.entry(executable).or_default();
        let pairs = found.len();
        let mut not_kept = Vec::new();
        let mut instrumented = 0;
        let now = clock::now();
        for mut found in found {
            let counts = found.is_instrumented();
            let host = counts.then(|| self.files.file(origin(&found.code_object.uri)));
            let host = host.flatten();
            let generation = self.registry.loaded_from(&found, host.clone(), now);
            not_kept.extend(self.keeper.keep(device, &mut found).err());
            let load = found.into_load(generation, host);
            instrumented += usize::from(load.is_some());
            if let Some(load) = load.filter(|load| !self.takes_copies_only || !is_of_llvm(load)) {
                generations.push(generation);
                self.loads.insert(generation, load);
            }
        }
        let losses = failures
            .into_iter()
            .map(|(code_object, error)| Loss {
                code_object,
                cause: Cause::Failed(error.into()),
            })
            .collect();
        Ok(Outcome {
            agents: self.agents.len(),
            pairs,
            skipped,
            found: instrumented,
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
        let only = Some(executable);
        let (mut outcome, _) = self.drain_those(device, name, &generations, Writes::All, only);
        outcome.absorb(missed.unwrap_or_default());
        outcome.not_kept.extend(self.gone(executable, name));
        outcome
    }

    /// Returns whether nothing of `executable` can have run since it was drained, because its agents have
    /// been `idle` since before that.
    #[must_use]
    pub fn is_complete(&self, executable: Executable, idle: &Idle) -> bool {
        let Some(generations) = self.seen.get(&executable) else {
            return false;
        };
        if self.keeper.waits_for(executable) {
            return false;
        }
        let is_complete = |generation| {
            let load = self.loads.get(generation);
            load.is_some_and(|load| self.complete.has(load, idle))
        };
        !generations.is_empty() && generations.iter().all(is_complete)
    }

    /// Forgets an executable that is about to be destroyed, without a drain.
    pub fn gone(&mut self, executable: Executable, name: &ProfileName) -> Vec<KeepError> {
        self.forget(executable);
        self.keeper.forget(executable);
        if self.is_ending || name.is_nowhere() {
            return Vec::new();
        }
        let mut not_kept = self.keeper.gather_in(name);
        let written = self.keeper.write_now_and_then(&self.registry, name);
        not_kept.extend(written.err());
        not_kept
    }

    /// Drains every current load, even if its freeze was not seen. [`Session::keep`] writes the files next to
    /// the profiles.
    pub fn drain(&mut self, device: &dyn Device, name: &ProfileName) -> Outcome {
        self.drain_busy(device, name, &Idle::new())
    }

    /// Drains every current load, except those that cannot have counted since they were drained: their agents
    /// have been `idle`. Call [`crate::device::hsa::Queues::idle`] before the drain.
    pub fn drain_busy(&mut self, device: &dyn Device, name: &ProfileName, idle: &Idle) -> Outcome {
        self.drain_due(device, name, Writes::All, idle)
    }

    /// Runs a pass over all loads that are due. Remembers the loads without losses as complete while their
    /// agents are `idle`.
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
        let due: Vec<u64> = self
            .loads
            .iter()
            .filter(is_due)
            .map(|load| *load.0)
            .collect();
        let (mut outcome, well) = self.drain_those(device, name, &due, writes, None);
        // A walk that broke off may have missed code that was loaded, and launched, past the hooks.
        if unseen.losses.is_empty() {
            let well = || {
                well.iter()
                    .filter_map(|generation| self.loads.get(generation))
            };
            self.marked.record(well(), idle);
            if writes != Writes::Labels {
                self.complete.record(well(), idle);
            }
        }
        outcome.absorb(unseen);
        outcome
    }

    /// Records the host files with device code that the process has had, whether the device counted what it
    /// executed, and `agents` if no load has shown any. The process ends. Does nothing if there are no agents.
    pub fn record_end(
        &mut self,
        files: Vec<CodeFile>,
        is_traced: bool,
        agents: impl FnOnce() -> Vec<Agent>,
    ) {
        if self.registry.agents().next().is_none() {
            let agents: Vec<_> = agents().into_iter().map(Arc::new).collect();
            self.registry.see_agents(&agents);
        }
        if self.registry.agents().next().is_some() {
            self.registry.record_end(files, is_traced, clock::now());
        }
    }

    /// The file with the registry, if one was written.
    #[must_use]
    pub fn registry_file(&self) -> Option<&Path> {
        self.keeper.registry_file()
    }

    /// Leaves the code objects of AMD GPUs without copies of their counters to LLVM's drain, which supports no others.
    /// From now on this session drains the others only.
    pub fn leave_plain_counters(&mut self) {
        self.takes_copies_only = true;
        let left = self.loads.extract_if(.., |_, load| is_of_llvm(load));
        for generation in left.map(|(generation, _)| generation).collect::<Vec<_>>() {
            self.settle(generation);
        }
    }

    /// Marks the end of the process. From now on only [`Session::keep`] writes the registry. Call it once
    /// more, as the last step.
    ///
    /// If a destructor launches a kernel, HIP 5.2 and 5.7 write to a block of the heap that they have freed.
    /// The more the heap is used before, the more likely this ends the program.
    pub fn begin_end(&mut self) {
        self.is_ending = true;
        self.ledger.begin_end();
    }

    /// Keeps the files of later loads next to profiles of this name. The next drain also writes the earlier
    /// ones there.
    pub fn go_on_beside(&mut self, name: &ProfileName) {
        self.complete.forget_all();
        self.keeper.go_on_in(name);
    }

    /// Writes the files next to the profiles of this name. Does not use the device.
    pub fn keep(&mut self, name: &ProfileName) -> Vec<KeepError> {
        if name.is_nowhere() {
            return Vec::new();
        }
        let mut not_kept = self.keeper.gather_in(name);
        not_kept.extend(self.keeper.write(&self.registry, name).err());
        not_kept
    }

    /// Forgets all executables, because the runtime is gone. Written counts stay.
    pub fn forget_all(&mut self) {
        for generation in std::mem::take(&mut self.loads).into_keys() {
            self.settle(generation);
        }
        self.registry.unloaded_all(clock::now());
        self.seen.clear();
        self.missed.clear();
        self.agents.clear();
    }

    /// Returns whether an executable was examined, or an attempt failed. Most of them have nothing to drain.
    #[must_use]
    pub fn has_seen(&self, executable: Executable) -> bool {
        self.seen.contains_key(&executable) || self.missed.contains(&executable)
    }

    /// The handles of the agents on which kernels of `executable` count. `None` for all executables.
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

    /// Has the next load list the agents again, because another runtime has started.
    pub fn forget_agents(&mut self) {
        self.agents.clear();
    }

    /// The number of GPU agents. 0 before the first load.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.agents.len()
    }

    /// The number of current loads to drain.
    #[must_use]
    pub fn loads(&self) -> usize {
        self.loads.len()
    }

    /// Returns whether there is no load to drain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Forgets an executable's loads. It stays in `seen`: until the runtime has destroyed it, the runtime
    /// lists it as alive, and a drain on another thread would find it again and read memory that is being
    /// freed. When the handle is reused, `loaded` resets it.
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

    /// Ends the records of a load that is gone, or whose counters start from zero. Written counts stay.
    fn settle(&mut self, generation: u64) {
        self.complete.forget(generation);
        self.marked.forget(generation);
        self.shares.forget(generation);
        self.ledger.settle(generation);
    }

    /// Drains the loads with these `generations`, which are those of `only` or of several executables. While it writes
    /// one, the next are being copied. Also returns the generations of loads without losses.
    fn drain_those(
        &mut self,
        device: &dyn Device,
        name: &ProfileName,
        generations: &[u64],
        writes: Writes,
        only: Option<Executable>,
    ) -> (Outcome, Vec<u64>) {
        if name.is_nowhere() {
            let outcome = Outcome {
                agents: self.agents.len(),
                ..Outcome::default()
            };
            return (outcome, generations.to_vec());
        }
        let not_kept = self.keeper.keep_waiting(device, only);
        let loads: Vec<&Load> = generations
            .iter()
            .filter_map(|generation| self.loads.get(generation))
            .collect();
        let mut outcome = Outcome {
            agents: self.agents.len(),
            pairs: loads.len(),
            found: loads.len(),
            files: Vec::with_capacity(loads.len()),
            not_kept,
            copied: Vec::with_capacity(loads.len()),
            ..Outcome::default()
        };
        let mut well = Vec::with_capacity(loads.len());
        let (ranges, parts): (Vec<_>, Vec<_>) = loads
            .iter()
            .map(|load| first_look(load))
            .map(|look| (look.range, look.parts))
            .unzip();
        let mut run = |load: &Load, mut memory: CopiedMemory<'_>| {
            let mut pass = Pass::new(
                load,
                name,
                &self.scope,
                writes,
                &mut self.ledger,
                &mut self.shares,
            );
            pass.run(&mut memory, &mut self.names);
            if let Some(own) = &pass.own {
                self.registry.profiled(load.generation, own);
            }
            if let Some(reason) = pass.partial() {
                self.registry.note_missing_counts(load.generation, &reason);
            }
            outcome.files.append(&mut pass.files);
            outcome.taken.append(&mut pass.taken);
            outcome.copied.append(&mut pass.copied);
            if pass.causes.is_empty() {
                well.push(load.generation);
            }
            let losses = pass.causes.into_iter().map(|cause| Loss {
                code_object: load.to_string(),
                cause,
            });
            outcome.losses.extend(losses);
        };
        let read = device.read_parts(&parts, &mut |place, bytes| {
            let memory = CopiedMemory::from_parts(device, &parts[place], bytes);
            run(loads[place], memory);
        });
        device.read_each(&ranges[read..], &mut |place, copied| {
            let place = read + place;
            let memory = match copied {
                Ok(bytes) => CopiedMemory::new(device, ranges[place].start, bytes),
                // The error of the copy appears later, when its bytes are needed.
                Err(_) => CopiedMemory::none(device),
            };
            run(loads[place], memory);
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

/// Returns whether LLVM's drain for HIP supports the counters of a load.
fn is_of_llvm(load: &Load) -> bool {
    load.is_instrumented() && !load.has_copies() && !is_cuda(load.executable.0)
}
