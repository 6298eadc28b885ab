//! The operands of vector instructions.

use modelgpu_isa::{Instruction, Operand};

use super::super::simd::Wide;
use crate::lanes::Words;
use crate::wave::Wave;

/// Sources of two registers each.
pub(super) fn wide(halves: &[[Words; 2]; 3]) -> [Wide<'_>; 3] {
    halves.each_ref().map(|[low, high]| Wide { low, high })
}

/// Writes a bit per lane to the instruction's scalar destination; inactive lanes' bits are 0.
pub(super) fn write_mask(instruction: &Instruction, wave: &mut Wave, mask: u64) {
    wave.set_mask(instruction.sdst, mask);
}

/// The operand that M0 selects instead while VGPR indexing is on.
pub(super) fn indexed(operand: Operand, place: u8, wave: &Wave) -> Operand {
    if wave.indexed >> place & 1 == 1 && operand.vector_index().is_some() {
        Operand(operand.0 + (wave.m0() & 0xff) as u16)
    } else {
        operand
    }
}
