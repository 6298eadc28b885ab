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
mod snapshot;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use crate::codeobject::Identity;
use crate::device::{Agent, Device, DeviceError, Executable};
use crate::error::Error;
use crate::load::{Discovery, Load, discover};
use crate::output::{ProfileName, write_atomic};
use crate::profraw::{Parts, encode};
use crate::sections::RecordDefect;
use ledger::Ledger;
use snapshot::Snapshot;

/// What one pass did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// GPU agents.
    pub agents: usize,
    /// Pairs of code object and agent that were looked at in this pass.
    pub pairs: usize,
    /// Instrumented loads in this pass.
    pub found: usize,
    /// Profiles that hold what this pass read.
    pub files: Vec<PathBuf>,
    /// What is missing from the files, or could not be written.
    pub losses: Vec<Loss>,
}

/// Counts that did not reach a file.
#[derive(Debug)]
pub struct Loss {
    /// Where the code object came from, and on which agent it is.
    pub code_object: String,
    /// What happened.
    pub cause: Cause,
}

/// Why counts did not reach a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing of the code object was written.
    Failed(Error),
    /// One record of it was left out.
    Record(RecordDefect),
    /// The MC/DC bitmaps were left out: bytes of them.
    Bitmap(u64),
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.code_object)?;
        match &self.cause {
            Cause::Failed(error) => write!(f, "counts are lost: {error}"),
            Cause::Record(defect) => write!(f, "{defect}"),
            Cause::Bitmap(bytes) => {
                write!(
                    f,
                    "{bytes} bytes of MC/DC bitmaps are left out; the counts are whole"
                )
            }
        }
    }
}

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
}

impl Session {
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
        if self.agents.is_empty() {
            self.agents = device.agents()?;
        }
        // A handle that comes back belongs to a new executable.
        self.forget(executable);
        let Discovery {
            pairs,
            loads,
            failures,
        } = discover(device, &self.agents, executable, self.last_generation + 1)?;
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
            found,
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

    /// Whether there is a load to drain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    fn unseen(&self, device: &dyn Device) -> Result<Vec<Executable>, DeviceError> {
        let mut executables = device.executables()?;
        executables.retain(|executable| !self.seen.contains(executable));
        Ok(executables)
    }

    fn forget(&mut self, executable: Executable) {
        self.seen.remove(&executable);
        let ledger = &mut self.ledger;
        self.loads.retain(|generation, load| {
            let stays = load.executable != executable;
            if !stays {
                ledger.settle(*generation);
            }
            stays
        });
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
            let mut causes = Vec::new();
            match drain_load(&mut self.ledger, device, load, name, &mut causes) {
                Ok(path) => outcome.files.extend(path),
                Err(error) => causes.push(Cause::Failed(error)),
            }
            outcome.losses.extend(causes.into_iter().map(|cause| Loss {
                code_object: format!("{} on {} {}", load.uri, load.agent.name, load.agent.index),
                cause,
            }));
        }
        outcome
    }
}

/// Reads, checks, encodes and writes one load. What had to be left out of its file goes to
/// `causes`. A code object without a single record has nothing to write: readers refuse such a
/// profile.
fn drain_load(
    ledger: &mut Ledger,
    device: &dyn Device,
    load: &Load,
    name: &ProfileName,
    causes: &mut Vec<Cause>,
) -> Result<Option<PathBuf>, Error> {
    let Snapshot {
        version,
        records,
        counters,
        names,
        names_address,
    } = Snapshot::take(device, load)?;
    causes.extend(records.defects.into_iter().map(Cause::Record));
    if records.bitmap_bytes > 0 {
        causes.push(Cause::Bitmap(records.bitmap_bytes));
    }
    if records.bytes.is_empty() {
        return Ok(None);
    }
    let (identity, build_id) = match &load.elf {
        Some(elf) => (elf.identity.clone(), elf.build_id.as_deref()),
        None => (Identity::of_sections(&names, &records.bytes), None),
    };
    let path = name.for_load(&load.agent.name, &identity, load.agent.index);
    // The file holds the sum over all loads of this process that share its name.
    if let Some(total) = ledger.total(&path, load.generation, &counters, &version)? {
        let records = &records.bytes;
        let parts = Parts {
            version,
            build_id,
            records,
            counters: &total,
            names: &names,
            names_address,
        };
        write_atomic(&path, &encode(&parts))?;
        ledger.written(&path, load.generation, counters, version);
    }
    Ok(Some(path))
}

fn walk_failed(error: DeviceError) -> Loss {
    Loss {
        code_object: "the walk over executables".into(),
        cause: Cause::Failed(error.into()),
    }
}
