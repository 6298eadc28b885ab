//! Operands that the mnemonic implies, and fields that some instructions read differently from the
//! rest of their encoding.

use crate::opcode::Tables;
use crate::operand::Operand;
use crate::target::{Generation, Target};
use crate::{
    Instruction, MatrixControl, Modifiers, Sdwa, SdwaSource, SecondInstruction, Selection, Unused,
};

/// The size of a vector instruction's encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vector {
    /// Not a vector instruction with operands in VGPRs alone.
    Not,
    /// VOP1, VOP2 and VOPC.
    Short,
    /// VOP3 and VOP3P.
    Long,
    /// VOPD.
    Dual,
}

/// Completes a decoded instruction, which begins with the first of `words`.
pub(crate) fn complete(
    instruction: &mut Instruction,
    vector: Vector,
    words: [u32; 4],
    target: Target,
) {
    let name = instruction.mnemonic;
    let is_gfx9 = target.generation() == Generation::Gfx9;
    if target == Target::Gfx1250 {
        let second = instruction.second.iter_mut();
        let sources = second.flat_map(|second| &mut second.src);
        for source in instruction.src.iter_mut().chain(sources) {
            if source.0 == 254 {
                *source = Operand::LITERAL64;
            }
        }
    }
    if name.starts_with("s_") {
        complete_scalar(instruction);
    }
    if !is_gfx9 && vector == Vector::Short {
        select_halves(instruction, target);
    }
    if name == "v_accvgpr_mov_b32" && vector == Vector::Short {
        if instruction.src[0].vector_index().is_some() {
            instruction.src[0] = instruction.src[0].to_agpr();
        }
        instruction.dst = instruction.dst.to_agpr();
    }
    match vector {
        Vector::Short | Vector::Dual => complete_operands(instruction),
        Vector::Long => {
            complete_long_vector(instruction, words, target);
            complete_operands_of_all(instruction);
        }
        Vector::Not => {}
    }
    if name.starts_with("global_load_lds_") {
        instruction.buffer.to_lds = true;
    }
    if name == "v_readfirstlane_b32" {
        instruction.dst = instruction.dst.to_scalar();
    }
    if !is_gfx9 {
        complete_rdna(instruction, target.generation());
    }
    complete_literal(instruction, vector, words, is_gfx9);
}

/// The literal constant after an instruction.
fn complete_literal(instruction: &mut Instruction, vector: Vector, words: [u32; 4], is_gfx9: bool) {
    let name = instruction.mnemonic;
    let second = instruction
        .second
        .map_or([Operand::NONE; 3], |second| second.src);
    let is_wide = instruction.src.contains(&Operand::LITERAL64);
    let has_literal = is_wide
        || instruction.src.contains(&Operand::LITERAL)
        || second.contains(&Operand::LITERAL)
        || instruction
            .second
            .is_some_and(|second| has_own_constant(second.mnemonic));
    let may_have_one = match vector {
        Vector::Dual => instruction.size == 8,
        Vector::Long => !is_gfx9 && instruction.size == 8,
        _ => instruction.size == 4,
    };
    let literal_follows =
        name == "s_setreg_imm32_b32" || may_have_one && has_literal && !has_short_constant(name);
    if literal_follows {
        let place = usize::from(instruction.size / 4);
        instruction.literal = words[place].into();
        instruction.size += 4;
        if is_wide {
            instruction.literal |= u64::from(words[place + 1]) << 32;
            instruction.size += 4;
        }
    }
}

/// The constant of the instruction is the literal after it.
fn has_own_constant(name: &str) -> bool {
    ["v_madmk_", "v_fmamk_", "v_madak_", "v_fmaak_"]
        .iter()
        .any(|form| name.starts_with(form))
}

/// The implied operands of a vector instruction without fields for them.
pub(crate) fn complete_operands(instruction: &mut Instruction) {
    let name = instruction.mnemonic;
    if name.contains("_co_") || name == "v_cndmask_b32" {
        instruction.sdst = Operand::VCC;
        // A dual instruction may name its mask.
        if instruction.src[2].is_none() {
            instruction.src[2] = Operand::VCC;
        }
    }
    complete_operands_of_all(instruction);
}

