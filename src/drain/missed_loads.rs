//! Executables that are loaded, and unloaded, past the hooks.

use std::collections::HashSet;

use super::{Outcome, Session, walk_failed};
use crate::device::{Device, DeviceError, Executable};
use crate::discover::Loader;

impl Session {
    /// Finds executables whose freeze was not seen, for example because librocov came into a process that had
    /// already loaded code. The outcome counts their code objects without counters. A drain counts the
    /// others.
    ///
    /// Executables that came this way may also go this way. This forgets them, without a drain.
    pub fn look_for_unseen(&mut self, device: &dyn Device) -> Outcome {
        let mut all = Outcome::default();
        let executables = match device.executables() {
            Ok(executables) => executables,
            Err(error) => {
                all.losses.push(walk_failed(error));
                return all;
            }
        };
        if self.has_missed {
            self.forget_vanished(device, &executables);
        }
        for executable in executables {
            if !self.seen.contains_key(&executable) {
                self.has_missed = true;
                all.absorb(self.look_late(device, executable));
            }
        }
        all
    }

    /// Examines one of them.
    pub(super) fn look_late(&mut self, device: &dyn Device, executable: Executable) -> Outcome {
        match self.examine(device, executable, &Loader::default()) {
            Ok(outcome) => {
                self.complete.note_missed(outcome.found);
                self.marked.note_missed(outcome.found);
                let pairs = outcome.pairs - outcome.found;
                Outcome { pairs, ..outcome }
            }
            Err(error) => Outcome {
                losses: vec![walk_failed(error)],
                ..Outcome::default()
            },
        }
    }

    /// Returns whether an executable was examined since it was loaded. If several copies of librocov see one
    /// call, each reports it.
    #[must_use]
    pub fn knows(&self, device: &dyn Device, executable: Executable) -> bool {
        self.registry.loads_of(executable).next().is_some()
            && self.is_as_loaded(device, executable).unwrap_or(false)
    }

    /// Forgets executables that are not `present` any more, or whose handle belongs to another.
    fn forget_vanished(&mut self, device: &dyn Device, present: &[Executable]) {
        let present: HashSet<_> = present.iter().map(|executable| executable.0).collect();
        let mut vanished = Vec::new();
        for executable in self.registry.live() {
            let is_there = present.contains(&executable.0)
                && self.is_as_loaded(device, executable).unwrap_or(true);
            if !is_there {
                vanished.push(executable);
            }
        }
        for executable in vanished {
            self.forget(executable);
            self.seen.remove(&executable);
        }
    }

    /// Returns whether an executable has the code objects that it was found with.
    fn is_as_loaded(
        &self,
        device: &dyn Device,
        executable: Executable,
    ) -> Result<bool, DeviceError> {
        let code_objects = device.code_objects(executable)?;
        let mut loads = self.registry.loads_of(executable);
        Ok(loads.all(|load| {
            code_objects.iter().any(|code_object| {
                code_object.segment == load.segment && *code_object.uri == *load.uri
            })
        }))
    }
}
