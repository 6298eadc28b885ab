//! The vector registers of a wave. Unsafe because they begin as zeroed memory: a wave takes memory
//! only for those that it writes.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::lanes::Words;

/// 256 VGPRs and 256 accumulation VGPRs, or 1,024 VGPRs, and room for a wide access at the last one.
const VECTORS: usize = 1024 + 32;
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

/// The memory of registers. The system gives zeroed memory piece by piece, as a wave touches it, only
/// if the request has no larger alignment than usual.
pub(crate) struct RegisterFile {
    block: NonNull<u8>,
    /// The first place in the block with the alignment.
    registers: NonNull<Registers>,
}

// SAFETY: the file owns its memory, and nothing else refers to it.
unsafe impl Send for RegisterFile {}

impl RegisterFile {
    /// The size with room for the alignment.
    const LAYOUT: Layout = match Layout::from_size_align(
        size_of::<Registers>() + align_of::<Registers>(),
        align_of::<u64>(),
    ) {
        Ok(layout) => layout,
        Err(_) => panic!("a small size"),
    };

    /// Makes registers that hold zeros.
    pub(crate) fn zeroed() -> Self {
        // SAFETY: the size is not 0.
        let block = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(block) = NonNull::new(block) else {
            handle_alloc_error(Self::LAYOUT);
        };
        let shift = block.align_offset(align_of::<Registers>());
        // SAFETY: the shift is less than the alignment, for which the block has room.
        let registers = unsafe { block.add(shift) }.cast();
        Self { block, registers }
    }
}

impl Drop for RegisterFile {
    fn drop(&mut self) {
        // SAFETY: the block came from `alloc_zeroed` with this layout, and is freed once.
        unsafe { dealloc(self.block.as_ptr(), Self::LAYOUT) };
    }
}

impl Deref for RegisterFile {
    type Target = Registers;

    fn deref(&self) -> &Registers {
        // SAFETY: the place is aligned and has the size; zeros and all other bits are valid integers.
        unsafe { self.registers.as_ref() }
    }
}

impl DerefMut for RegisterFile {
    fn deref_mut(&mut self) -> &mut Registers {
        // SAFETY: see `deref`.
        unsafe { self.registers.as_mut() }
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
