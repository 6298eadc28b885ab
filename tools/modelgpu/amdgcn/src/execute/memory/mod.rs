//! Vector memory: each active lane accesses its own address.

mod access;
mod atomic;
mod buffer;
mod copy;
mod format;
mod image;
mod lds;
mod local;
mod resource;
mod segment;
mod transpose;
mod watch;
mod whole;

use super::{Operation, Surroundings, Table, unmodelled};
use crate::error::Fault;
use crate::isa::Instruction;
use crate::wave::{LANES, Wave};
use access::LaneAccess;
use segment::Segment;

pub(crate) use atomic::AtomicFunction;
pub(super) use resource::BufferResource;
pub(crate) use segment::PRIVATE_SEGMENT_BUFFER;
pub(crate) use watch::{LdsWatch, Sighting};
pub(crate) use whole::Span;

/// The semantics of a vector memory instruction.
#[derive(Clone, Copy)]
pub(crate) struct MemoryOperation {
    segment: Segment,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    Load {
        bytes: u8,
        sign_extend: bool,
        part: Part,
    },
    Store {
        bytes: u8,
        part: Part,
    },
    /// Returns the old value if the mnemonic or the instruction's bit asks for it.
    Atomic {
        function: AtomicFunction,
        bytes: u8,
        returns: bool,
    },
    /// Two LDS accesses with two offsets, which count units of `stride` elements.
    LoadTwo {
        bytes: u8,
        stride: u8,
    },
    StoreTwo {
        bytes: u8,
        stride: u8,
    },
    Permute(lds::Permutation),
    /// Elements of a typed buffer.
    Typed(buffer::Typed),
    Image(image::Image),
    /// An LDS access of another kind.
    Local(local::Local),
    /// A load that moves elements between lanes.
    Transposed(transpose::Transpose),
}

/// The part of a register that a smaller access uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The whole register: a load extends its value, a store takes the low bytes.
    Whole,
    /// The low half; a load keeps the high half.
    Low,
    /// The high half; a load keeps the low half.
    High,
}

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
            Action::Store { .. } | Action::StoreTwo { .. } => false,
            Action::Atomic { returns, .. } => returns || instruction.returns,
            _ => true,
        }
    }

    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        match self.action {
            Action::Permute(permutation) => {
                permutation.execute(instruction, wave, surroundings.target);
                return Ok(());
            }
            Action::Transposed(transpose) => {
                return transpose.execute(self.segment, instruction, wave, surroundings);
            }
            _ => {}
        }
        surroundings.memory.refresh();
        if self.segment == Segment::Buffer
            && let Some(buffer) = buffer::Buffer::of(instruction, wave, surroundings.target)?
        {
            return buffer.execute(self.action, instruction, wave, surroundings);
        }
        if instruction.buffer.to_lds {
            return copy::execute(self, instruction, wave, surroundings);
        }
        if let Action::Image(image) = self.action {
            return image.execute(instruction, wave, surroundings);
        }
        if let Action::Local(local) = self.action {
            local.execute(instruction, wave, surroundings);
            return Ok(());
        }
        let addresses = self.addresses(instruction, wave)?;
        if let Some(watch) = &mut surroundings.watch {
            watch.look(self.action, &addresses, instruction, wave);
        }
        if whole::execute(self.action, &addresses, instruction, wave, surroundings) {
            return Ok(());
        }
        let mut left = wave.exec();
        while left != 0 {
            let lane = left.trailing_zeros() as usize % LANES;
            left &= left - 1;
            let (space, address) = addresses.of(lane, instruction, wave);
            let mut target = LaneAccess {
                instruction,
                is_lds: self.segment == Segment::Lds,
                lane,
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
                | Action::Local(_)
                | Action::Image(_)
                | Action::Transposed(_) => {}
            }
        }
        Ok(())
    }
}
