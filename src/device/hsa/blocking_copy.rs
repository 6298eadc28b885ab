//! Copies device memory with the runtime's blocking calls.

use std::ffi::c_void;
use std::mem::size_of;

use crate::device::hsa::abi;
use crate::device::hsa::abi::PointerInfo;
use crate::device::hsa::runtime::{Api, check};
use crate::device::{DeviceError, DeviceRange};

impl Api {
    /// Copies `into.len()` bytes from the device address `address`. The wait has no limit.
    pub(super) fn wait_for_copy(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let len = into.len();
        self.check_allocated(address, len)?;
        // SAFETY: the source lies in one allocation of the runtime, the destination is `into`.
        unsafe { self.copy(into.as_mut_ptr().cast(), address as *const _, len) }
    }

    /// Copies `from` to the device address `address`. The wait has no limit.
    pub(super) fn wait_for_copy_to(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.check_allocated(address, from.len())?;
        // SAFETY: the destination lies in one allocation of the runtime, the source is `from`.
        unsafe { self.copy(address as *mut _, from.as_ptr().cast(), from.len()) }
    }

    /// Copies with `hsa_memory_copy`. The runtime waits within the call, so rocov cannot limit the wait, and
    /// a guest must not start a thread to leave behind. After a copy that did not end in time, rocov does not
    /// call this.
    ///
    /// # Safety
    /// Each pointer is a device address in one allocation, or host memory, of `len` bytes.
    unsafe fn copy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        len: usize,
    ) -> Result<(), DeviceError> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the caller promises it.
        check("hsa_memory_copy", unsafe {
            (self.memory_copy)(to, from, len)
        })
    }

    /// Checks that a device range lies in one allocation, and returns its owner's handle. `hsa_memory_copy`
    /// takes an unknown pointer for a host pointer and passes it to memcpy, which crashes on device memory.
    pub(super) fn check_allocated(&self, address: u64, len: usize) -> Result<u64, DeviceError> {
        let range = DeviceRange {
            start: address,
            len: len as u64,
        };
        let (found, owner) = self.allocation(address)?;
        if len == 0 || found.contains(&range) {
            return Ok(owner);
        }
        Err(DeviceError::NotAllocated { range, found })
    }

    /// The runtime's allocation at `address`, and its owner's handle. Empty if there is none.
    fn allocation(&self, address: u64) -> Result<(DeviceRange, u64), DeviceError> {
        let mut info = PointerInfo {
            size: size_of::<PointerInfo>() as u32,
            kind: 0,
            agent_base: std::ptr::null_mut(),
            host_base: std::ptr::null_mut(),
            len: 0,
            user_data: std::ptr::null_mut(),
            owner: 0,
        };
        // SAFETY: the runtime fills at most `info.size` bytes. The call requests no list of agents.
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
        let range = match info.kind {
            abi::POINTER_TYPE_HSA => DeviceRange {
                start: info.agent_base as u64,
                len: info.len as u64,
            },
            _ => DeviceRange {
                start: address,
                len: 0,
            },
        };
        Ok((range, info.owner))
    }
}
