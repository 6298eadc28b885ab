//! What a kernel sees of memory: the GPU's virtual address space as its owner presents it.

mod arena;
mod view;

pub use arena::Arena;
pub(crate) use view::{AtomicFailure, Unmapped, View};

/// One mapped stretch of the GPU's virtual address space and the host memory behind it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First device address, in bytes.
    pub base: u64,
    /// Length in bytes; an access must lie inside `base..base + len` as a whole.
    pub len: u64,
    /// Host address of the byte behind `base`, readable and writable for `len` bytes.
    pub host: *mut u8,
}

impl Region {
    /// Whether `size` bytes from `address` on lie inside.
    pub fn contains(&self, address: u64, size: u64) -> bool {
        address >= self.base && size <= self.len && address - self.base <= self.len - size
    }
}

/// The GPU's virtual address space. Implemented by the driver stand-in (`modelgpu-kfd`) for
/// programs on the real ROCr, and by this crate's own arena for kernels run without one.
///
/// # Safety
/// While a region that [`AddressSpace::region`] returned is mapped (until `generation` changes),
/// its host range must stay valid for reads and writes from any thread.
pub unsafe trait AddressSpace: Sync {
    /// The region that holds `address`, or `None` where nothing is mapped (a GPU page fault).
    fn region(&self, address: u64) -> Option<Region>;
    /// Changes whenever a region is mapped, moved or unmapped: a caller that keeps regions
    /// drops them when this differs from the value it saw before.
    fn generation(&self) -> u64;
}
