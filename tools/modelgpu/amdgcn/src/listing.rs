//! An instruction for a listing: the decoded fields without the semantics.

use modelgpu_isa::{Instruction, Operand};

/// A decoded instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The mnemonic without an encoding suffix such as `_e64`.
    pub mnemonic: &'static str,
    /// The mnemonic of the second of a dual instruction, whose operands follow the first one's.
    pub second: Option<&'static str>,
    /// Size in bytes: a multiple of 4, up to 16.
    pub size: u8,
    /// The operands' codes: result, second result (a carry or a mask), three sources. For buffers:
    /// data, address, resource, scalar offset. The list omits operands that the instruction lacks.
    /// Codes up to 255 are those of the source fields in AMD's CDNA3 instruction set guide, 256 to
    /// 511 are VGPRs, 512 to 767 accumulation VGPRs, 768 to 1535 the VGPRs from 256 on. The first register stands for an operand of
    /// several registers. The three-source encoding always has three, though some instructions read
    /// fewer.
    pub operands: Vec<u16>,
    /// The constant of an operand with code 255, or 0xfffd on gfx1250.
    pub literal: u64,
    /// SIMM16, branch displacement in dwords, or the memory offset in bytes.
    pub immediate: i32,
}

impl From<Instruction> for Listed {
    fn from(instruction: Instruction) -> Self {
        let Instruction { dst, sdst, src, .. } = instruction;
        let operands = match (instruction.mnemonic.contains("buffer_")
            || instruction.mnemonic.starts_with("image_"))
            && !instruction.mnemonic.starts_with("s_")
        {
            // A store's data are also its result operand.
            true => [dst, src[0], sdst, src[2], Operand::NONE],
            false => [dst, sdst, src[0], src[1], src[2]],
        };
        let second = instruction.second.map_or([Operand::NONE; 4], |second| {
            let [first, other, third] = second.src;
            [second.dst, first, other, third]
        });
        let scales = instruction.matrix.scales;
        let scales = scales.map_or([Operand::NONE; 2], |scales| scales.sources);
        Self {
            mnemonic: instruction.mnemonic,
            second: instruction.second.map(|second| second.mnemonic),
            size: instruction.size,
            operands: operands
                .into_iter()
                .chain(second)
                .chain(scales)
                .filter(|operand| *operand != Operand::NONE)
                .map(|operand| operand.0)
                .collect(),
            literal: instruction.literal,
            immediate: instruction.immediate,
        }
    }
}
