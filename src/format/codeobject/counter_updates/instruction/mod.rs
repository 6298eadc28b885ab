//! AMD's machine instructions, as far as addresses of counters go through them: their sizes, the registers that they
//! write, and branches, moves, sums and accesses of memory.
//!
//! AMD's ISA documents ("Microcode Formats") and LLVM's `SOPInstructions.td`, `FLATInstructions.td` and others have the
//! encodings. An instruction may count as writing more registers than it does: an address is then forgotten, and never
//! taken for one that it is not.

mod memory;
mod scalar;
mod vector;

use std::ops::Range;

/// The generation of a target. Each has encodings of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Generation {
    /// GCN 5 and CDNA.
    Gfx9,
    /// RDNA 1 and 2.
    Gfx10,
    /// RDNA 3.
    Gfx11,
    /// RDNA 4.
    Gfx12,
}

impl Generation {
    /// The generation of a target, such as `gfx90a:xnack-`. `None` if its encodings are not known.
    pub(super) fn for_target(target: &str) -> Option<Self> {
        let generations = [
            ("gfx9", Self::Gfx9),
            ("gfx10", Self::Gfx10),
            ("gfx11", Self::Gfx11),
            ("gfx120", Self::Gfx12),
            ("gfx12-", Self::Gfx12),
        ];
        let mut generations = generations.into_iter();
        generations.find_map(|(start, generation)| target.starts_with(start).then_some(generation))
    }

    fn is_gfx9(self) -> bool {
        self == Self::Gfx9
    }
}

/// A register, by the code that operands have for it: scalar registers from 0 on, vector registers from 256 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Register(u16);

impl Register {
    const FIRST_VECTOR: u32 = 256;
    /// The pair of scalar registers that comparisons and carries go to.
    const VCC: u32 = 106;
    /// Codes from this one on are constants and others.
    const FIRST_CONSTANT: u32 = 128;

    fn from_code(code: u32) -> Option<Self> {
        let is_register = !(Self::FIRST_CONSTANT..Self::FIRST_VECTOR).contains(&code);
        is_register.then_some(Self(code as u16))
    }

    fn vector(number: u32) -> Self {
        Self((Self::FIRST_VECTOR + (number & 0xff)) as u16)
    }

    /// A scalar register. The 7 bits of the field have codes of no constant.
    fn scalar(number: u32) -> Self {
        Self((number & 0x7f) as u16)
    }

    /// This register and the following ones.
    fn and_next(self, count: u16) -> Range<u16> {
        self.0..self.0 + count
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns whether it is one of these.
    pub(super) fn is_in(self, registers: &Range<u16>) -> bool {
        registers.contains(&self.0)
    }
}

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Load,
    Store,
}

/// The effect of an instruction on addresses, or the place where the code continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing of interest.
    Other,
    /// The code continues so many words after the next instruction.
    Jump(i64),
    /// The code continues there, or at the next instruction.
    Branch(i64),
    /// The code continues at the address in this pair of registers, or elsewhere.
    JumpTo(Register),
    /// The code ends.
    End,
    /// A function is called.
    Call,
    /// The address of the next instruction goes to this pair.
    ProgramCounter(Register),
    /// Registers are copied to others.
    Copy([Option<(Register, Register)>; 2]),
    /// The sum of a register and a constant goes to a register.
    Add {
        to: Register,
        from: Register,
        constant: u32,
    },
    /// Memory at an address in a pair of registers is accessed, without an atomic operation.
    Plain {
        access: Access,
        base: Register,
        bytes: u32,
    },
    /// Scalar registers are loaded from memory at an address in a pair of registers.
    ScalarLoad {
        to: Register,
        base: Register,
        offset: i32,
        bytes: u32,
    },
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its size in words of 4 bytes.
    pub(super) words: usize,
    /// The registers that it may write.
    pub(super) writes: [Range<u16>; 2],
    pub(super) action: Action,
}

/// The code that says that a constant follows the instruction.
const LITERAL: u32 = 255;
/// Codes that say that a word about the parts or lanes of a source follows the instruction.
const SDWA: u32 = 249;
const DPP: u32 = 250;
const DPP8: [u32; 2] = [233, 234];

/// The most registers that a matrix product or an indirect move writes.
const MOST_WRITTEN: u16 = 32;

