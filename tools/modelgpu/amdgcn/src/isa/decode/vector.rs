//! VOP1, VOP2, VOPC with their SDWA and DPP forms, VOP3 and VOP3P.

use super::{Fields, Words};
use crate::isa::operand::Operand;
use crate::isa::{Dpp, Sdwa, SdwaSource, Selection, Unused};

/// With this code or 250 in source 0, the second dword is an SDWA or DPP control word.
const SDWA: u32 = 249;
const DPP: u32 = 250;

const VOP1: u32 = 63;
const VOPC: u32 = 62;

/// The 32-bit encodings.
pub(super) fn decode_short(words: Words) -> Fields {
    let kind = words.first(30, 25);
    let mut fields = match kind {
        VOP1 => Fields::new(&words.tables().vop1, words.first(16, 9), 4),
        VOPC => Fields::new(&words.tables().vopc, words.first(24, 17), 4),
        opcode => Fields::new(&words.tables().vop2, opcode, 4),
    };
    let instruction = &mut fields.instruction;
    instruction.src[0] = Operand::scalar(words.first(8, 0));
    if kind != VOP1 {
        instruction.src[1] = Operand::vgpr(words.first(16, 9));
    }
    if kind == VOPC {
        instruction.sdst = Operand::VCC;
    } else {
        instruction.dst = Operand::vgpr(words.first(24, 17));
    }
    match words.first(8, 0) {
        SDWA => decode_sdwa(words, &mut fields, kind == VOPC),
        DPP => decode_dpp(words, &mut fields),
        _ => {}
    }
    fields
}

fn decode_sdwa(words: Words, fields: &mut Fields, compares: bool) {
    let instruction = &mut fields.instruction;
    instruction.size = 8;
    instruction.src[0] = if words.second_bit(23) {
        Operand::scalar(words.second(7, 0))
    } else {
        Operand::vgpr(words.second(7, 0))
    };
    if words.second_bit(31) && !instruction.src[1].is_none() {
        instruction.src[1] = instruction.src[1].to_scalar();
    }
    instruction.modifiers.neg = (words.second(20, 20) | words.second(28, 28) << 1) as u8;
    instruction.modifiers.abs = (words.second(21, 21) | words.second(29, 29) << 1) as u8;
    let source = |low| SdwaSource {
        selection: selection(words.second(low + 2, low)),
        sign_extend: words.second_bit(low + 3),
    };
    let mut sdwa = Sdwa {
        src: [source(16), source(24)],
        dst: Selection::Dword,
        unused: Unused::Zero,
    };
    if compares {
        // The fields of the result hold the mask's destination instead.
        if words.second_bit(15) {
            instruction.sdst = Operand::scalar(words.second(14, 8));
        }
    } else {
        sdwa.dst = selection(words.second(10, 8));
        sdwa.unused = match words.second(12, 11) {
            0 => Unused::Zero,
            1 => Unused::SignExtend,
            _ => Unused::Preserve,
        };
        instruction.modifiers.clamp = words.second_bit(13);
        instruction.modifiers.output = words.second(15, 14) as u8;
    }
    instruction.sdwa = Some(sdwa);
}

fn selection(field: u32) -> Selection {
    match field {
        0..=3 => Selection::Byte(field as u8),
        4 | 5 => Selection::Half(field as u8 - 4),
        _ => Selection::Dword,
    }
}

fn decode_dpp(words: Words, fields: &mut Fields) {
    let instruction = &mut fields.instruction;
    instruction.size = 8;
    instruction.src[0] = Operand::vgpr(words.second(7, 0));
    instruction.modifiers.neg = (words.second(20, 20) | words.second(22, 22) << 1) as u8;
    instruction.modifiers.abs = (words.second(21, 21) | words.second(23, 23) << 1) as u8;
    instruction.dpp = Some(Dpp {
        control: words.second(16, 8) as u16,
        bound_control: words.second_bit(19),
        bank_mask: words.second(27, 24) as u8,
        row_mask: words.second(31, 28) as u8,
    });
}

/// VOP3 and VOP3P.
pub(super) fn decode_long(words: Words) -> Fields {
    let packed = words.first(31, 23) == 0x1a7;
    let mut fields = if packed {
        Fields::new(&words.tables().vop3p, words.first(22, 16), 8)
    } else {
        Fields::new(&words.tables().vop3, words.first(25, 16), 8)
    };
    let instruction = &mut fields.instruction;
    instruction.src = [
        Operand::scalar(words.second(8, 0)),
        Operand::scalar(words.second(17, 9)),
        Operand::scalar(words.second(26, 18)),
    ];
    instruction.dst = Operand::vgpr(words.first(7, 0));
    let modifiers = &mut instruction.modifiers;
    modifiers.neg = words.second(31, 29) as u8;
    modifiers.clamp = words.first_bit(15);
    if packed {
        modifiers.op_sel = words.first(13, 11) as u8;
        modifiers.op_sel_hi = (words.second(28, 27) | words.first(14, 14) << 2) as u8;
        modifiers.neg_hi = words.first(10, 8) as u8;
    } else {
        modifiers.output = words.second(28, 27) as u8;
        modifiers.abs = words.first(10, 8) as u8;
        modifiers.op_sel = words.first(14, 11) as u8;
    }
    fields
}
