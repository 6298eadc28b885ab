//! Operands that the mnemonic implies, and fields that some instructions read differently from the
//! rest of their encoding.

use super::operand::Operand;
use super::{Instruction, MatrixControl, Modifiers, Sdwa, SdwaSource, Selection, Unused};

/// Completes a decoded instruction, which begins with the first of `words`.
pub(super) fn complete(instruction: &mut Instruction, words: [u32; 2]) {
    let name = instruction.mnemonic;
    let first = words[0];
    let short_vector = first >> 31 == 0;
    let long_vector = first >> 26 == 0x34;
    if name.starts_with("s_") {
        complete_scalar(instruction);
    } else if short_vector {
        if name.contains("_co_") || name == "v_cndmask_b32" {
            instruction.sdst = Operand::VCC;
            instruction.src[2] = Operand::VCC;
        }
        if name == "v_accvgpr_mov_b32" {
            instruction.src[0] = instruction.src[0].to_agpr();
            instruction.dst = instruction.dst.to_agpr();
        }
    } else if long_vector {
        complete_long_vector(instruction, words);
    }
    if name.starts_with("global_load_lds_") {
        instruction.buffer.to_lds = true;
    }
    if name.starts_with("v_div_fmas") {
        instruction.sdst = Operand::VCC;
    }
    if name == "v_readfirstlane_b32" {
        instruction.dst = instruction.dst.to_scalar();
    }
    // These add to their result. The packed ones cannot select halves.
    let is_dot = ["v_dot2c_", "v_dot4c_", "v_dot8c_"]
        .iter()
        .any(|form| name.starts_with(form));
    let is_packed = name.starts_with("v_pk_fmac");
    if name.starts_with("v_fmac") || name.starts_with("v_mac_") || is_packed || is_dot {
        instruction.src[2] = instruction.dst;
    }
    if is_packed || is_dot {
        instruction.modifiers.op_sel = 0;
        instruction.modifiers.op_sel_hi = 7;
    }
    // The constant is the literal behind the instruction: a * K + b, and a * b + K.
    match name {
        "v_madmk_f32" | "v_fmamk_f32" | "v_madmk_f16" => {
            instruction.src[2] = instruction.src[1];
            instruction.src[1] = Operand::LITERAL;
        }
        "v_madak_f32" | "v_fmaak_f32" | "v_madak_f16" => instruction.src[2] = Operand::LITERAL,
        _ => {}
    }
    let literal_follows = name == "s_setreg_imm32_b32"
        || instruction.size == 4
            && instruction.src.contains(&Operand::LITERAL)
            && !has_short_constant(name);
    if literal_follows {
        instruction.size = 8;
        instruction.literal = words[1];
    }
}

/// SOPK instructions whose constant is the 16-bit immediate, presented as a literal.
fn has_short_constant(name: &str) -> bool {
    ["s_cmpk_", "s_addk_", "s_mulk_", "s_movk_", "s_cmovk_"]
        .iter()
        .any(|form| name.starts_with(form))
}

fn complete_scalar(instruction: &mut Instruction) {
    let name = instruction.mnemonic;
    if has_short_constant(name) {
        instruction.literal = if name.starts_with("s_cmpk_") && name.ends_with("_u32") {
            instruction.immediate as u32 & 0xffff
        } else {
            instruction.immediate as u32
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

fn complete_long_vector(instruction: &mut Instruction, words: [u32; 2]) {
    let name = instruction.mnemonic;
    let first = words[0];
    if name.starts_with("v_mfma_") || name.starts_with("v_smfmac_") {
        complete_matrix(instruction, words);
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
    if name.starts_with("v_cvt_sr_") {
        // The result is the byte that op_sel names; the others stay.
        instruction.sdwa = Some(Sdwa {
            src: [SdwaSource::WHOLE; 2],
            dst: Selection::Byte(instruction.modifiers.op_sel >> 2),
            unused: Unused::Preserve,
        });
        instruction.modifiers.op_sel = 0;
    }
    if name.starts_with("v_readlane") {
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

/// VOP3P-MAI: the fields of other modifiers tell the matrices' registers and arrangement.
fn complete_matrix(instruction: &mut Instruction, [first, second]: [u32; 2]) {
    let file = |operand: Operand, accumulation: u32| {
        if accumulation & 1 == 1 && operand.vector_index().is_some() {
            operand.to_agpr()
        } else {
            operand
        }
    };
    let [a, b, c] = instruction.src;
    // The third source of a sparse product has places of numbers. They are in a plain register.
    let addend_file = if instruction.mnemonic.starts_with("v_smfmac_") {
        0
    } else {
        first >> 15
    };
    instruction.src = [
        file(a, second >> 27),
        file(b, second >> 28),
        file(c, addend_file),
    ];
    instruction.dst = file(instruction.dst, first >> 15);
    instruction.modifiers = Modifiers::default();
    instruction.matrix = MatrixControl {
        broadcast: (first >> 8 & 7) as u8,
        block: (first >> 11 & 15) as u8,
        lanes: (second >> 29) as u8,
    };
}
