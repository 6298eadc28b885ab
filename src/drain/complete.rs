//! Which loads have been drained for good, as nothing of them can have run since.

use std::collections::HashMap;

use crate::load::Load;

/// Agents that have nothing to do, by handle, each with the moment since when that is so
/// ([`crate::hsa::Queues::idle`]).
pub type Idle = HashMap<u64, u64>;

/// The loads that were drained while their agents had nothing to do.
#[derive(Debug, Default)]
pub(super) struct Complete {
    /// Since when the agent of each has been idle, by generation.
    since: HashMap<u64, u64>,
    /// Whether code objects were loaded past the hooks, so that kernels may be launched so, too.
    has_missed: bool,
}

impl Complete {
    /// `found` code objects were loaded past the hooks.
    pub(super) fn note_missed(&mut self, found: usize) {
        self.has_missed |= found > 0;
    }

    /// Those of `loads` whose agents are `idle` have been drained since.
    pub(super) fn record<'a>(&mut self, loads: impl Iterator<Item = &'a Load>, idle: &Idle) {
        if self.has_missed {
            return;
        }
        self.since.extend(loads.filter_map(|load| {
            let moment = idle.get(&load.agent.handle)?;
            Some((load.generation, *moment))
        }));
    }

    /// Whether `load` was drained and its agent has been `idle` since before that.
    pub(super) fn has(&self, load: &Load, idle: &Idle) -> bool {
        let moment = idle.get(&load.agent.handle);
        moment.is_some() && self.since.get(&load.generation) == moment
    }

    /// All are to be drained once more.
    pub(super) fn forget_all(&mut self) {
        self.since.clear();
    }

    /// The load of this generation is gone.
    pub(super) fn forget(&mut self, generation: u64) {
        self.since.remove(&generation);
    }
}