/// The implied operands of a vector instruction of any size.
fn complete_operands_of_all(instruction: &mut Instruction) {
    let name = instruction.mnemonic;
    if name.starts_with("v_div_fmas") {
        instruction.sdst = Operand::VCC;
    }
    // These add to their result. The packed ones cannot select halves.
    let is_dot = ["v_dot2c_", "v_dot4c_", "v_dot8c_", "v_dot2acc_"]
        .iter()
        .any(|form| name.starts_with(form));
    let is_packed = name.starts_with("v_pk_fmac");
    if name.starts_with("v_fmac") || name.starts_with("v_mac_") || is_packed || is_dot {
        instruction.src[2] = instruction.dst;
        // The result's half is the source's.
        let half = instruction.modifiers.op_sel >> 3 & 1;
        if name.ends_with("_f16") {
            instruction.modifiers.op_sel |= half << 2;
        }
    }
    if is_packed || is_dot {
        instruction.modifiers.op_sel = 0;
        instruction.modifiers.op_sel_hi = 7;
    }
    // The constant is the literal after the instruction: a * K + b, and a * b + K.
    if name.starts_with("v_madmk_") || name.starts_with("v_fmamk_") {
        instruction.src[2] = instruction.src[1];
        instruction.src[1] = own_constant(name);
        let select = instruction.modifiers.op_sel;
        instruction.modifiers.op_sel = select & 0b1001 | (select & 0b10) << 1;
    } else if has_own_constant(name) {
        instruction.src[2] = own_constant(name);
    }
}

/// The operand for the constant of an instruction that always has one.
fn own_constant(name: &str) -> Operand {
    match name.ends_with("_f64") {
        true => Operand::LITERAL64,
        false => Operand::LITERAL,
    }
}

/// A half of a register as an operand of a 32-bit encoding: the highest bit of the register's number
/// tells which half.
fn select_halves(instruction: &mut Instruction, target: Target) {
    const HIGH: u16 = 128;
    let halves = Tables::for_target(target).halves_of(instruction.mnemonic);
    let (first, last) = instruction.src.split_at_mut(1);
    let operands = [
        (0, &mut first[0]),
        (1, &mut last[0]),
        (3, &mut instruction.dst),
    ];
    for (place, operand) in operands {
        let is_high = operand
            .vector_index()
            .is_some_and(|index| index >= HIGH.into());
        if halves >> place & 1 == 1 && is_high {
            operand.0 -= HIGH;
            instruction.modifiers.op_sel |= 1 << place;
        }
    }
}

/// The rules of RDNA that differ from CDNA's.
fn complete_rdna(instruction: &mut Instruction, generation: Generation) {
    let name = instruction.mnemonic;
    let Instruction { dst, sdst, src, .. } = instruction;
    for operand in [dst, sdst].into_iter().chain(src) {
        *operand = operand.in_generation(generation);
    }
    // Every 16-bit result keeps the other half.
    instruction.modifiers.keeps_half = true;
    select_bytes(instruction);
    // These comparisons write EXEC alone.
    if name.starts_with("v_cmpx_") {
        instruction.sdst = Operand::NULL;
    }
    // The new value comes before the one to compare with.
    if name.starts_with("ds_cmpstore_") {
        instruction.src.swap(1, 2);
    }
}

/// The bytes of a source of numbers of 8 bits: op_sel has the half in the lowest bit, and the byte of the half in
/// the next one.
fn select_bytes(instruction: &mut Instruction) {
    let select = instruction.modifiers.op_sel & 3;
    let selection = match instruction.mnemonic {
        "v_cvt_f32_fp8" | "v_cvt_f32_bf8" => Selection::Byte((select & 1) << 1 | select >> 1),
        "v_cvt_pk_f32_fp8" | "v_cvt_pk_f32_bf8" => Selection::Half(select & 1),
        _ => return,
    };
    let source = SdwaSource {
        selection,
        sign_extend: false,
    };
    instruction.sdwa = Some(Sdwa {
        src: [source, SdwaSource::WHOLE],
        dst: Selection::Dword,
        unused: Unused::Zero,
    });
    instruction.modifiers.op_sel = 0;
}

/// SOPK instructions whose constant is the 16-bit immediate, presented as a literal.
fn has_short_constant(name: &str) -> bool {
    ["s_cmpk_", "s_addk_", "s_mulk_", "s_movk_", "s_cmovk_"]
        .iter()
        .any(|form| name.starts_with(form))
}

fn complete_scalar(instruction: &mut Instruction) {
    let name = instruction.mnemonic;
    let [first, second, _] = instruction.src;
    match name {
        "s_fmac_f32" | "s_fmac_f16" => instruction.src[2] = instruction.dst,
        "s_fmamk_f32" => instruction.src = [first, Operand::LITERAL, second],
        "s_fmaak_f32" => instruction.src[2] = Operand::LITERAL,
        _ => {}
    }
    if has_short_constant(name) {
        instruction.literal = if name.starts_with("s_cmpk_") && name.ends_with("_u32") {
            u64::from(instruction.immediate as u32 & 0xffff)
        } else {
            u64::from(instruction.immediate as u32)
        };
        instruction.src = [instruction.dst, Operand::LITERAL, Operand::NONE];
        if name.starts_with("s_movk_") || name.starts_with("s_cmovk_") {
            instruction.src = [Operand::LITERAL, Operand::NONE, Operand::NONE];
        }
        if name.starts_with("s_cmpk_") {
            instruction.dst = Operand::NONE;
        }
    }
}

