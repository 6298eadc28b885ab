//! A separate address space for kernels that run without a driver.

use std::sync::atomic::{AtomicU8, Ordering};

use super::{AddressSpace, Region};

/// Device address of the first allocation, far from the apertures and from null.
const FIRST_ADDRESS: u64 = 0x7000_0000_0000;
/// Allocations begin at multiples of this number of bytes and have at least this much unmapped
/// space behind them. So an access past the end faults.
const GUARD: u64 = 0x1_0000;

/// Allocations in host memory, each with its own bounds check. The arena never unmaps one.
#[derive(Default)]
pub struct Arena {
    allocations: Vec<Allocation>,
    next: u64,
}

struct Allocation {
    base: u64,
    len: u64,
    /// The result of `Box::into_raw`. It stays raw because kernels write through it while the arena
    /// is shared. The units of 8 bytes make every device alignment a host alignment.
    host: *mut [u64],
}

// SAFETY: the allocations are plain bytes. All access goes through raw pointers, by relaxed atomics
// while kernels run. A new allocation needs `&mut Arena`.
unsafe impl Sync for Arena {}
// SAFETY: the arena owns its allocations.
unsafe impl Send for Arena {}

// SAFETY: an allocation lives until the arena is dropped.
unsafe impl AddressSpace for Arena {
    fn region(&self, address: u64) -> Option<Region> {
        let place = self
            .allocations
            .partition_point(|a| a.base <= address)
            .checked_sub(1)?;
        let allocation = &self.allocations[place];
        let region = Region {
            base: allocation.base,
            len: allocation.len,
            host: allocation.host.cast(),
        };
        region.contains(address, 0).then_some(region)
    }

    fn generation(&self) -> u64 {
        self.allocations.len() as u64
    }
}

impl Arena {
    /// Creates an empty address space.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps a copy of `bytes` and returns its device address.
    pub fn allocate(&mut self, bytes: &[u8]) -> u64 {
        let base = self.next.max(FIRST_ADDRESS);
        let len = bytes.len() as u64;
        self.next = (base + len).next_multiple_of(GUARD) + GUARD;
        let words = vec![0u64; bytes.len().div_ceil(8)].into_boxed_slice();
        let host = Box::into_raw(words);
        self.allocations.push(Allocation { base, len, host });
        // The range is mapped: it was just allocated.
        let _ = self.write(base, bytes);
        base
    }

    /// A copy of `len` bytes from `address` on; `None` if they are not mapped.
    pub fn read(&self, address: u64, len: u64) -> Option<Vec<u8>> {
        let source = self.host(address, len)?;
        let byte = |place| {
            // SAFETY: `host` has checked that `len` bytes are mapped. The read is atomic because a
            // kernel may be running on this arena.
            unsafe { AtomicU8::from_ptr(source.add(place)).load(Ordering::Relaxed) }
        };
        Some((0..len as usize).map(byte).collect())
    }

    /// Replaces the bytes from `address` on. Returns `None` if they are not mapped.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let target = self.host(address, bytes.len() as u64)?;
        // SAFETY: `host` has checked that the bytes are mapped. No kernel runs on this arena,
        // because the function has `&mut self`.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Some(())
    }

    fn host(&self, address: u64, len: u64) -> Option<*mut u8> {
        let region = self.region(address)?;
        region
            .contains(address, len)
            .then(|| region.host.wrapping_add((address - region.base) as usize))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for allocation in &self.allocations {
            // SAFETY: the pointer came from `Box::into_raw` and is freed once.
            drop(unsafe { Box::from_raw(allocation.host) });
        }
    }
}
