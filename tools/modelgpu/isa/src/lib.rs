//! The instruction sets of AMD's GPUs: Vega 7nm, CDNA, and RDNA 2 to 4.
//!
//! [`decode`] turns bytes into an [`Instruction`]: a mnemonic, and operands as the encoding has them. [`opcodes`] lists
//! the opcodes of a [`Target`], and [`opcode`] finds the number of one. [`Instruction::accesses`] has the registers that an instruction reads and writes,
//! and [`Instruction::flow`] the way on from it. The semantics of instructions are those of the
//! modelled GPU, `modelgpu-amdgcn`.
//!
//! Sources: AMD's instruction set guides of Vega 7nm, CDNA, and RDNA 2 to 4 for the field layouts, and LLVM (through
//! `tables/generate.py`) for the opcode numbers and the widths of operands.

mod access;
mod decode;
mod facts;
mod implicit;
mod instruction;
mod opcode;
mod operand;
mod target;

pub use access::{Access, AccessKind, Accesses, File, Flow};
pub use decode::{DecodeError, decode};
pub use facts::{Condition, Facts, WaveSize};
pub use instruction::{
    Banks, BufferControl, BufferFormat, Dpp, DppControl, ImageControl, Instruction, MatrixControl,
    MatrixScales, Modifiers, Sdwa, SdwaSource, SecondInstruction, Selection, Unused,
};
pub use opcode::{opcode, opcodes};
pub use operand::{FloatFormat, Operand, inline_constant};
pub use target::{Generation, Target, UnknownTarget};
