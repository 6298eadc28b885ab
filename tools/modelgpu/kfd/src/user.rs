//! The caller's memory, as a driver sees it: arguments are copied in and out, never referenced.

use std::mem::MaybeUninit;
use std::ptr;

use crate::abi::Abi;
use crate::sys::Errno;

/// The argument of an ioctl: its address, and its size as the request states it.
///
/// The size decides how much is copied, not our own struct's: newer headers grow structs at the
/// end, so a request from older headers is shorter (the rest reads as zeros) and one from newer
/// headers is longer (the rest stays untouched). The kernel does the same.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    address: *mut u8,
    size: usize,
}

impl Argument {
    /// # Safety
    /// `address` must be valid for reads and writes of `size` bytes while the ioctl runs.
    pub(crate) unsafe fn new(address: *mut u8, size: usize) -> Self {
        Argument { address, size }
    }

    /// Runs `action` on a copy of the argument and copies the result back. As in the kernel, the
    /// copy goes back after an error too.
    pub(crate) fn with<T: Abi>(
        self,
        action: impl FnOnce(&mut T) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if self.address.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        let size = self.size.min(size_of::<T>());
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: `new`'s promise for the source; the target is as long as T.
        let mut value = unsafe {
            ptr::copy_nonoverlapping(self.address, value.as_mut_ptr().cast(), size);
            // `Abi` types are valid for every bit pattern.
            value.assume_init()
        };
        let result = action(&mut value);
        // SAFETY: as above, the other way.
        unsafe { ptr::copy_nonoverlapping((&raw const value).cast(), self.address, size) };
        result
    }
}

/// Copies `count` structs in from `address`.
pub(crate) fn read_array<T: Abi>(address: u64, count: u32) -> Result<Vec<T>, Errno> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let source = pointer::<T>(address)?;
    let mut items = Vec::with_capacity(count as usize);
    // SAFETY: the caller of the ioctl says that `count` items lie there, as it does to a driver;
    // a driver would return EFAULT where this crashes.
    unsafe {
        ptr::copy_nonoverlapping(source, items.as_mut_ptr(), count as usize);
        items.set_len(count as usize);
    }
    Ok(items)
}

/// Copies structs out to `address`.
pub(crate) fn write_array<T: Abi>(address: u64, items: &[T]) -> Result<(), Errno> {
    if items.is_empty() {
        return Ok(());
    }
    // SAFETY: as in `read_array`.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr(), pointer::<T>(address)?, items.len()) };
    Ok(())
}

/// Fills `size` bytes at `address` with the value's first bytes, then zeros.
pub(crate) fn write_sized<T: Abi>(address: u64, size: u32, value: &T) -> Result<(), Errno> {
    let target = pointer::<u8>(address)?;
    let known = (size as usize).min(size_of::<T>());
    // SAFETY: as in `read_array`; `known` is at most the value's own size.
    unsafe {
        ptr::write_bytes(target, 0, size as usize);
        ptr::copy_nonoverlapping((&raw const *value).cast(), target, known);
    }
    Ok(())
}

/// Copies `bytes` out to `address` if `room` suffices; a shorter buffer is left alone.
pub(crate) fn write_bytes(address: u64, room: u64, bytes: &[u8]) {
    if address != 0 && room >= bytes.len() as u64 {
        // SAFETY: as in `read_array`, and `room` was checked.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }
}

fn pointer<T>(address: u64) -> Result<*mut T, Errno> {
    let pointer = address as *mut T;
    match pointer.is_null() || !pointer.is_aligned() {
        true => Err(Errno(libc::EFAULT)),
        false => Ok(pointer),
    }
}
