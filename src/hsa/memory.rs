//! Reading device memory through the runtime.

use std::mem::size_of;

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
