//! Machine code of AMD GPUs: counters for the basic blocks of a linked code object.
//!
//! [`instrument()`] copies each function into a new segment, with instructions between the program's own that count the waves and the
//! active lanes of each stretch of code. The old text stays where it is, so that addresses that the code computes remain
//! valid. A wave counts in registers that the kernel does not use, and adds its counts to memory when it ends.
//!
//! The new code object describes itself: [`CounterMap`] finds its counters, and the code object that it was made of.

mod calls;
mod choice;
mod code;
mod encoder;
mod ends;
mod error;
mod flow;
mod function;
mod helpers;
mod insert;
mod jumps;
mod kept;
mod lanes;
mod link;
mod loops;
mod map;
mod marking;
mod marks;
mod masks;
mod object;
mod occupancy;
mod outline;
mod pending;
mod plan;
mod reach;
mod registers;
mod rewrite;
mod text;

use crate::support::counting::Counting;

pub use error::{MapError, Refusal};
pub use helpers::Helpers;
pub use map::{CounterMap, ExecutedCode, MAP_SECTION, MAP_VERSION, ORIGINAL_SECTION};
pub use rewrite::{instrument, instrument_with};

/// How a code object is instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmdgcnOptions {
    /// The kind of counters.
    pub counting: Counting,
    /// The rounds of a loop after which a wave brings its counts to memory. At most 65,536: lanes of a wave must not pass 32 bits
    /// before.
    pub rounds: u32,
    /// How functions that call each other share registers, at least.
    pub sharing: Sharing,
    /// The bytes of code up to which all functions of a code object are decoded at once. Those of a larger one are decoded a few
    /// at a time, and twice: in less memory, and by several threads if there are any. The result is the same.
    pub at_once: usize,
}

/// How functions that call each other share the registers of their counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each counter has a register of its own, if there are enough.
    #[default]
    Separate,
    /// Each function has the same ones, and brings its counts to memory before each call.
    Shared,
    /// So it does, and they are registers that other functions use: it gives them back before each call.
    Borrowed,
}

impl Default for AmdgcnOptions {
    fn default() -> Self {
        Self {
            counting: Counting::default(),
            rounds: 1 << 16,
            sharing: Sharing::default(),
            at_once: 4 << 20,
        }
    }
}

/// A code object with counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrumented {
    /// The ELF.
    pub code: Vec<u8>,
    /// The functions that stay without counters, by name, and why.
    pub refused: Vec<(String, Refusal)>,
}
