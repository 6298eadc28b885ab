//! The account of opcodes: those that the interpreter executes, and those that it refuses.

use std::borrow::Cow;

use modelgpu_isa::Target;

use crate::execute::{Operation, canonical, resolve};

/// The interpreter's treatment of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Executes it.
    Executed,
    /// Ends the kernel with a message that names it and has this reason.
    Refused(&'static str),
    /// Ends the kernel with a message that names it.
    Unknown,
}

/// An opcode of an encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// The encoding in the words of AMD's instruction set guides, such as `VOP3P`. The three
    /// segments of FLAT count as encodings.
    pub encoding: &'static str,
    /// The number in the encoding.
    pub number: u16,
    /// The mnemonic without an encoding suffix such as `_e64`.
    pub mnemonic: &'static str,
    /// The name of the operation: CDNA's mnemonic for what RDNA has under another one.
    pub operation: Cow<'static, str>,
    /// The interpreter's treatment.
    pub standing: Standing,
}

/// The opcodes that LLVM knows on a target, by encoding.
pub fn opcodes(target: Target) -> Vec<Opcode> {
    modelgpu_isa::opcodes(target)
        .map(|(encoding, number, mnemonic)| Opcode {
            encoding,
            number,
            mnemonic,
            operation: canonical(mnemonic),
            standing: match resolve(mnemonic, target) {
                Some(Operation::Refused(reason)) => Standing::Refused(reason),
                Some(_) => Standing::Executed,
                None => Standing::Unknown,
            },
        })
        .collect()
}
