//! SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.

use crate::format::codeobject::counter_updates::instruction::{
    Action, Code, Generation, Instruction, LITERAL, Register, bits, signed,
};

impl Code {
    /// SOP1, SOP2, SOPC, SOPK and SOPP.
    pub(super) fn scalar(self) -> Instruction {
        let sources = [bits(self.first, 7, 0), bits(self.first, 15, 8)];
        let to = Register::scalar(bits(self.first, 22, 16));
        let words = |sources: &[u32]| 1 + usize::from(sources.contains(&LITERAL));
        match (bits(self.first, 31, 23), bits(self.first, 31, 28)) {
            (0x17d, _) => self.scalar_of_one(sources, to, words(&sources[..1])),
            (0x17e, _) => Instruction::other(words(&sources)),
            (0x17f, _) => Instruction::other(1).doing(self.branch()),
            (_, 0xb) => {
                let with_literal = match self.generation {
                    Generation::Gfx9 => 20,
                    Generation::Gfx10 => 21,
                    Generation::Gfx11 | Generation::Gfx12 => 19,
                };
                let has_literal = bits(self.first, 27, 23) == with_literal;
                let words = 1 + usize::from(has_literal);
                Instruction::writing(words, to.and_next(2))
            }
            _ => self.scalar_of_two(sources, to, words(&sources)),
        }
    }

    fn scalar_of_one(self, [source, opcode]: [u32; 2], to: Register, words: usize) -> Instruction {
        const MOVES: [[u32; 2]; 2] = [[0x00, 0x01], [0x03, 0x04]];
        let [move_one, move_two] = MOVES[usize::from(self.generation == Generation::Gfx10)];
        // s_getpc_b64, s_setpc_b64 and s_swappc_b64 follow each other.
        let counter = match self.generation {
            Generation::Gfx9 => 0x1c,
            Generation::Gfx10 => 0x1f,
            Generation::Gfx11 | Generation::Gfx12 => 0x47,
        };
        let sign_extends = match self.generation {
            Generation::Gfx9 => 0x17,
            Generation::Gfx10 => 0x1a,
            Generation::Gfx11 | Generation::Gfx12 => 0x0f,
        };
        let from = Register::from_code(source);
        let copied = from.map(|from| (to, from));
        let of_count = |count| Instruction::writing(words, to.and_next(count));
        match opcode {
            _ if opcode == move_one => of_count(1).doing(Action::Copy([copied, None])),
            _ if opcode == move_two => {
                let high = copied.map(|(to, from)| (to.next(), from.next()));
                of_count(2).doing(Action::Copy([copied, high]))
            }
            _ if opcode == counter => of_count(2).doing(Action::ProgramCounter(to)),
            _ if opcode == counter + 1 => {
                let action = from.map_or(Action::End, Action::JumpTo);
                Instruction::other(words).doing(action)
            }
            _ if opcode == counter + 2 => Instruction::other(words).doing(Action::Call),
            // The upper half of the program counter on gfx12.
            _ if opcode == sign_extends => of_count(1),
            _ => of_count(2),
        }
    }

    fn scalar_of_two(self, sources: [u32; 2], to: Register, words: usize) -> Instruction {
        /// s_add_u32, s_add_i32, and the upper halves of additions.
        const ADDS: [u32; 2] = [0, 2];
        const LAST_ADD: u32 = 5;
        /// s_add_nc_u64 of gfx12.
        const ADD_64: u32 = 0x53;
        /// s_fmaak_f32 and s_fmamk_f32: a constant always follows.
        const WITH_LITERAL: [u32; 2] = [0x45, 0x46];
        let opcode = bits(self.first, 29, 23);
        let has_64 = self.generation == Generation::Gfx12 && opcode == ADD_64;
        if self.generation >= Generation::Gfx11 && WITH_LITERAL.contains(&opcode) {
            return Instruction::writing(2, to.and_next(1));
        }
        let count = if opcode <= LAST_ADD { 1 } else { 2 };
        let instruction = Instruction::writing(words, to.and_next(count));
        if !ADDS.contains(&opcode) && !has_64 {
            return instruction;
        }
        let action = match sources.map(Register::from_code) {
            [Some(from), None] => self.add(to, from, sources[1]),
            [None, Some(from)] => self.add(to, from, sources[0]),
            _ => None,
        };
        instruction.doing(action.unwrap_or(Action::Other))
    }

    fn add(self, to: Register, from: Register, constant: u32) -> Option<Action> {
        let constant = constant_of(constant, self.second)?;
        Some(Action::Add { to, from, constant })
    }

    fn branch(self) -> Action {
        let opcode = bits(self.first, 22, 16);
        let distance = i64::from(signed(self.first, 16));
        let older = self.generation < Generation::Gfx11;
        match opcode {
            // s_endpgm, s_endpgm_saved and s_endpgm_ordered_ps_done.
            1 | 27 | 30 if older => Action::End,
            2 if older => Action::Jump(distance),
            4..=9 | 23..=26 if older => Action::Branch(distance),
            0x30..=0x32 if !older => Action::End,
            // s_code_end fills the space between functions.
            0x1f if !older => Action::End,
            0x20 if !older => Action::Jump(distance),
            0x21..=0x2a if !older => Action::Branch(distance),
            _ => Action::Other,
        }
    }

    /// SMEM.
    pub(super) fn scalar_memory(self) -> Instruction {
        let (opcode, bits_of_offset) = match self.generation {
            Generation::Gfx12 => (bits(self.first, 18, 13), 24),
            _ => (bits(self.first, 25, 18), 21),
        };
        let registers = match opcode {
            0..=4 => 1 << opcode,
            5 if self.generation == Generation::Gfx12 => 3,
            _ => 16,
        };
        let to = Register::scalar(bits(self.first, 12, 6));
        let instruction = Instruction::writing(2, to.and_next(registers));
        let is_load = opcode <= 4 || registers == 3;
        if !is_load {
            return instruction;
        }
        instruction.doing(Action::ScalarLoad {
            to,
            base: Register::scalar(bits(self.first, 5, 0) * 2),
            offset: signed(self.second, bits_of_offset),
            bytes: u32::from(registers) * 4,
        })
    }
}

/// The value of a constant that a source names. `literal` is the word after the instruction.
fn constant_of(source: u32, literal: u32) -> Option<u32> {
    match source {
        128..=192 => Some(source - 128),
        193..=208 => Some(192u32.wrapping_sub(source)),
        LITERAL => Some(literal),
        _ => None,
    }
}
