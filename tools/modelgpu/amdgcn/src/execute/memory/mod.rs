//! Vector memory: each active lane accesses its own address.

mod atomic;
mod buffer;
mod copy;
mod format;
mod image;
mod lane_access;
mod lds;
mod local;
mod operation;
mod resource;
mod segment;
mod transpose;
mod watch;
mod whole;

use modelgpu_isa::Instruction;

use super::{Surroundings, Table, unmodelled};
use crate::error::Fault;
use crate::lanes::active;
use crate::wave::Wave;
use lane_access::LaneAccess;
use operation::{Action, Segment};

pub(crate) use atomic::AtomicFunction;
pub(crate) use operation::MemoryOperation;
pub(super) use resource::BufferResource;
pub(crate) use segment::PRIVATE_SEGMENT_BUFFER;
pub(crate) use watch::{LdsWatch, Sighting};

pub(super) fn tables() -> impl Iterator<Item = Table> {
    segment::TABLES
        .into_iter()
        .chain(buffer::TABLES)
        .chain(lds::TABLES)
        .chain([
            copy::OPERATIONS,
            image::OPERATIONS,
            local::OPERATIONS,
            transpose::OPERATIONS,
        ])
}

impl MemoryOperation {
    /// Returns whether a wave learns what memory holds.
    pub(super) fn looks(self, instruction: &Instruction) -> bool {
        match self.action {
            Action::Store { .. } | Action::StoreTwo { .. } | Action::Copy { .. } => false,
            Action::Atomic { returns, .. } => returns || instruction.returns,
            _ => true,
        }
    }

    /// Executes it for the active lanes. This is the place where EXEC is applied to accesses: each kind gets the lanes
    /// that access memory.
    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        let lanes = wave.exec();
        match self.action {
            Action::Permute(permutation) => {
                permutation.execute(lanes, instruction, wave, surroundings.target);
                return Ok(());
            }
            Action::Transposed(transpose) => {
                return transpose.execute(lanes, self.segment, instruction, wave, surroundings);
            }
            _ => {}
        }
        surroundings.memory.refresh();
        if self.segment == Segment::Buffer
            && let Some(buffer) = buffer::Buffer::new(instruction, wave, surroundings.target)?
        {
            return buffer.execute(lanes, self.action, instruction, wave, surroundings);
        }
        if instruction.buffer.to_lds {
            return copy::execute(lanes, self, instruction, wave, surroundings);
        }
        if let Action::Copy { .. } = self.action {
            return copy::by_address(lanes, self, instruction, wave, surroundings);
        }
        if let Action::Image(image) = self.action {
            return image.execute(lanes, instruction, wave, surroundings);
        }
        if let Action::Local(local) = self.action {
            local.execute(lanes, instruction, wave, surroundings);
            return Ok(());
        }
        let addresses = self.addresses(instruction, wave, surroundings.target)?;
        if let Some(watch) = &mut surroundings.watch {
            watch.look(lanes, self.action, &addresses, instruction, wave);
        }
        if whole::execute(
            lanes,
            self.action,
            &addresses,
            instruction,
            wave,
            surroundings,
        ) {
            return Ok(());
        }
        for lane in active(lanes) {
            let (space, address) = addresses.place(lane, instruction, wave);
            let mut target = LaneAccess {
                instruction,
                is_lds: self.segment == Segment::Lds,
                lane,
                owner: addresses.owner(lane, instruction, wave),
                space,
                surroundings,
            };
            match self.action {
                Action::Load {
                    bytes,
                    sign_extend,
                    part,
                } => {
                    target.load(wave, address, bytes, sign_extend, part)?;
                }
                Action::Store { bytes, part } => target.store(wave, address, bytes, part)?,
                Action::Atomic {
                    function,
                    bytes,
                    returns,
                } => {
                    let returns = returns || instruction.returns;
                    target.atomic(wave, address, function, bytes, returns)?;
                }
                Action::LoadTwo { bytes, .. } => {
                    target.load_two(wave, [0, 1].map(|n| addresses.element(address, n)), bytes)?;
                }
                Action::StoreTwo { bytes, .. } => {
                    target.store_two(wave, [0, 1].map(|n| addresses.element(address, n)), bytes)?;
                }
                Action::Typed(_) => return Err(unmodelled(instruction, "the scratch buffer")),
                Action::Permute(_)
                | Action::Copy { .. }
                | Action::Local(_)
                | Action::Image(_)
                | Action::Transposed(_) => {}
            }
        }
        Ok(())
    }
}
