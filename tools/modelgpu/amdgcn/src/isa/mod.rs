//! The instruction set: decodes bytes into an [`Instruction`]. The semantics are in `execute`.
//!
//! Sources: AMD's instruction set guides of CDNA 2 to 4 and RDNA 3 and 4 for the field layouts, and LLVM (through
//! `tables/generate.py`) for the opcode numbers.

mod decode;
mod implicit;
mod instruction;
mod opcode;
mod operand;

use crate::target::Target;
use opcode::Tables;

pub(crate) use decode::decode;
pub(crate) use instruction::{
    BufferFormat, Dpp, DppControl, ImageControl, Instruction, MatrixControl, MatrixScales,
    Modifiers, Sdwa, SdwaSource, SecondInstruction, Selection, Unused,
};
pub(crate) use operand::{FloatFormat, Operand, inline_constant};

/// The opcodes of a target: the encoding's name, the number in the encoding, and the mnemonic.
pub(crate) fn opcodes(target: Target) -> impl Iterator<Item = (&'static str, u16, &'static str)> {
    let tables = Tables::for_target(target).all();
    tables.flat_map(move |(encoding, table)| {
        let opcodes = table.opcodes(target);
        opcodes.map(move |(number, mnemonic)| (encoding, number, mnemonic))
    })
}
