//! Typed access to device memory. Only this module of the crate follows device pointers.

use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

use modelgpu_amdgcn::memory::AddressSpace;

use crate::fault::Fault;

/// Device memory with bounds checks for the addresses of packets.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    space: &'a dyn AddressSpace,
}

impl<'a> Memory<'a> {
    /// Creates a view of the memory in `space`.
    pub fn new(space: &'a dyn AddressSpace) -> Self {
        Memory { space }
    }

    /// The host address of `len` bytes at `address`, all of them in one region.
    fn host(&self, what: &'static str, address: u64, len: u64) -> Result<*mut u8, Fault> {
        let unmapped = Fault::Unmapped { what, address, len };
        let Some(region) = self.space.region(address) else {
            return Err(unmapped);
        };
        let offset = address - region.base;
        if len > region.len - offset {
            return Err(unmapped);
        }
        // SAFETY: the offset lies inside the region, whose host range is valid for `len` bytes.
        Ok(unsafe { region.host.add(offset as usize) })
    }

    fn aligned<T>(&self, what: &'static str, address: u64) -> Result<*mut T, Fault> {
        let host = self.host(what, address, size_of::<T>() as u64)?.cast::<T>();
        if host.is_aligned() {
            Ok(host)
        } else {
            Err(Fault::Misaligned {
                what,
                address,
                align: align_of::<T>() as u64,
            })
        }
    }

    /// The 32-bit word at `address`, for atomic use.
    ///
    /// # Errors
    /// Fails if the word is not mapped, or not aligned to its size.
    pub fn word(&self, what: &'static str, address: u64) -> Result<&'a AtomicU32, Fault> {
        // SAFETY: `aligned` checked size and alignment. The region outlives the packet that names
        // it. Other parties use atomic or volatile accesses on such words.
        Ok(unsafe { AtomicU32::from_ptr(self.aligned(what, address)?) })
    }

    /// The 64-bit word at `address`, for atomic use.
    ///
    /// # Errors
    /// Fails if the word is not mapped, or not aligned to its size.
    pub fn long(&self, what: &'static str, address: u64) -> Result<&'a AtomicU64, Fault> {
        // SAFETY: see `word`.
        Ok(unsafe { AtomicU64::from_ptr(self.aligned(what, address)?) })
    }

    /// The signed 64-bit word at `address`, for atomic use (signal values).
    ///
    /// # Errors
    /// Fails if the word is not mapped, or not aligned to its size.
    pub fn signed(&self, what: &'static str, address: u64) -> Result<&'a AtomicI64, Fault> {
        // SAFETY: see `word`.
        Ok(unsafe { AtomicI64::from_ptr(self.aligned(what, address)?) })
    }

    /// Copies `N` bytes out of device memory.
    ///
    /// # Errors
    /// Fails if not all of them are mapped in one region.
    pub fn read<const N: usize>(&self, what: &'static str, address: u64) -> Result<[u8; N], Fault> {
        let host = self.host(what, address, N as u64)?;
        let mut bytes = [0; N];
        // SAFETY: `host` is valid for N bytes, and `bytes` is not device memory.
        unsafe { ptr::copy_nonoverlapping(host, bytes.as_mut_ptr(), N) };
        Ok(bytes)
    }

    /// Copies `len` bytes inside device memory, region by region: two allocations may lie side by
    /// side, so a copy may cross regions.
    ///
    /// # Errors
    /// Fails if a byte of the source or the target is not mapped. The bytes before it are copied.
    pub fn copy(&self, target: u64, source: u64, len: u64) -> Result<(), Fault> {
        let (mut target, mut source, mut left) = (target, source, len);
        while left > 0 {
            let piece = left
                .min(self.contiguous("copy source", source, left)?)
                .min(self.contiguous("copy target", target, left)?);
            let from = self.host("copy source", source, piece)?;
            let to = self.host("copy target", target, piece)?;
            // SAFETY: both are valid for `piece` bytes; `copy` allows them to overlap.
            unsafe { ptr::copy(from, to, piece as usize) };
            target += piece;
            source += piece;
            left -= piece;
        }
        Ok(())
    }

    /// Fills `len` bytes at `target` by repeating `pattern`.
    ///
    /// # Errors
    /// Fails if a byte of the target is not mapped. The bytes before it are filled.
    pub fn fill(&self, target: u64, len: u64, pattern: [u8; 4]) -> Result<(), Fault> {
        let (mut target, mut left, mut pattern) = (target, len, pattern);
        while left > 0 {
            let piece = left.min(self.contiguous("fill target", target, left)?);
            let to = self.host("fill target", target, piece)?;
            let (whole, rest) = (piece as usize / 4, piece as usize % 4);
            // SAFETY: `to` is valid for `piece` bytes, and an array of bytes needs no alignment.
            unsafe {
                for place in 0..whole {
                    to.cast::<[u8; 4]>().add(place).write(pattern);
                }
                ptr::copy_nonoverlapping(pattern.as_ptr(), to.add(4 * whole), rest);
            }
            pattern.rotate_left(rest);
            target += piece;
            left -= piece;
        }
        Ok(())
    }

    /// The number of bytes from `address` on that are in one region. `wanted` only names the
    /// access.
    fn contiguous(&self, what: &'static str, address: u64, wanted: u64) -> Result<u64, Fault> {
        match self.space.region(address) {
            Some(region) => Ok(region.len - (address - region.base)),
            None => Err(Fault::Unmapped {
                what,
                address,
                len: wanted,
            }),
        }
    }
}
