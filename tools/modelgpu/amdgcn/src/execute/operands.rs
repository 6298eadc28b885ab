//! The operands of instructions.

use modelgpu_isa::Instruction;

use super::value::Kind;
use crate::error::Fault;
use crate::wave::Wave;

/// The error for an operand or modifier that is not modelled.
pub(crate) fn unmodelled(instruction: &Instruction, detail: &'static str) -> Fault {
    Fault::Unmodelled {
        mnemonic: instruction.mnemonic,
        detail: Some(detail),
    }
}

/// A scalar source operand's value.
pub(crate) fn scalar_source(
    instruction: &Instruction,
    place: usize,
    kind: Kind,
    wave: &Wave,
) -> Result<u64, Fault> {
    wave.scalar(instruction.src[place], kind, instruction.literal)
        .ok_or_else(|| unmodelled(instruction, "this scalar operand"))
}
