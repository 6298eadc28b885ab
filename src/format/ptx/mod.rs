//! PTX, the text that NVIDIA's driver compiles: its basic blocks and their source positions, and counters for them.
//!
//! [`Module::parse`] reads a module as nvcc, clang and Triton write it. The grammar is that of NVIDIA's "PTX ISA". A part
//! of a function that rocov does not know is an error, never a guess.

mod blocks;
mod error;
mod flush;
mod instrument;
mod lexer;
mod module;
mod plan;
mod records;
mod statements;

pub use error::PtxError;
pub use instrument::{Options, instrument};
pub use module::{Block, CallSite, Module, Position, PtxFunction as Function};
pub use statements::Place;

#[cfg(test)]
mod tests;
