//! DS, MUBUF, MTBUF, MIMG, FLAT, GLOBAL and SCRATCH.

use crate::format::codeobject::counter_updates::instruction::{
    Access, Action, Code, Generation, Instruction, Register, bits,
};

impl Code {
    /// DS.
    pub(super) fn lds(self) -> Instruction {
        let to = Register::vector(bits(self.second, 31, 24));
        Instruction::writing(2, to.and_next(4))
    }

    /// MUBUF, MTBUF and MIMG.
    pub(super) fn buffer(self, words: usize) -> Instruction {
        let data = Register::vector(bits(self.second, 15, 8));
        Instruction::writing(words, data.and_next(5))
    }

    /// FLAT, GLOBAL and SCRATCH.
    pub(super) fn flat(self) -> Instruction {
        const FLAT: u32 = 0;
        const SCRATCH: u32 = 1;
        let is_wide = self.generation == Generation::Gfx12;
        let (segment, opcode) = match self.generation {
            Generation::Gfx12 => (bits(self.first, 25, 24), bits(self.first, 21, 14)),
            Generation::Gfx11 => (bits(self.first, 17, 16), bits(self.first, 24, 18)),
            Generation::Gfx9 | Generation::Gfx10 => {
                (bits(self.first, 15, 14), bits(self.first, 24, 18))
            }
        };
        let (words, scalar, vector, data) = match is_wide {
            true => (3, self.first, self.third, self.second),
            false => (
                2,
                bits(self.second, 22, 16),
                self.second,
                bits(self.second, 31, 24),
            ),
        };
        let (access, bytes) = self.flat_access(opcode);
        // A store writes no register. Atomic operations may write two.
        let written = match access {
            Some(Access::Store) => 0,
            Some(Access::Load) => bytes.div_ceil(4) as u16,
            None => 4,
        };
        let instruction = Instruction::writing(words, Register::vector(data).and_next(written));
        // NULL, or no register at all.
        let has_scalar = segment != FLAT && scalar & 0x7f < 0x7c;
        let base = match has_scalar {
            true => Register::scalar(scalar),
            false => Register::vector(vector),
        };
        match access {
            Some(access) if segment != SCRATCH => instruction.doing(Action::Plain {
                access,
                base,
                bytes,
            }),
            _ => instruction,
        }
    }

    /// The direction and size of a plain access. `None` for atomic operations and others.
    fn flat_access(self, opcode: u32) -> (Option<Access>, u32) {
        const FIRST_STORE: u32 = 24;
        let (first_load, loads, stores): (_, [u32; 8], &[u32]) = match self.generation {
            Generation::Gfx9 => (16, [1, 1, 2, 2, 4, 8, 12, 16], &[1, 1, 2, 2, 4, 8, 12, 16]),
            Generation::Gfx10 => (8, [1, 1, 2, 2, 4, 8, 16, 12], &[1, 1, 2, 2, 4, 8, 16, 12]),
            Generation::Gfx11 | Generation::Gfx12 => {
                (16, [1, 1, 2, 2, 4, 8, 12, 16], &[1, 2, 4, 8, 12, 16])
            }
        };
        let at = |sizes: &[u32], first: u32| {
            let place = opcode.checked_sub(first)?;
            sizes.get(place as usize).copied()
        };
        if let Some(bytes) = at(&loads, first_load) {
            return (Some(Access::Load), bytes);
        }
        match at(stores, FIRST_STORE) {
            Some(bytes) => (Some(Access::Store), bytes),
            None => (None, 0),
        }
    }
}
