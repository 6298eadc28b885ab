//! Compares the operands that llvm-objdump prints with the decoded ones.

use modelgpu_amdgcn::Listed;

use crate::objdump::Printed;

/// The operand codes for a literal constant after the instruction: of 32 and of 64 bits.
const LITERAL: u16 = 255;
const LITERAL64: u16 = 0xfffd;
/// The largest literal that the instruction itself can hold.
const SHORT_LITERAL: u64 = 0xffff;

/// Returns the first printed operand that was not decoded, or the first offset that differs.
pub(crate) fn difference(printed: &Printed, listed: &Listed) -> Option<String> {
    let mut decoded = listed.operands.iter().copied().map(Decoded::Code);
    let immediate = has_printed_immediate(listed).then_some(Decoded::Immediate);
    let literal = (listed.mnemonic == "s_setreg_imm32_b32").then_some(Decoded::Code(LITERAL));
    let mut decoded = decoded.by_ref().chain(literal).chain(immediate);
    for operand in &printed.operands {
        if is_uncompared(operand) {
            continue;
        }
        // The order is the listing's. The decoder may have operands in between that are not
        // printed, such as the addend of a multiply-add.
        if !decoded.any(|decoded| decoded.is(operand, listed)) {
            return Some(format!("operand {operand}"));
        }
    }
    let is_memory = ["ds_", "flat_", "global_", "scratch_", "buffer_"]
        .iter()
        .any(|family| listed.mnemonic.starts_with(family));
    let offset = printed_offset(&printed.modifiers);
    (is_memory && offset != Some(listed.immediate)).then(|| format!("offset {offset:?}"))
}

/// Returns whether the operand has no code, or none that the decoder keeps: no address register or offset, hardware registers, counters to
/// wait for, messages, and the cache policy or scope of instructions without operands.
fn is_uncompared(operand: &str) -> bool {
    ["off", "null", "sc0", "sc1"].contains(&operand)
        // A part of a hardware register has spaces: `hwreg(HW_REG_MODE, 0, 4)`.
        || operand.starts_with("hwreg(")
        || operand.starts_with("scope:")
        || operand.ends_with(')') && !operand.starts_with("lit(") && !operand.starts_with("lit64(")
}

/// Returns whether the listing prints an immediate: SMEM's offset, SOPP's displacement or number.
fn has_printed_immediate(listed: &Listed) -> bool {
    [
        "s_load_",
        "s_store_",
        "s_buffer_",
        "s_branch",
        "s_cbranch_",
        "s_nop",
        "s_set_vgpr_msb",
        "s_trap",
        "s_sleep",
        "s_clause",
        "s_wait",
        "s_barrier_wait",
        "s_set_inst_prefetch_distance",
        "s_round_mode",
        "s_denorm_mode",
    ]
    .iter()
    .any(|family| listed.mnemonic.starts_with(family))
}

/// The offset of a memory instruction; LDS instructions with two offsets have two bytes. Returns
/// `None` if it is not a number, as in ds_swizzle's pattern.
fn printed_offset(modifiers: &[String]) -> Option<i32> {
    let mut sum = 0;
    for modifier in modifiers {
        let (name, value) = modifier.split_once(':').unwrap_or((modifier, ""));
        let shift = match name {
            "offset" | "offset0" => 0,
            "offset1" => 8,
            _ => continue,
        };
        sum |= i32::try_from(number(value)?).ok()? << shift;
    }
    Some(sum)
}

enum Decoded {
    Code(u16),
    Immediate,
}

impl Decoded {
    fn is(&self, printed: &str, listed: &Listed) -> bool {
        let literal = printed
            .strip_prefix("lit(")
            .or_else(|| printed.strip_prefix("lit64("))
            .and_then(|rest| rest.strip_suffix(')'));
        let value = number(literal.unwrap_or(printed));
        match *self {
            // llvm-objdump prints displacements as unsigned 16 bits and offsets with their sign.
            Self::Immediate => value.is_some_and(|value| {
                value == listed.immediate.into() || value == (listed.immediate & 0xffff).into()
            }),
            Self::Code(LITERAL64) => value.is_some_and(|value| value as u64 == listed.literal),
            Self::Code(LITERAL) => value.is_some_and(|value| {
                let is_half = ["_f16", "_b16", "_i16", "_u16"]
                    .iter()
                    .any(|suffix| listed.mnemonic.ends_with(suffix));
                let short = listed.size == 4 || is_half;
                value as u64 == listed.literal
                    || short && value as u64 == listed.literal & SHORT_LITERAL
            }),
            Self::Code(code) => literal.is_none() && self::code(printed) == Some(code),
        }
    }
}

/// Parses a decimal or hexadecimal number with or without a sign.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map(|bits| bits as i64),
        None => digits.parse(),
    };
    Some(sign * magnitude.ok()?)
}

/// The code of a register or an inline constant: AMD's CDNA3 instruction set guide, "Scalar ALU
/// Operands".
fn code(printed: &str) -> Option<u16> {
    let named = match printed {
        "flat_scratch" | "flat_scratch_lo" => 102,
        "flat_scratch_hi" => 103,
        "xnack_mask" | "xnack_mask_lo" => 104,
        "xnack_mask_hi" => 105,
        "vcc" | "vcc_lo" => 106,
        "vcc_hi" => 107,
        "m0" => 124,
        "null" => 0xfffe,
        "exec" | "exec_lo" => 126,
        "exec_hi" => 127,
        "src_flat_scratch_base_lo" => 230,
        "src_flat_scratch_base_hi" => 231,
        "src_shared_base" => 235,
        "src_shared_limit" => 236,
        "src_private_base" => 237,
        "src_private_limit" => 238,
        "0.5" => 240,
        "-0.5" => 241,
        "1.0" => 242,
        "-1.0" => 243,
        "2.0" => 244,
        "-2.0" => 245,
        "4.0" => 246,
        "-4.0" => 247,
        "0.15915494" | "0.15915494309189532" => 248,
        "src_vccz" => 251,
        "src_execz" => 252,
        "src_scc" => 253,
        _ => return register(printed).or_else(|| small_integer(printed)),
    };
    Some(named)
}

/// `v7` or `s[2:3]`.
fn register(printed: &str) -> Option<u16> {
    let files = [("ttmp", 108), ("s", 0), ("v", 256), ("a", 512)];
    let (rest, base) = files
        .into_iter()
        .find_map(|(file, base)| Some((printed.strip_prefix(file)?, base)))?;
    let first = match rest.strip_prefix('[') {
        Some(range) => range.split([':', ']']).next()?,
        None => rest,
    };
    Some(base + first.parse::<u16>().ok()?)
}

fn small_integer(printed: &str) -> Option<u16> {
    match number(printed)? {
        value @ 0..=64 => Some(128 + value as u16),
        value @ -16..=-1 => Some(192 + value.unsigned_abs() as u16),
        _ => None,
    }
}
