//! Requests of the program or a user before the end: labels, windows, zeroed counters.

use crate::device::Device;
use crate::drain::error::Error;
use crate::drain::{Idle, Outcome, Scope, Session, Writes};
use crate::read::snapshot;
use crate::store::{Label, ProfileName};

impl Session {
    /// Sends counts from now on to `scope`. [`Session::mark`] has already assigned the earlier ones.
    pub fn go_on_in(&mut self, scope: Scope) {
        if scope != Scope::Unlabelled {
            self.shares.ask();
        }
        self.scope = scope;
    }

    /// Assigns the counts since the latest mark or drain to `scope`. Counts of a label are written at once,
    /// to files with its name, or added to these. Counts that are left out are remembered. Counts without a
    /// label are left to the next drain. Nothing is written to the device. Skips loads of which nothing can
    /// have run since, because their agents have been `idle`, unless they had losses.
    ///
    /// If the counts of a label cannot be written, they go to the profiles without a label.
    pub fn mark(
        &mut self,
        device: &dyn Device,
        name: &ProfileName,
        scope: Scope,
        idle: &Idle,
    ) -> Outcome {
        self.shares.ask();
        let current = std::mem::replace(&mut self.scope, scope);
        let outcome = self.drain_due(device, name, Writes::Labels, idle);
        self.scope = current;
        outcome
    }

    /// The number of files of `label`.
    #[must_use]
    pub fn files_of(&self, label: &Label) -> usize {
        self.ledger.files_in(&label.directory())
    }

    /// Zeroes the counts of every load on the device. Written counts stay, and later counts are added to
    /// them. Counts that were not drained are gone.
    ///
    /// # Errors
    /// Fails if a load's sections cannot be found or written. The other loads are zeroed.
    pub fn zero(&mut self, device: &dyn Device) -> Result<(), Error> {
        let mut result = Ok(());
        let mut zeroed = Vec::with_capacity(self.loads.len());
        for (generation, load) in &self.loads {
            match snapshot::zero(device, load) {
                Ok(()) => zeroed.push(*generation),
                Err(error) => result = Err(error.into()),
            }
        }
        for generation in zeroed {
            self.settle(generation);
        }
        result
    }
}
