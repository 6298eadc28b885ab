//! What the program or a user asks for before the end: labels, windows, zeroed counters.

use super::{Idle, Outcome, Scope, Session, Writes, snapshot};
use crate::device::Device;
use crate::error::Error;
use crate::output::{Label, ProfileName};

impl Session {
    /// What is counted from now on goes to `scope`. What was counted before, [`Session::mark`] has
    /// given away.
    pub fn go_on_in(&mut self, scope: Scope) {
        if scope != Scope::Unlabelled {
            self.shares.ask();
        }
        self.scope = scope;
    }

    /// Gives what was counted since the latest mark or drain to `scope`: what is of a label is written
    /// (files with its name, added to where they are there), what is left out is remembered, and what
    /// has no label is for the next drain to write. Nothing is written to the device. Loads of which
    /// nothing can have run since, as their agents have been `idle`, are not looked at, but for those of
    /// which something was to be said.
    ///
    /// What cannot be written for its label goes to the profiles without one.
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

    /// How many files there are of `label`.
    #[must_use]
    pub fn files_of(&self, label: &Label) -> usize {
        self.ledger.files_in(&label.directory())
    }

    /// Zeroes on the device what every load has counted. What was written stays, and what is
    /// counted from now on is added to it; what was counted and not drained is gone.
    ///
    /// # Errors
    /// Fails where a load's sections cannot be found or written; the others are zeroed.
    pub fn zero(&mut self, device: &dyn Device) -> Result<(), Error> {
        let mut result = Ok(());
        let mut zeroed = Vec::with_capacity(self.loads.len());
        for (generation, load) in &self.loads {
            match snapshot::zero(device, load) {
                Ok(()) => zeroed.push(*generation),
                Err(error) => result = Err(error),
            }
        }
        for generation in zeroed {
            self.settle(generation);
        }
        result
    }
}