fn complete_long_vector(instruction: &mut Instruction, words: [u32; 4], target: Target) {
    let name = instruction.mnemonic;
    let first = words[0];
    if name.starts_with("v_mfma_") || name.starts_with("v_smfmac_") {
        complete_matrix(instruction, words, target);
        return;
    }
    if name.starts_with("v_cmp") {
        instruction.sdst = Operand::scalar(first & 0xff);
        instruction.dst = Operand::NONE;
    }
    // VOP3B has a scalar destination instead of the abs and op_sel fields.
    let has_scalar_result = name.contains("_co_")
        || ["v_div_scale", "v_mad_u64", "v_mad_i64"]
            .iter()
            .any(|form| name.starts_with(form));
    if has_scalar_result {
        instruction.sdst = Operand::scalar(first >> 8 & 0x7f);
        instruction.modifiers.abs = 0;
        instruction.modifiers.op_sel = 0;
    }
    // These instructions are new in gfx9 or later and keep the other half of their register.
    // Instructions that gfx8 already had, with "legacy" in the name of their successors here, clear
    // the high half.
    instruction.modifiers.keeps_half = matches!(
        name,
        "v_mad_u16"
            | "v_mad_i16"
            | "v_fma_f16"
            | "v_mad_f16"
            | "v_div_fixup_f16"
            | "v_cvt_pk_fp8_f32"
            | "v_cvt_pk_bf8_f32"
            | "v_cvt_sr_f16_f32"
            | "v_cvt_sr_bf16_f32"
    );
    if name.starts_with("v_ashr_pk_") {
        instruction.modifiers.keeps_half = true;
    }
    if name.starts_with("v_bitop3_") {
        // The table lies in the fields of other modifiers.
        let Modifiers {
            output, abs, neg, ..
        } = instruction.modifiers;
        instruction.immediate = i32::from(output << 6 | abs << 3 | neg);
        instruction.modifiers = Modifiers {
            op_sel: instruction.modifiers.op_sel,
            keeps_half: name == "v_bitop3_b16",
            ..Modifiers::default()
        };
    }
    if name == "v_cvt_pkaccum_u8_f32" {
        instruction.src[2] = instruction.dst;
    }
    if matches!(name, "v_cvt_sr_fp8_f32" | "v_cvt_sr_bf8_f32") {
        // The result is the byte that op_sel names; the others stay.
        instruction.sdwa = Some(Sdwa {
            src: [SdwaSource::WHOLE; 2],
            dst: Selection::Byte(instruction.modifiers.op_sel >> 2),
            unused: Unused::Preserve,
        });
        instruction.modifiers.op_sel = 0;
    }
    // The second family computes with scalars.
    if name.starts_with("v_readlane") || name.starts_with("v_s_") {
        instruction.dst = instruction.dst.to_scalar();
    }
    if name.starts_with("v_accvgpr") {
        if name.starts_with("v_accvgpr_read") {
            instruction.src[0] = instruction.src[0].to_agpr();
        }
        if name.starts_with("v_accvgpr_write") {
            instruction.dst = instruction.dst.to_agpr();
        }
        instruction.src[1] = Operand::NONE;
        instruction.src[2] = Operand::NONE;
        instruction.modifiers = Modifiers::default();
    }
}

/// VOP3P-MAI: the fields of other modifiers give the matrices' registers and arrangement.
fn complete_matrix(instruction: &mut Instruction, [first, second, ..]: [u32; 4], target: Target) {
    let file = |operand: Operand, accumulation: u32| {
        if accumulation & 1 == 1 && operand.vector_index().is_some() {
            operand.to_agpr()
        } else {
            operand
        }
    };
    let [a, b, c] = instruction.src;
    // A result of gfx908 is in accumulation registers; later targets have a bit for the file.
    let result_file = match target {
        Target::Gfx908 => 1,
        _ => first >> 15,
    };
    // The third source of a sparse product has places of numbers. They are in a plain register.
    let addend_file = if instruction.mnemonic.starts_with("v_smfmac_") {
        0
    } else {
        result_file
    };
    instruction.src = [
        file(a, second >> 27),
        file(b, second >> 28),
        file(c, addend_file),
    ];
    instruction.dst = file(instruction.dst, result_file);
    instruction.modifiers = Modifiers::default();
    instruction.matrix = MatrixControl {
        broadcast: (first >> 8 & 7) as u8,
        block: (first >> 11 & 15) as u8,
        lanes: (second >> 29) as u8,
        scales: None,
    };
}

impl Instruction {
    /// The second of a dual instruction, alone.
    pub fn second(&self) -> Option<Self> {
        let SecondInstruction {
            mnemonic,
            facts,
            dst,
            src,
            modifiers,
            immediate,
        } = self.second?;
        let mut second = Self {
            mnemonic,
            facts,
            dst,
            src,
            literal: self.literal,
            modifiers,
            immediate,
            ..Self::empty(self.size)
        };
        complete_operands(&mut second);
        Some(second)
    }
}
