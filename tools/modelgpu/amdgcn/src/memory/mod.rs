//! A kernel's view of memory: the GPU's virtual address space that its owner provides.

mod arena;
mod span;
mod view;

pub use arena::Arena;
pub(crate) use span::Span;
pub(crate) use view::{AtomicFailure, Unmapped, View};

/// One mapped stretch of the GPU's virtual address space and the host memory behind it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First device address, in bytes.
    pub base: u64,
    /// Length in bytes. An access must lie in `base..base + len` as a whole.
    pub len: u64,
    /// Host address of the byte at `base`, readable and writable for `len` bytes.
    pub host: *mut u8,
}

impl Region {
    /// Returns whether `size` bytes from `address` on lie inside.
    pub fn contains(&self, address: u64, size: u64) -> bool {
        address >= self.base && size <= self.len && address - self.base <= self.len - size
    }
}

/// The GPU's virtual address space. The driver stand-in (`modelgpu-kfd`) implements it for programs
/// on the real ROCr. This crate's arena implements it for kernels without a driver.
///
/// # Safety
/// While a region that [`AddressSpace::region`] returned is mapped (until `generation` changes),
/// its host range must stay valid for reads and writes from any thread.
pub unsafe trait AddressSpace: Sync {
    /// The region that holds `address`; `None` if nothing is mapped there (a GPU page fault).
    fn region(&self, address: u64) -> Option<Region>;
    /// A number that changes whenever a region is mapped, moved or unmapped. A caller that keeps
    /// regions drops them when this number changes.
    fn generation(&self) -> u64;
}
