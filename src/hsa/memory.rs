//! Reading device memory through the runtime, and host memory that may be gone.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::unix::fs::FileExt;

use super::abi::{self, PointerInfo};
use super::load::{Api, check};
use crate::device::{DeviceError, DeviceRange};

impl Api {
    /// Copies `into.len()` bytes from the device address `address`.
    ///
    /// `hsa_memory_copy` takes a pointer that it does not know for a host pointer and hands it to
    /// memcpy, which crashes on device memory: so the allocation is asked for first.
    pub(super) fn copy_from_device(
        &self,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        if into.is_empty() {
            return Ok(());
        }
        let range = DeviceRange {
            start: address,
            len: into.len() as u64,
        };
        let found = self.allocation(address)?;
        if !found.contains(&range) {
            return Err(DeviceError::NotAllocated { range, found });
        }
        // SAFETY: the source lies in one allocation of the runtime, the destination is `into`.
        let status = unsafe {
            (self.memory_copy)(into.as_mut_ptr().cast(), address as *const _, into.len())
        };
        check("hsa_memory_copy", status)
    }

    /// The runtime's allocation at `address`, empty where it has none.
    fn allocation(&self, address: u64) -> Result<DeviceRange, DeviceError> {
        let mut info = PointerInfo {
            size: size_of::<PointerInfo>() as u32,
            kind: 0,
            agent_base: std::ptr::null_mut(),
            host_base: std::ptr::null_mut(),
            len: 0,
            user_data: std::ptr::null_mut(),
            owner: 0,
        };
        // SAFETY: the runtime fills at most `info.size` bytes; no list of agents is asked for.
        let status = unsafe {
            (self.pointer_info)(
                address as *const _,
                &raw mut info,
                None,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        check("hsa_amd_pointer_info", status)?;
        if info.kind != abi::POINTER_TYPE_HSA {
            return Ok(DeviceRange {
                start: address,
                len: 0,
            });
        }
        Ok(DeviceRange {
            start: info.agent_base as u64,
            len: info.len as u64,
        })
    }
}

/// Reads this process's memory without trusting that it is mapped.
///
/// A program may free the buffer of a code object once it is loaded (the HSA interface lets it),
/// so a plain read could crash; the kernel's own view of the process answers with EIO instead.
pub(super) fn read_own_memory(range: DeviceRange) -> io::Result<Vec<u8>> {
    let len = usize::try_from(range.len).map_err(io::Error::other)?;
    let mut image = Vec::new();
    image.try_reserve_exact(len).map_err(io::Error::other)?;
    image.resize(len, 0);
    File::open("/proc/self/mem")?.read_exact_at(&mut image, range.start)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_an_error() {
        let data = *b"a code object, say";
        let range = DeviceRange {
            start: data.as_ptr() as u64,
            len: data.len() as u64,
        };
        assert_eq!(read_own_memory(range).unwrap(), data);
        // The page at 0 is never mapped.
        assert!(read_own_memory(DeviceRange { start: 8, len: 4 }).is_err());
    }
}
