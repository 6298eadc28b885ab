//! SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.

use super::fields::{Fields, Words, sign_extend};
use crate::operand::Operand;

pub(super) fn decode(words: Words) -> Fields {
    let source0 = Operand::scalar(words.first(7, 0));
    let source1 = Operand::scalar(words.first(15, 8));
    let destination = Operand::scalar(words.first(22, 16));
    let mut fields;
    match (words.first(31, 23), words.first(31, 28)) {
        (0x17d, _) => {
            fields = Fields::new(&words.tables().sop1, words.first(15, 8), 4);
            fields.instruction.src[0] = source0;
            fields.instruction.dst = destination;
        }
        (0x17e, _) => {
            fields = Fields::new(&words.tables().sopc, words.first(22, 16), 4);
            fields.instruction.src = [source0, source1, Operand::NONE];
        }
        (0x17f, _) => fields = Fields::new(&words.tables().sopp, words.first(22, 16), 4),
        (_, 0xb) => {
            fields = Fields::new(&words.tables().sopk, words.first(27, 23), 4);
            fields.instruction.dst = destination;
        }
        _ => {
            fields = Fields::new(&words.tables().sop2, words.first(29, 23), 4);
            fields.instruction.src = [source0, source1, Operand::NONE];
            fields.instruction.dst = destination;
        }
    }
    fields.instruction.immediate = sign_extend(words.first(15, 0), 16);
    fields
}

pub(super) fn decode_memory(words: Words) -> Fields {
    let opcode = match words.is_gfx12() {
        true => words.first(18, 13),
        false => words.first(25, 18),
    };
    let mut fields = Fields::new(&words.tables().smem, opcode, 8);
    let instruction = &mut fields.instruction;
    instruction.dst = Operand::scalar(words.first(12, 6));
    if !words.is_gfx9() {
        instruction.src[0] = Operand::scalar(words.first(5, 0) * 2);
        let offset = Operand::scalar(words.second(31, 25));
        if words.scalar(words.second(31, 25)) != Operand::NULL {
            instruction.src[1] = offset;
        }
        instruction.scales_offset = words.is_gfx1250() && words.second_bit(24);
        let bits = if words.is_gfx12() { 24 } else { 21 };
        instruction.immediate = sign_extend(words.second(bits - 1, 0), bits);
        return fields;
    }
    instruction.returns = words.first_bit(16);
    // SBASE counts pairs of registers.
    instruction.src[0] = Operand::scalar(words.first(5, 0) * 2);
    if words.first_bit(17) {
        instruction.immediate = sign_extend(words.second(20, 0), 21);
    } else if !words.first_bit(14) {
        instruction.src[1] = Operand::scalar(words.second(6, 0));
    }
    if words.first_bit(14) {
        instruction.src[1] = Operand::scalar(words.second(31, 25));
    }
    fields
}
