//! The fields of encoded instructions.

use crate::Instruction;
use crate::opcode::{Table, Tables};
use crate::operand::Operand;
use crate::target::{Generation, Target};

/// The dwords at the program counter (0 past the end of the code), and the target that they are for.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) words: [u32; 4],
    pub(super) target: Target,
}

impl Words {
    /// The opcodes of the target's generation.
    pub(super) fn tables(self) -> &'static Tables {
        Tables::for_target(self.target)
    }

    /// The matrix product after its scales.
    pub(super) fn behind_scales(self) -> Self {
        let [_, _, first, second] = self.words;
        Self {
            words: [first, second, 0, 0],
            ..self
        }
    }

    pub(super) fn is_gfx9(self) -> bool {
        self.target.generation() == Generation::Gfx9
    }

    pub(super) fn is_gfx10(self) -> bool {
        self.target.generation() == Generation::Gfx10
    }

    /// Returns whether the target has GCN's forms of vector instructions, and the fields of accesses to memory where GCN
    /// has them.
    pub(super) fn has_early_forms(self) -> bool {
        self.is_gfx9() || self.is_gfx10()
    }

    /// The operand for a scalar code.
    pub(super) fn scalar(self, code: u32) -> Operand {
        Operand::scalar(code).in_generation(self.target.generation())
    }

    pub(super) fn is_gfx12(self) -> bool {
        self.target.generation() == Generation::Gfx12
    }

    /// Returns whether the target has 64-bit literals, scaled offsets and dual instructions of 12 bytes.
    pub(super) fn is_gfx1250(self) -> bool {
        self.target == Target::Gfx1250
    }

    /// Bits `low..=high` of the first dword.
    pub(super) fn first(self, high: u32, low: u32) -> u32 {
        bits(self.words[0], high, low)
    }

    /// Bits `low..=high` of the second dword.
    pub(super) fn second(self, high: u32, low: u32) -> u32 {
        bits(self.words[1], high, low)
    }

    pub(super) fn first_bit(self, place: u32) -> bool {
        self.words[0] >> place & 1 == 1
    }

    pub(super) fn second_bit(self, place: u32) -> bool {
        self.words[1] >> place & 1 == 1
    }
}

pub(super) fn bits(word: u32, high: u32, low: u32) -> u32 {
    word << (31 - high) >> (31 - high + low)
}

/// Reads the low `count` bits of `value` as a two's complement number.
pub(super) fn sign_extend(value: u32, count: u32) -> i32 {
    (value << (32 - count)) as i32 >> (32 - count)
}

/// The fields of an encoding, before the lookup of the mnemonic.
pub(super) struct Fields {
    pub(super) table: &'static Table,
    pub(super) opcode: u32,
    /// The table and the opcode of a second instruction.
    pub(super) second: Option<(&'static Table, u32)>,
    pub(super) instruction: Instruction,
}

impl Fields {
    /// Makes an instruction of `size` bytes without operands.
    pub(super) fn new(table: &'static Table, opcode: u32, size: u8) -> Self {
        Self {
            table,
            opcode,
            second: None,
            instruction: Instruction::empty(size),
        }
    }
}
