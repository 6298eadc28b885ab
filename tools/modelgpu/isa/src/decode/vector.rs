//! VOP1, VOP2, VOPC with their SDWA and DPP forms, VOP3 and VOP3P.

use super::fields::{Fields, Words, bits};
use crate::facts::Facts;
use crate::operand::Operand;
use crate::target::Target;
use crate::{
    Dpp, DppControl, MatrixScales, Modifiers, Sdwa, SdwaSource, SecondInstruction, Selection,
    Unused,
};

/// With one of these codes in source 0, the next dword is an SDWA or DPP control word.
const SDWA: u32 = 249;
const DPP: u32 = 250;
/// A DPP control word with a source for each of eight lanes. With the second code, inactive lanes are
/// sources too.
const DPP8: u32 = 233;
const DPP8_INACTIVE: u32 = 234;

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
        SDWA if words.has_early_forms() => decode_sdwa(words, &mut fields, kind == VOPC),
        code => decode_dpp(words, &mut fields, code),
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

/// Decodes the control word after the instruction, if the code of source 0 says that there is one.
fn decode_dpp(words: Words, fields: &mut Fields, code: u32) {
    let instruction = &mut fields.instruction;
    let word = words.words[usize::from(instruction.size / 4).min(2)];
    let field = |high, low| bits(word, high, low);
    let eight = match code {
        DPP => false,
        DPP8 | DPP8_INACTIVE if !words.is_gfx9() => true,
        _ => return,
    };
    // The modifiers of a long encoding are its own.
    let has_signs = instruction.size == 4;
    instruction.size += 4;
    instruction.src[0] = Operand::vgpr(field(7, 0));
    if eight {
        instruction.dpp = Some(Dpp {
            control: DppControl::Eight(field(31, 8)),
            bound_control: true,
            bank_mask: 15,
            row_mask: 15,
            fetches_inactive: code == DPP8_INACTIVE,
        });
        return;
    }
    if has_signs {
        instruction.modifiers.neg = (field(20, 20) | field(22, 22) << 1) as u8;
        instruction.modifiers.abs = (field(21, 21) | field(23, 23) << 1) as u8;
    }
    instruction.dpp = Some(Dpp {
        control: DppControl::Pattern(field(16, 8) as u16),
        bound_control: field(19, 19) == 1,
        bank_mask: field(27, 24) as u8,
        row_mask: field(31, 28) as u8,
        fetches_inactive: !words.is_gfx9() && field(18, 18) == 1,
    });
}

/// VOP3.
pub(super) fn decode_long(words: Words) -> Fields {
    let mut fields = Fields::new(&words.tables().vop3, words.first(25, 16), 8);
    let modifiers = &mut fields.instruction.modifiers;
    modifiers.output = words.second(28, 27) as u8;
    modifiers.abs = words.first(10, 8) as u8;
    modifiers.op_sel = words.first(14, 11) as u8;
    complete_long(words, &mut fields);
    fields
}

/// VOP3P.
pub(super) fn decode_packed(words: Words) -> Fields {
    let high = if words.is_gfx12() { 23 } else { 22 };
    let mut fields = Fields::new(&words.tables().vop3p, words.first(high, 16), 8);
    let modifiers = &mut fields.instruction.modifiers;
    modifiers.op_sel = words.first(13, 11) as u8;
    modifiers.op_sel_hi = (words.second(28, 27) | words.first(14, 14) << 2) as u8;
    modifiers.neg_hi = words.first(10, 8) as u8;
    complete_long(words, &mut fields);
    fields
}

/// The first half of gfx1250's scales of 64 bits.
const WIDE_SCALES: u32 = 0xcc3a;

/// The number in the tables of the first product with scales that begin with a dword.
pub(super) fn first_scaled(first: u32) -> u32 {
    if first >> 16 == WIDE_SCALES { 256 } else { 0 }
}

