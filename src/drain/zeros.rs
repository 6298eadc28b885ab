//! Profiles of zeros, for code objects that no process has loaded.

use super::pass::Writes;
use super::{Idle, Outcome, Session};
use crate::device::elf_file::AtRest;
use crate::discover::Elfs;
use crate::format::registry::model::CodeObjectRecord;
use crate::settings::Keeping;
use crate::store::layout::DataLayout;
use crate::store::{Keeper, Process, ProfileName, describe_code_object};

/// Writes profiles of zeros and the device ELFs that belong to them.
///
/// Each code object has one profile for an architecture, whatever the number of processes and GPUs. If it
/// exists already, neither it nor the device ELF changes.
#[derive(Debug)]
pub struct ZeroWriter {
    name: ProfileName,
    keeper: Keeper,
    elfs: Elfs,
}

/// The result for one code object.
#[derive(Debug)]
pub struct ZeroProfile {
    /// The file, and all that went wrong.
    pub outcome: Outcome,
    /// The record of the code object for a registry. `None` if the profile existed already.
    pub code_object: Option<CodeObjectRecord>,
}

impl ZeroWriter {
    /// Makes a writer to the places of `layout`. It keeps the device ELFs that `keeping` asks for, and counts
    /// the `kept` bytes of earlier ELFs.
    #[must_use]
    pub fn new(layout: DataLayout, keeping: Keeping, kept: u64) -> Self {
        let name = ProfileName::zeros_in(layout);
        let keeper = Keeper::new(keeping, Process::default(), &name).with_kept(kept);
        Self {
            name,
            keeper,
            elfs: Elfs::default(),
        }
    }

    /// Writes the profile of a code object for the architecture of its agent. The name has the agent's index:
    /// give all agents of an architecture one index.
    pub fn write(&mut self, device: &AtRest) -> ZeroProfile {
        let mut session = Session {
            keeper: std::mem::take(&mut self.keeper),
            elfs: std::mem::take(&mut self.elfs),
            ..Session::default()
        };
        let path = self.name.for_load(
            &device.agent().name,
            device.identity(),
            device.agent().index,
        );
        let (mut outcome, mut code_object) = (Outcome::default(), None);
        if !path.exists() {
            outcome = session.drain_due(device, &self.name, Writes::New, &Idle::new());
            let loads = session.registry.loads().first();
            let elf = loads.and_then(|load| load.code_object.as_deref());
            code_object = elf.map(|elf| describe_code_object(elf, session.keeper.kept_file(elf)));
        }
        (self.keeper, self.elfs) = (session.keeper, session.elfs);
        ZeroProfile {
            outcome,
            code_object,
        }
    }
}
