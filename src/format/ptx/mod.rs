//! PTX, the text that NVIDIA's driver compiles: its basic blocks and their source positions.
//!
//! [`Module::parse`] reads a module as nvcc, clang and Triton write it. The grammar is that of NVIDIA's "PTX ISA". A
//! part of a function that rocov does not support is an error, never a guess.
//! [`instrument::ptx`](crate::instrument::ptx) puts counters into a module.

mod blocks;
mod error;
pub(crate) mod lexer;
pub(crate) mod module;
mod source_notes;
pub(crate) mod statements;

use crate::format::ptx::module::RECORD;

pub use error::PtxError;
pub use module::{Block, CallSite, Module, Position, PtxFunction as Function};
pub use source_notes::{NotedLines, hash_of_line, note_sources, noted_sources};
pub use statements::Place;

/// The modules in a text: PTX of units that were linked is kept one after the other, and each begins with `.version`.
/// Comments before that belong to the module before.
#[must_use]
pub fn modules(text: &str) -> Vec<&str> {
    let is_start = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b'\n';
    let starts = text
        .match_indices(".version")
        .map(|(at, _)| at)
        .filter(is_start);
    let mut ends: Vec<usize> = starts.skip(1).collect();
    ends.push(text.len());
    let mut start = 0;
    let parts = ends.into_iter().map(|end| {
        let part = &text[start..end];
        start = end;
        part
    });
    parts.collect()
}

/// Returns whether a text has records of functions with counters: those of clang, or of
/// [`instrument`](crate::instrument::ptx::instrument). Bytes that are not UTF-8 are not PTX that rocov reads.
#[must_use]
pub fn is_instrumented(text: impl AsRef<[u8]>) -> bool {
    str::from_utf8(text.as_ref()).is_ok_and(|text| text.contains(RECORD))
}

#[cfg(test)]
mod tests;