/// The scales in front of a matrix product, if there are any.
pub(super) fn scales(words: Words) -> Option<MatrixScales> {
    const SCALES: u32 = 0xd3ac;
    let is_wide = words.first(31, 16) == WIDE_SCALES;
    let is_there = match words.target {
        Target::Gfx950 => words.first(31, 16) == SCALES,
        Target::Gfx1250 => is_wide || words.first(31, 16) == 0xcc35,
        _ => false,
    };
    if !is_there {
        return None;
    }
    let byte = |source: u32| {
        let low = words.first(11 + source, 11 + source);
        let high = words.second(27 + source, 27 + source);
        (low | high << 1) as u8
    };
    Some(MatrixScales {
        sources: [
            Operand::scalar(words.second(8, 0)),
            Operand::scalar(words.second(17, 9)),
        ],
        bytes: [byte(0), byte(1)],
        registers: 1 + u8::from(is_wide),
    })
}

/// The fields that VOP3 and VOP3P share.
fn complete_long(words: Words, fields: &mut Fields) {
    let instruction = &mut fields.instruction;
    instruction.src = [
        Operand::scalar(words.second(8, 0)),
        Operand::scalar(words.second(17, 9)),
        Operand::scalar(words.second(26, 18)),
    ];
    instruction.dst = Operand::vgpr(words.first(7, 0));
    instruction.modifiers.neg = words.second(31, 29) as u8;
    instruction.modifiers.clamp = words.first_bit(15);
    if !words.has_early_forms() {
        decode_dpp(words, fields, words.second(8, 0));
    }
}

/// VOPD: two instructions. The numbers of their result registers differ in the lowest bit.
pub(super) fn decode_dual(words: Words) -> Fields {
    let tables = words.tables();
    let mut fields = Fields::new(&tables.vopdx, words.first(25, 22), 8);
    fields.second = Some((&tables.vopdy, words.first(21, 17)));
    let instruction = &mut fields.instruction;
    instruction.src[0] = Operand::scalar(words.first(8, 0));
    instruction.src[1] = Operand::vgpr(words.first(16, 9));
    let result = words.second(31, 24);
    instruction.dst = Operand::vgpr(result);
    instruction.second = Some(SecondInstruction {
        mnemonic: "",
        facts: &Facts::NONE,
        dst: Operand::vgpr(words.second(23, 17) << 1 | !result & 1),
        src: [
            words.scalar(words.second(8, 0)),
            Operand::vgpr(words.second(16, 9)),
            Operand::NONE,
        ],
        modifiers: Modifiers::default(),
        immediate: 0,
    });
    fields
}

/// VOPD3: two instructions with a result of their own each, and with signs.
pub(super) fn decode_wide_dual(words: Words) -> Fields {
    let tables = words.tables();
    let [_, _, third, _] = words.words;
    let mut fields = Fields::new(&tables.vopd3x, words.first(23, 18), 12);
    let opcode = words.first(17, 12);
    fields.second = Some((&tables.vopd3y, opcode));
    let signs = |low| Modifiers {
        neg: words.second(low + 2, low) as u8,
        ..Modifiers::default()
    };
    let instruction = &mut fields.instruction;
    instruction.src = [
        Operand::scalar(words.first(8, 0)),
        Operand::vgpr(words.second(23, 16)),
        third_source(fields.opcode, words.second(31, 24)),
    ];
    instruction.dst = Operand::vgpr(bits(third, 7, 0));
    instruction.modifiers = signs(9);
    instruction.second = Some(SecondInstruction {
        mnemonic: "",
        facts: &Facts::NONE,
        dst: Operand::vgpr(bits(third, 31, 24)),
        src: [
            words.scalar(words.second(8, 0)),
            Operand::vgpr(bits(third, 15, 8)),
            third_source(opcode, bits(third, 23, 16)).in_generation(words.target.generation()),
        ],
        modifiers: signs(12),
        immediate: bits(third, 23, 16) as i32,
    });
    fields
}

/// The third source of a part of VOPD3: a mask, a vector register or none.
fn third_source(opcode: u32, field: u32) -> Operand {
    const SELECT: u32 = 9;
    const TABLE: u32 = 18;
    const FMA: [u32; 2] = [19, 32];
    match opcode {
        SELECT => Operand::scalar(field),
        // The field is the table. It has entries for three bits, of which the last one is 0.
        TABLE => Operand::ZERO,
        sum if FMA.contains(&sum) => Operand::vgpr(field),
        _ => Operand::NONE,
    }
}
