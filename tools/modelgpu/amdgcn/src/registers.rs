//! The vector registers of a wave. Unsafe because they begin as zeroed memory: a wave takes memory
//! only for those that it writes.

use std::ops::{Deref, DerefMut};

use crate::wave::Words;

/// 256 VGPRs, 256 accumulation VGPRs, and room for a wide access at the last one.
const VECTORS: usize = 512 + 32;
/// The first of six buffers, two for each source of an instruction.
pub(crate) const BUFFERS: usize = VECTORS;

/// Vector registers on boundaries of the host's vectors.
#[repr(align(64))]
pub(crate) struct Registers {
    /// The registers, and buffers for sources.
    pub vectors: [Words; VECTORS + 6],
    /// Buffers for results.
    pub results: [Words; 4],
    /// Buffers for carries, in and out.
    pub carries: [Words; 2],
}

impl Registers {
    pub(crate) fn zeroed() -> Box<Self> {
        // SAFETY: zeros are valid arrays of integers.
        unsafe { Box::new_zeroed().assume_init() }
    }
}

impl Deref for Registers {
    type Target = [Words];

    fn deref(&self) -> &[Words] {
        &self.vectors
    }
}

impl DerefMut for Registers {
    fn deref_mut(&mut self) -> &mut [Words] {
        &mut self.vectors
    }
}
