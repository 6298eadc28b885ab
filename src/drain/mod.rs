//! One drain pass: from loads to files, and what became of each as a value.
//!
//! ```text
//! freeze hook  -> Session::loaded    discover
//! destroy hook -> Session::unloading read, validate, encode, write; then forget the load
//! exit         -> Session::drain     the same for every load that is still there
//! ```
//!
//! A pass goes on after a failure: what is wrong with one code object costs no other its counts.

mod ledger;
mod outcome;
mod pass;
mod snapshot;

pub use outcome::{Cause, Copied, Loss, Outcome};

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::device::{Agent, Device, DeviceError, Executable};
use crate::error::Error;
use crate::filter::{Filter, file_of};
use crate::load::{Discovery, Load, discover};
use crate::output::{OutputError, ProfileName, move_beside};
use ledger::Ledger;
use pass::Pass;

/// The loads of a process and what was written of them. Owned by whoever hooks the runtime.
#[derive(Debug, Default)]
pub struct Session {
    agents: Vec<Agent>,
    /// By generation, so that files are written in the order of loading.
    loads: BTreeMap<u64, Load>,
    /// Executables that were looked at, most of them without a load.
    seen: HashSet<Executable>,
    ledger: Ledger,
    last_generation: u64,
    filter: Filter,
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

    /// What is drained.
    #[must_use]
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Looks at an executable that has just been frozen, and remembers its instrumented code
    /// objects. Nothing is read from the device.
    ///
    /// # Errors
    /// Fails where the runtime cannot list agents or code objects.
    pub fn loaded(
        &mut self,
        device: &dyn Device,
        executable: Executable,
    ) -> Result<Outcome, DeviceError> {
        self.loaded_by(device, executable, None)
    }

    /// The same for an executable that code in the file `loader` has loaded: the origin of code
    /// objects that lie in no file.
    ///
    /// # Errors
    /// As for [`Session::loaded`].
    pub fn loaded_by(
        &mut self,
        device: &dyn Device,
        executable: Executable,
        loader: Option<&Path>,
    ) -> Result<Outcome, DeviceError> {
        if self.agents.is_empty() {
            self.agents = device.agents()?;
        }
        // A handle that comes back belongs to a new executable.
        self.forget(executable);
        let filter = &self.filter;
        let wanted =
            |uri: &str| filter.is_open() || filter.admits(file_of(uri).as_deref().or(loader));
        let generation = self.last_generation + 1;
        let Discovery {
            pairs,
            skipped,
            loads,
            failures,
        } = discover(device, &self.agents, executable, generation, wanted)?;
        self.seen.insert(executable);
        let found = loads.len();
        for load in loads {
            self.last_generation = load.generation;
            self.loads.insert(load.generation, load);
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
            found,
            copied: Vec::new(),
            files: Vec::new(),
            losses,
        })
    }

    /// Drains an executable that is about to be destroyed, and forgets it.
    pub fn unloading(
        &mut self,
        device: &dyn Device,
        executable: Executable,
        name: &ProfileName,
    ) -> Outcome {
        let outcome = self.drain_where(device, name, |load| load.executable == executable);
        self.forget(executable);
        outcome
    }

    /// Drains every load that is still there, those included whose freeze was not seen.
    pub fn drain(&mut self, device: &dyn Device, name: &ProfileName) -> Outcome {
        let mut pairs = 0;
        let mut losses = Vec::new();
        match self.unseen(device) {
            Ok(unseen) => {
                for executable in unseen {
                    match self.loaded(device, executable) {
                        Ok(outcome) => {
                            // The instrumented ones are counted when they are drained.
                            pairs += outcome.pairs - outcome.found;
                            losses.extend(outcome.losses);
                        }
                        Err(error) => losses.push(walk_failed(error)),
                    }
                }
            }
            Err(error) => losses.push(walk_failed(error)),
        }
        let mut outcome = self.drain_where(device, name, |_| true);
        outcome.pairs += pairs;
        outcome.losses.append(&mut losses);
        outcome
    }

    /// Zeroes on the device what every load has counted. What was written stays, and what is
    /// counted from now on is added to it; what was counted and not drained is gone.
    ///
    /// # Errors
    /// Fails where a load's sections cannot be found or written; the others are zeroed.
    pub fn zero(&mut self, device: &dyn Device) -> Result<(), Error> {
        let mut result = Ok(());
        for (generation, load) in &self.loads {
            match snapshot::zero(device, load) {
                Ok(()) => self.ledger.settle(*generation),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// The process is about to be given to another program, which may load the same code objects
    /// and take the same names: files of this one are renamed ([`move_beside`]), and later drains,
    /// if it stays, write to them. Pools stay, as everybody adds to them.
    ///
    /// Returns the new names; what could not be renamed is an error.
    pub fn hand_over(&mut self) -> Vec<Result<PathBuf, OutputError>> {
        let own = self.ledger.take_own().into_iter();
        own.map(|path| {
            let place = move_beside(&path)?;
            self.ledger.moved(path, place.clone());
            Ok(place)
        })
        .collect()
    }

    /// The runtime is gone, and with it all executables: what was written of them stays.
    pub fn forget_all(&mut self) {
        for generation in std::mem::take(&mut self.loads).into_keys() {
            self.ledger.settle(generation);
        }
        self.seen.clear();
        self.agents.clear();
    }

    /// Whether an executable was looked at. Most of them have nothing to drain.
    #[must_use]
    pub fn has_seen(&self, executable: Executable) -> bool {
        self.seen.contains(&executable)
    }

    /// Handles of the agents on which kernels of `wanted` executables count.
    #[must_use]
    pub fn counting_agents(&self, wanted: impl Fn(Executable) -> bool) -> Vec<u64> {
        let loads = self.loads.values().filter(|load| wanted(load.executable));
        loads.map(|load| load.agent.handle).collect()
    }

    /// Whether there is no load to drain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    fn unseen(&self, device: &dyn Device) -> Result<Vec<Executable>, DeviceError> {
        let mut executables = device.executables()?;
        executables.retain(|executable| !self.seen.contains(executable));
        Ok(executables)
    }

    /// Lets go of an executable's loads. It stays among the seen: until the runtime has destroyed it,
    /// it is still listed as alive, and a drain on another thread would find it anew and read memory
    /// that is being freed. When the handle comes back, `loaded` says so.
    fn forget(&mut self, executable: Executable) {
        if !self.seen.contains(&executable) {
            return;
        }
        let gone = self
            .loads
            .extract_if(.., |_, load| load.executable == executable);
        for (generation, _) in gone {
            self.ledger.settle(generation);
        }
    }

    fn drain_where(
        &mut self,
        device: &dyn Device,
        name: &ProfileName,
        wanted: impl Fn(&Load) -> bool,
    ) -> Outcome {
        let mut outcome = Outcome {
            agents: self.agents.len(),
            ..Outcome::default()
        };
        for load in self.loads.values().filter(|load| wanted(load)) {
            outcome.pairs += 1;
            outcome.found += 1;
            let mut pass = Pass::of(load, device, name, &mut self.ledger);
            outcome.files.extend(pass.run());
            outcome.copied.append(&mut pass.copied);
            outcome
                .losses
                .extend(pass.causes.into_iter().map(|cause| Loss {
                    code_object: load.to_string(),
                    cause,
                }));
        }
        outcome
    }
}

fn walk_failed(error: DeviceError) -> Loss {
    Loss {
        code_object: "the walk over executables".into(),
        cause: Cause::Failed(error.into()),
    }
}
