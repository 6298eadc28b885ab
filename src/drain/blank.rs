//! Hides the counts from another drain in the process.

use super::outcome::{Cause, Loss};
use super::{Outcome, Session};
use crate::device::{Device, DeviceRange};
use crate::discover::Load;
use crate::format::bounds_table::{BoundsTable, TableLayout};
use crate::read::ReadError;
use crate::read::copied_memory::CopiedMemory;
use crate::read::snapshot::Located;
use crate::support::memory::zeroed;

impl Session {
    /// Overwrites the section bounds tables of all loads on the device with zeros. LLVM's own drain reads
    /// them, and writes nothing for a code object whose sections are empty. Kernels do not read them. The
    /// session remembers their contents, so its own drains still work.
    ///
    /// The losses of the outcome name the loads that could not be overwritten. The next call tries them
    /// again.
    pub fn blank_tables(&mut self, device: &dyn Device) -> Outcome {
        let mut outcome = Outcome::default();
        for load in self
            .loads
            .values_mut()
            .filter(|load| load.blanked.is_none())
        {
            match blank(device, load) {
                Ok(tables) => load.blanked = Some(tables),
                Err(error) => outcome.losses.push(Loss {
                    code_object: load.to_string(),
                    cause: Cause::Unblanked(error.into()),
                }),
            }
        }
        outcome
    }
}

/// Returns the contents of the tables. If a table makes no sense, other readers cannot use it either.
fn blank(device: &dyn Device, load: &Load) -> Result<Vec<BoundsTable>, ReadError> {
    let mut memory = CopiedMemory::none(device);
    let (tables, doubts) = Located::tables(&mut memory, load);
    let mut doubts = doubts.into_iter();
    if let Some(error) = doubts.find(|doubt| matches!(doubt, ReadError::Device(_))) {
        return Err(error);
    }
    for table in load.all_tables() {
        let (start, len) = (table.address, table.size);
        let is_ours = load.segment.contains(&DeviceRange { start, len });
        if is_ours && TableLayout::from_size(len).is_ok() {
            device.write(start, &zeroed(len)?)?;
        }
    }
    Ok(tables)
}