/// The first word that a program counter is read with. The register is in bits 22:16.
pub(super) fn reads_program_counter(word: u32, generation: Generation) -> bool {
    let opcode = match generation {
        Generation::Gfx9 => 0x1c,
        Generation::Gfx10 => 0x1f,
        Generation::Gfx11 | Generation::Gfx12 => 0x47,
    };
    word & 0xff80_ffff == 0xbe80_0000 | opcode << 8
}

/// Decodes the instruction that `words` begin with. `None` if it has no known encoding.
pub(super) fn decode(words: &[u32], generation: Generation) -> Option<Instruction> {
    let first = *words.first()?;
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    let code = Code {
        first,
        second: word(1),
        third: word(2),
        generation,
    };
    let instruction = match (generation, first >> 26) {
        (_, 0..=0x1f) => code.short_vector(),
        (_, 0x20..=0x2f) => code.scalar(),
        (Generation::Gfx9, 0x30) | (_, 0x3d) => code.scalar_memory(),
        (Generation::Gfx9, 0x34) if first >> 16 == 0xd3ac => code.vector_writing(4, MOST_WRITTEN),
        (Generation::Gfx9, 0x34) if first >> 23 == 0x1a7 => code.packed(),
        (Generation::Gfx9, 0x34) => code.long_vector(),
        // VINTRP.
        (Generation::Gfx9, 0x35) | (Generation::Gfx10, 0x32) => code.vector_at(1, 18, 1),
        (Generation::Gfx11 | Generation::Gfx12, 0x32) => code.dual(),
        (Generation::Gfx12, 0x31) => code.data_at_second(3),
        (_, 0x33) => match first >> 24 {
            0xcc => code.packed(),
            0xcd => code.vector_writing(2, 1),
            _ => code.vector_writing(1, 1),
        },
        (Generation::Gfx12, 0x34 | 0x39) => code.data_at_second(3),
        (_, 0x35) => code.long_vector(),
        (_, 0x36) => code.lds(),
        (Generation::Gfx12, 0x3b) => code.flat(),
        // EXP.
        (Generation::Gfx9, 0x31) | (_, 0x3e) => Instruction::other(2),
        (Generation::Gfx12, _) => return None,
        (_, 0x37) => code.flat(),
        (_, 0x38 | 0x3a) => code.buffer(2),
        (Generation::Gfx9, 0x3c) => code.buffer(2),
        (Generation::Gfx10, 0x3c) => code.buffer(2 + bits(first, 2, 1) as usize),
        (Generation::Gfx11, 0x3c) => code.buffer(2 + bits(first, 0, 0) as usize),
        _ => return None,
    };
    Some(instruction)
}

fn bits(word: u32, high: u32, low: u32) -> u32 {
    word << (31 - high) >> (31 - high + low)
}

/// Reads the low `count` bits of `value` as a two's complement number.
fn signed(value: u32, count: u32) -> i32 {
    (value << (32 - count)).cast_signed() >> (32 - count)
}

impl Instruction {
    fn other(words: usize) -> Self {
        Self {
            words,
            writes: [0..0, 0..0],
            action: Action::Other,
        }
    }

    fn writing(words: usize, registers: Range<u16>) -> Self {
        Self {
            writes: [registers, 0..0],
            ..Self::other(words)
        }
    }

    fn doing(self, action: Action) -> Self {
        Self { action, ..self }
    }
}

/// The first words of an instruction.
#[derive(Clone, Copy)]
struct Code {
    first: u32,
    second: u32,
    third: u32,
    generation: Generation,
}

impl Code {
    /// An instruction that writes vector registers, by the number in the low byte of its first word.
    fn vector_writing(self, words: usize, count: u16) -> Instruction {
        let to = Register::vector(self.first);
        Instruction::writing(words, to.and_next(count))
    }

    /// An instruction that writes vector registers, by the number at bit `low` of its first word.
    fn vector_at(self, words: usize, low: u32, count: u16) -> Instruction {
        let to = Register::vector(self.first >> low);
        Instruction::writing(words, to.and_next(count))
    }

    /// An instruction whose data are in the vector registers from the low byte of its second word on.
    fn data_at_second(self, words: usize) -> Instruction {
        let data = Register::vector(self.second);
        Instruction::writing(words, data.and_next(5))
    }
}
