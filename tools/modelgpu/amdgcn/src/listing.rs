//! An instruction as a listing shows it: what the decoder read, without what it means.

use crate::isa::{Instruction, Operand};

/// A decoded instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Without an encoding suffix such as `_e64`.
    pub mnemonic: &'static str,
    /// Size in bytes: 4 or 8.
    pub size: u8,
    /// The operands' codes: result, second result (a carry or a mask), three sources; for buffers
    /// data, address, resource, scalar offset; those that the instruction lacks are left out. Up to 255 they are those of
    /// the source fields in AMD's CDNA3 instruction set guide; 256 to 511 are VGPRs, 512 to 767
    /// accumulation VGPRs. An operand of several registers is named by its first. The three-source
    /// encoding has three, though some instructions read fewer.
    pub operands: Vec<u16>,
    /// The constant that an operand of code 255 stands for.
    pub literal: u32,
    /// SIMM16, branch displacement in dwords, or the memory offset in bytes.
    pub immediate: i32,
}

impl From<Instruction> for Listed {
    fn from(instruction: Instruction) -> Listed {
        let Instruction { dst, sdst, src, .. } = instruction;
        let operands = match instruction.mnemonic.starts_with("buffer_") {
            // The data of a store are its result operand as well.
            true => [dst, src[0], sdst, src[2], Operand::NONE],
            false => [dst, sdst, src[0], src[1], src[2]],
        };
        Listed {
            mnemonic: instruction.mnemonic,
            size: instruction.size,
            operands: operands
                .into_iter()
                .filter(|operand| *operand != Operand::NONE)
                .map(|operand| operand.0)
                .collect(),
            literal: instruction.literal,
            immediate: instruction.immediate,
        }
    }
}
