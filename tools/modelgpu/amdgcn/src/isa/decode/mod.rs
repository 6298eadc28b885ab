//! Decodes two dwords into an instruction. This module tells the encodings apart and has one
//! submodule per group of encodings.

mod memory;
mod scalar;
mod vector;

use super::opcode::{Table, Tables};
use super::operand::Operand;
use super::{BufferControl, ImageControl, Instruction, MatrixControl, Modifiers, implicit};
use crate::target::Target;

/// The bytes do not encode an instruction of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecodeError {
    pub words: [u32; 2],
}

/// The two dwords at the program counter (the second is 0 at the end of the code), and the target
/// that they are for.
#[derive(Clone, Copy)]
struct Words {
    words: [u32; 2],
    target: Target,
}

impl Words {
    /// The opcodes of the target's generation.
    fn tables(self) -> &'static Tables {
        Tables::of(self.target)
    }

    /// Bits `low..=high` of the first dword.
    fn first(self, high: u32, low: u32) -> u32 {
        bits(self.words[0], high, low)
    }

    /// Bits `low..=high` of the second dword.
    fn second(self, high: u32, low: u32) -> u32 {
        bits(self.words[1], high, low)
    }

    fn first_bit(self, place: u32) -> bool {
        self.words[0] >> place & 1 == 1
    }

    fn second_bit(self, place: u32) -> bool {
        self.words[1] >> place & 1 == 1
    }
}

fn bits(word: u32, high: u32, low: u32) -> u32 {
    word << (31 - high) >> (31 - high + low)
}

/// Reads the low `count` bits of `value` as a two's complement number.
fn sign_extend(value: u32, count: u32) -> i32 {
    (value << (32 - count)) as i32 >> (32 - count)
}

/// The fields of an encoding, before the lookup of the mnemonic.
struct Fields {
    table: &'static Table,
    opcode: u32,
    instruction: Instruction,
}

impl Fields {
    /// Makes an instruction of `size` bytes without operands.
    fn new(table: &'static Table, opcode: u32, size: u8) -> Self {
        Self {
            table,
            opcode,
            instruction: Instruction {
                mnemonic: "",
                size,
                dst: Operand::NONE,
                sdst: Operand::NONE,
                src: [Operand::NONE; 3],
                literal: 0,
                immediate: 0,
                modifiers: Modifiers::default(),
                sdwa: None,
                dpp: None,
                matrix: MatrixControl::default(),
                buffer: BufferControl::default(),
                image: ImageControl::default(),
                returns: false,
                has_vector_address: false,
            },
        }
    }
}

/// Decodes the instruction that begins with `words[0]`.
pub(crate) fn decode(words: [u32; 2], target: Target) -> Result<Instruction, DecodeError> {
    let error = DecodeError { words };
    let words = Words { words, target };
    let first = words.words[0];
    let fields = if first >> 31 == 0 {
        vector::decode_short(words)
    } else if first >> 30 == 2 {
        scalar::decode(words)
    } else {
        match first >> 26 {
            0x30 => scalar::decode_memory(words),
            0x34 => vector::decode_long(words),
            0x36 => memory::decode_lds(words),
            0x37 => memory::decode_flat(words),
            0x38 => memory::decode_buffer(words),
            0x3a => memory::decode_typed_buffer(words),
            0x3c => memory::decode_image(words),
            _ => return Err(error),
        }
    };
    let mut instruction = fields.instruction;
    instruction.mnemonic = fields.table.mnemonic(fields.opcode, target).ok_or(error)?;
    // These targets have barriers only of the instructions on data that all workgroups share.
    const GLOBAL_DATA: u32 = 0xd801_0000;
    if first & 0xfc01_0000 == GLOBAL_DATA && !instruction.mnemonic.starts_with("ds_gws_") {
        return Err(error);
    }
    implicit::complete(&mut instruction, words.words);
    Ok(instruction)
}
