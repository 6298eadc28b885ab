//! VOP1, VOP2, VOPC, VOP3, VOP3P and VOPD.

use std::ops::Range;

use crate::format::codeobject::counter_updates::instruction::{
    Action, Code, DPP, DPP8, Generation, Instruction, LITERAL, MOST_WRITTEN, Register, SDWA, bits,
};

impl Code {
    /// VOP1, VOP2 and VOPC.
    pub(super) fn short_vector(self) -> Instruction {
        const VOP1: u32 = 63;
        const VOPC: u32 = 62;
        let source = bits(self.first, 8, 0);
        let kind = bits(self.first, 30, 25);
        let literal: &[u32] = match self.generation {
            Generation::Gfx9 => &[23, 24, 36, 37],
            Generation::Gfx10 => &[0x20, 0x21, 0x2c, 0x2d, 0x37, 0x38],
            Generation::Gfx11 | Generation::Gfx12 => &[0x2c, 0x2d, 0x37, 0x38],
        };
        let has_sdwa = self.generation <= Generation::Gfx10 && source == SDWA;
        let has_more = has_sdwa
            || [LITERAL, DPP].contains(&source)
            || !self.generation.is_gfx9() && DPP8.contains(&source)
            || literal.contains(&kind);
        let words = 1 + usize::from(has_more);
        let vcc = Register::scalar(Register::VCC).and_next(2);
        if kind == VOPC {
            // SDWA names another pair.
            let named = Register::scalar(bits(self.second, 14, 8)).and_next(2);
            let pairs = [vcc, if has_sdwa { named } else { 0..0 }];
            return Instruction {
                writes: pairs,
                ..Instruction::other(words)
            };
        }
        let to = bits(self.first, 24, 17);
        if kind != VOP1 {
            let results = Register::vector(to).and_next(2);
            return Instruction {
                writes: [results, vcc],
                ..Instruction::other(words)
            };
        }
        let from = (words == 1).then(|| Register::from_code(source)).flatten();
        self.move_of(bits(self.first, 16, 9), to, from, words)
    }

    /// VOP1, in either encoding.
    fn move_of(self, opcode: u32, to: u32, from: Option<Register>, words: usize) -> Instruction {
        const MOVE: u32 = 1;
        const READ_FIRST_LANE: u32 = 2;
        /// v_mov_b64 of gfx940.
        const MOVE_64: u32 = 0x38;
        /// v_movreld_b32, v_movrels_b32 and v_movrelsd_b32.
        const INDIRECT: Range<u32> = 0x42..0x49;
        /// v_swap_b32, and v_permlane16_swap_b32 and v_permlane32_swap_b32 of gfx950.
        const SWAPS: [u32; 5] = [0x51, 0x59, 0x5a, 0x65, 0x66];
        let vector = Register::vector(to);
        let copied = from.map(|from| (vector, from));
        match opcode {
            MOVE => {
                Instruction::writing(words, vector.and_next(1)).doing(Action::Copy([copied, None]))
            }
            MOVE_64 if self.generation.is_gfx9() => {
                let high = copied.map(|(to, from)| (to.next(), from.next()));
                Instruction::writing(words, vector.and_next(2)).doing(Action::Copy([copied, high]))
            }
            READ_FIRST_LANE => {
                let to = Register::scalar(to);
                let copied = from.map(|from| (to, from));
                Instruction::writing(words, to.and_next(1)).doing(Action::Copy([copied, None]))
            }
            _ if INDIRECT.contains(&opcode) => {
                Instruction::writing(words, vector.and_next(MOST_WRITTEN))
            }
            _ if SWAPS.contains(&opcode) => Instruction {
                writes: [
                    vector.and_next(1),
                    from.map_or(0..0, |from| from.and_next(1)),
                ],
                ..Instruction::other(words)
            },
            _ => Instruction::writing(words, vector.and_next(2)),
        }
    }

    /// The size of VOP3 and VOP3P.
    fn long_words(self) -> usize {
        let source = bits(self.second, 8, 0);
        let sources = [source, bits(self.second, 17, 9), bits(self.second, 26, 18)];
        let has_more = sources.contains(&LITERAL) || source == DPP || DPP8.contains(&source);
        2 + usize::from(has_more && !self.generation.is_gfx9())
    }

