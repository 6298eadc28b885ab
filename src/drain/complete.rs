//! Loads that need no further drain, because their code cannot have run since the last one.

use std::collections::HashMap;

use crate::discover::Load;

/// Idle agents by handle, each with the moment at which it was seen idle ([`crate::device::hsa::Queues::idle`]).
pub type Idle = HashMap<u64, u64>;

/// The loads that were drained while their agents were idle.
#[derive(Debug, Default)]
pub(super) struct Complete {
    /// The moment at which each load's agent was idle, by generation.
    since: HashMap<u64, u64>,
    /// True if code objects were loaded past the hooks. Then kernels may be launched past them too.
    has_missed: bool,
}

impl Complete {
    /// Records that `found` code objects were loaded past the hooks.
    pub(super) fn note_missed(&mut self, found: usize) {
        self.has_missed |= found > 0;
    }

    /// Records that those of `loads` whose agents are `idle` have been drained.
    pub(super) fn record<'a>(&mut self, loads: impl Iterator<Item = &'a Load>, idle: &Idle) {
        if self.has_missed {
            return;
        }
        self.since.extend(loads.filter_map(|load| {
            let moment = idle.get(&load.agent.handle)?;
            Some((load.generation, *moment))
        }));
    }

    /// Returns whether `load` was drained and its agent has been `idle` since before that.
    pub(super) fn has(&self, load: &Load, idle: &Idle) -> bool {
        let moment = idle.get(&load.agent.handle);
        moment.is_some() && self.since.get(&load.generation) == moment
    }

    /// Makes all loads due for another drain.
    pub(super) fn forget_all(&mut self) {
        self.since.clear();
    }

    /// Forgets the load of this generation, because it is gone.
    pub(super) fn forget(&mut self, generation: u64) {
        self.since.remove(&generation);
    }
}
