//! Scalar loads and clocks.

use super::value::Kind;
use super::{Operation, Surroundings, scalar_source};
use crate::error::{Access, Fault, Space};
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;

#[derive(Clone, Copy)]
pub(crate) enum ScalarMemoryOperation {
    /// Loads this number of dwords.
    Load(u8),
    /// A counter that never decreases: the number of instructions that the dispatch has executed.
    Clock,
}

const fn load(dwords: u8) -> Operation {
    Operation::ScalarMemory(ScalarMemoryOperation::Load(dwords))
}

const CLOCK: Operation = Operation::ScalarMemory(ScalarMemoryOperation::Clock);

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("s_load_dword", load(1)),
    ("s_load_dwordx2", load(2)),
    ("s_load_dwordx4", load(4)),
    ("s_load_dwordx8", load(8)),
    ("s_load_dwordx16", load(16)),
    ("s_memtime", CLOCK),
    ("s_memrealtime", CLOCK),
];

impl ScalarMemoryOperation {
    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        match self {
            Self::Clock => {
                wave.set_pair(instruction.dst, surroundings.instructions);
                Ok(())
            }
            Self::Load(dwords) => {
                surroundings.memory.refresh();
                let mut offset = i64::from(instruction.immediate);
                if !instruction.src[1].is_none() {
                    offset += scalar_source(instruction, 1, Kind::B32, wave)? as i64;
                }
                // Hardware ignores the two low address bits.
                let base = wave.pair(instruction.src[0]).wrapping_add_signed(offset) & !3;
                for place in 0..u16::from(dwords) {
                    let address = base.wrapping_add(u64::from(place) * 4);
                    let value =
                        surroundings
                            .memory
                            .load(address, 4)
                            .map_err(|_| Fault::OutOfBounds {
                                mnemonic: instruction.mnemonic,
                                space: Space::Global,
                                access: Access::Read,
                                size: 4,
                                address,
                                limit: None,
                            })?;
                    wave.set_word(Operand(instruction.dst.0 + place), value as u32);
                }
                Ok(())
            }
        }
    }
}
