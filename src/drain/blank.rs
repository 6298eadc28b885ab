//! Keeping another drain in the process from the counts.

use super::copies::Copies;
use super::outcome::{Cause, Loss};
use super::snapshot::Located;
use super::{Outcome, Session};
use crate::device::{Device, DeviceRange, zeroed};
use crate::error::Error;
use crate::load::Load;
use crate::sections::{BoundsTable, Layout};

impl Session {
    /// Overwrites the section bounds tables of all loads on the device with zeros. LLVM's own drain goes
    /// by them, and takes a code object whose sections are empty for one with nothing to write. Kernels
    /// do not look at them. The session remembers what they held: its drains find everything as before.
    ///
    /// The losses of the outcome name what could not be overwritten; the next call tries that again.
    pub fn blank_tables(&mut self, device: &dyn Device) -> Outcome {
        let mut outcome = Outcome::default();
        for load in self.loads.values_mut().filter(|it| it.blanked.is_none()) {
            match blank(device, load) {
                Ok(tables) => load.blanked = Some(tables),
                Err(error) => outcome.losses.push(Loss {
                    code_object: load.to_string(),
                    cause: Cause::Unblanked(error),
                }),
            }
        }
        outcome
    }
}

/// Returns what the tables held. Those that make no sense, nobody else understands either.
fn blank(device: &dyn Device, load: &Load) -> Result<Vec<BoundsTable>, Error> {
    let mut copies = Copies::none(device);
    let (tables, doubts) = Located::tables(&mut copies, load);
    let mut doubts = doubts.into_iter();
    if let Some(error) = doubts.find(|doubt| matches!(doubt, Error::Device(_))) {
        return Err(error);
    }
    for table in load.all_tables() {
        let (start, len) = (table.address, table.size);
        let is_ours = load.segment.contains(&DeviceRange { start, len });
        if is_ours && Layout::of_size(len).is_ok() {
            device.write(start, &zeroed(len)?)?;
        }
    }
    Ok(tables)
}
