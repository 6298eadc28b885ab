//! Parses llvm-objdump's listing of a code object.

use std::collections::BTreeMap;
use std::path::Path;

use modelgpu_testing::{text, tool};

/// An instruction as llvm-objdump prints it.
#[derive(Debug)]
pub(crate) struct Printed {
    /// The mnemonic without its encoding's suffix; `.long` if llvm-objdump sees no instruction.
    pub(crate) mnemonic: String,
    /// The mnemonic of the second of a dual instruction.
    pub(crate) second: Option<String>,
    /// The size in bytes.
    pub(crate) size: usize,
    /// The operands without their modifiers.
    pub(crate) operands: Vec<String>,
    /// The words after the operands, such as `offset:16` and `glc`.
    pub(crate) modifiers: Vec<String>,
}

/// The instructions by their offset in the loaded code object.
pub(crate) fn listing(object: &Path) -> BTreeMap<u64, Printed> {
    // Zeros too, which llvm-objdump would abridge.
    let arguments = ["--disassemble", "--disassemble-zeroes", text(object)];
    let listing = tool("llvm-objdump-22", &arguments);
    let lines = listing.lines().filter(|line| line.starts_with('\t'));
    lines.map(parse).collect()
}

/// `\tv_add_u32_e32 v0, v1, v2    // 000000001904: 68000501`, then perhaps ` <label+0x10>`.
fn parse(line: &str) -> (u64, Printed) {
    let parts = line.rsplit_once("//").and_then(|(instruction, comment)| {
        let (offset, words) = comment.split_once(':')?;
        Some((instruction.trim(), offset.trim(), words))
    });
    let (instruction, offset, words) = parts.unwrap_or_else(|| panic!("{line:?}"));
    let offset = u64::from_str_radix(offset, 16).expect("an offset");
    let is_dword = |word: &&str| word.len() == 8 && u32::from_str_radix(word, 16).is_ok();
    let size = 4 * words.split_whitespace().take_while(is_dword).count();
    let (mnemonic, rest) = instruction.split_once(' ').unwrap_or((instruction, ""));
    // A dual instruction has the form `v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, v4`.
    let dual = mnemonic.replace("v_dual_", "v_");
    let mnemonic = dual.as_str();
    let halves = rest.split_once(" :: v_dual_").and_then(|(first, second)| {
        let (mnemonic, operands) = second.split_once(' ')?;
        Some((format!("v_{mnemonic}"), format!("{first}, {operands}")))
    });
    let (second, rest) = match halves {
        Some((second, rest)) => (Some(second), rest),
        None => (None, rest.to_owned()),
    };
    let rest = rest.as_str();
    let suffix = ["_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"]
        .into_iter()
        .find_map(|suffix| mnemonic.strip_suffix(suffix));
    let mut operands = Vec::new();
    let mut modifiers = Vec::new();
    for part in outside_of_brackets(rest) {
        let mut words = part.split_whitespace();
        operands.extend(words.next().map(|operand| bare(operand).to_owned()));
        modifiers.extend(words.map(str::to_owned));
    }
    let printed = Printed {
        mnemonic: suffix.unwrap_or(mnemonic).to_owned(),
        second,
        size,
        operands,
        modifiers,
    };
    (offset, printed)
}

/// Splits at the commas outside of brackets.
fn outside_of_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|character| {
        match character {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

/// An operand without negation, absolute value and sign extension.
fn bare(operand: &str) -> &str {
    let inner = operand
        .strip_prefix("sext(")
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(operand);
    let positive = inner.strip_prefix('-').unwrap_or(inner);
    if positive.starts_with(|first: char| first.is_ascii_digit()) {
        return inner;
    }
    let register = positive.trim_matches('|');
    // A half of a register has its own suffix; the register's number tells the half.
    let whole = register
        .strip_suffix(".l")
        .or_else(|| register.strip_suffix(".h"));
    whole.unwrap_or(register)
}