    /// VOP3.
    pub(super) fn long_vector(self) -> Instruction {
        let opcode = bits(self.first, 25, 16);
        let words = self.long_words();
        let to = bits(self.first, 7, 0);
        let moves = if self.generation.is_gfx9() {
            0x140
        } else {
            0x180
        };
        let carries: &[u32] = match self.generation {
            Generation::Gfx9 => &[
                0x119, 0x11a, 0x11b, 0x11c, 0x11d, 0x11e, 0x1e0, 0x1e1, 0x1e8, 0x1e9,
            ],
            Generation::Gfx10 => &[
                0x128, 0x129, 0x12a, 0x30f, 0x310, 0x319, 0x16d, 0x16e, 0x176, 0x177,
            ],
            Generation::Gfx11 | Generation::Gfx12 => &[
                0x120, 0x121, 0x122, 0x300, 0x301, 0x302, 0x2fc, 0x2fd, 0x2fe, 0x2ff,
            ],
        };
        // v_readlane_b32, and the functions of scalar registers that gfx12 has.
        let writes_scalar = match self.generation {
            Generation::Gfx9 => opcode == 0x289,
            Generation::Gfx10 | Generation::Gfx11 => opcode == 0x360,
            Generation::Gfx12 => opcode == 0x360 || (0x280..0x28a).contains(&opcode),
        };
        match opcode {
            // Comparisons.
            0..0x100 => Instruction::writing(words, Register::scalar(to).and_next(2)),
            _ if (moves..moves + 0x80).contains(&opcode) => {
                let from = (words == 2).then(|| Register::from_code(bits(self.second, 8, 0)));
                self.move_of(opcode - moves, to, from.flatten(), words)
            }
            _ if writes_scalar => Instruction::writing(words, Register::scalar(to).and_next(1)),
            _ if carries.contains(&opcode) => Instruction {
                writes: [
                    Register::vector(to).and_next(2),
                    Register::scalar(bits(self.first, 14, 8)).and_next(2),
                ],
                ..Instruction::other(words)
            },
            _ => Instruction::writing(words, Register::vector(to).and_next(2)),
        }
    }

    /// VOP3P, with the matrix products.
    pub(super) fn packed(self) -> Instruction {
        /// v_pk_mov_b32 of CDNA 2 and later.
        const MOVE: u32 = 0x33;
        const FIRST_MATRIX: u32 = 0x40;
        let opcode = bits(self.first, 22, 16);
        let words = self.long_words();
        let to = Register::vector(self.first);
        if self.generation.is_gfx9() && opcode == MOVE {
            let sources =
                [bits(self.second, 8, 0), bits(self.second, 17, 9)].map(Register::from_code);
            let takes_high = [11, 12].map(|place| bits(self.first, place, place) == 1);
            let chosen = |index: usize| {
                let source = sources[index];
                source.map(|source| {
                    if takes_high[index] {
                        source.next()
                    } else {
                        source
                    }
                })
            };
            let copied = [
                chosen(0).map(|from| (to, from)),
                chosen(1).map(|from| (to.next(), from)),
            ];
            return Instruction::writing(words, to.and_next(2)).doing(Action::Copy(copied));
        }
        let count = if opcode < FIRST_MATRIX {
            2
        } else {
            MOST_WRITTEN
        };
        Instruction::writing(words, to.and_next(count))
    }

    /// VOPD.
    pub(super) fn dual(self) -> Instruction {
        /// v_dual_fmaak_f32 and v_dual_fmamk_f32: a constant always follows.
        const WITH_LITERAL: [u32; 2] = [1, 2];
        const MOVE: u32 = 8;
        let opcodes = [bits(self.first, 25, 22), bits(self.first, 21, 17)];
        let sources = [bits(self.first, 8, 0), bits(self.second, 8, 0)];
        let has_literal = sources.contains(&LITERAL)
            || opcodes.iter().any(|opcode| WITH_LITERAL.contains(opcode));
        let to = bits(self.second, 31, 24);
        // The numbers of the results differ in the lowest bit.
        let other = bits(self.second, 23, 17) << 1 | !to & 1;
        let to = [to, other].map(Register::vector);
        let copied = [0, 1].map(|index| {
            let is_move = opcodes[index] == MOVE;
            let from = is_move
                .then(|| Register::from_code(sources[index]))
                .flatten();
            from.map(|from| (to[index], from))
        });
        Instruction {
            words: 2 + usize::from(has_literal),
            writes: to.map(|to| to.and_next(1)),
            action: Action::Copy(copied),
        }
    }
}
