//! PTX: counters for the basic blocks of a module.
//!
//! [`instrument()`] returns the text of a [`Module`](crate::format::ptx::Module) with additions. A thread counts in registers,
//! and a warp adds its counts to memory when its threads leave a function.

mod error;
mod flags;
mod flow;
mod flush;
mod marks;
mod parting;
mod plan;
mod registers;
mod rewrite;
mod unit;
mod widths;

use std::collections::BTreeMap;

use crate::format::codeobject::{CodeObject, CodeObjectError};
use crate::support::counting::Counting;

pub use error::PtxRefusal;
pub use rewrite::instrument;

/// How a module is instrumented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxOptions {
    /// The version of the raw profile, from 8 to 11, which decides the releases of LLVM that read it. The default, 10, is
    /// for LLVM 19 to 22.
    pub version: u64,
    /// The registers that each kernel needs without counters, by its symbol.
    ///
    /// A kernel without `.maxntid`, `.reqntid` or `.maxnreg` gets a limit of registers, so that counters make no launch
    /// fail that would not fail without them, and as many blocks fit on an SM as before, or nearly so. With no number here, the
    /// limit is that of blocks of 1024 threads, the most that a GPU supports.
    pub registers: BTreeMap<String, u32>,
    /// True if a kernel that calls functions gets as few registers as one that calls none. The driver rejects it if a function
    /// needs more.
    pub limits_callers: bool,
    /// True if functions that are not kernels count in memory at once. That is slow, but needs few registers: a kernel may not
    /// call a function that needs more than the kernel may have.
    pub functions_in_memory: bool,
    /// The kind of counters.
    pub counting: Counting,
}

impl PtxOptions {
    /// The usual choices, with the registers of the kernels in `plain`, the cubin of the module without counters.
    ///
    /// # Errors
    /// Fails if the cubin is damaged.
    pub fn for_kernels_of(plain: &[u8]) -> Result<Self, CodeObjectError> {
        let kernels = CodeObject::parse(plain)?.kernels()?;
        Ok(Self {
            registers: kernels
                .into_iter()
                .map(|kernel| (kernel.name, kernel.vgprs))
                .collect(),
            ..Self::default()
        })
    }
}

impl Default for PtxOptions {
    fn default() -> Self {
        Self {
            version: 10,
            registers: BTreeMap::new(),
            limits_callers: false,
            functions_in_memory: false,
            counting: Counting::default(),
        }
    }
}

#[cfg(test)]
mod tests;
