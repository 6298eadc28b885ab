//! The caller's memory, as for a driver: the code copies arguments in and out and never references
//! them.

use std::mem::MaybeUninit;
use std::ptr;

use crate::abi::{Abi, Counted};
use crate::sys::Errno;

/// The argument of an ioctl: its address, and its size in the request.
///
/// This size limits the copy, not the size of the struct here. Newer headers grow structs at the
/// end. A request from older headers is shorter, and the rest reads as zeros. A request from newer
/// headers is longer, and the rest does not change. The kernel works this way too.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    address: *mut u8,
    size: usize,
}

impl Argument {
    /// # Safety
    /// `address` must be valid for reads and writes of `size` bytes while the ioctl runs.
    pub(crate) unsafe fn new(address: *mut u8, size: usize) -> Self {
        Self { address, size }
    }

    /// Runs `action` on a copy of the argument and copies the result back, also after an error,
    /// like the kernel.
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
        // SAFETY: `new`'s promise for the target; the source is as long as T.
        unsafe { ptr::copy_nonoverlapping((&raw const value).cast(), self.address, size) };
        result
    }
}

impl Argument {
    /// Runs `action` on a copy of the argument and of the structs after it, as many as the argument
    /// says, and copies them back.
    pub(crate) fn with_array<T: Counted, U: Abi>(
        self,
        action: impl FnOnce(&mut T, &mut [U]) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let room = self.size.saturating_sub(size_of::<T>()) / size_of::<U>();
        let behind = self.address as u64 + size_of::<T>() as u64;
        self.with(|value: &mut T| {
            if value.count() as usize > room {
                return Err(Errno(libc::EINVAL));
            }
            let mut items: Vec<U> = read_array(behind, value.count())?;
            action(value, &mut items)?;
            write_array(behind, &items)
        })
    }
}

/// Copies `count` structs in from `address`.
pub(crate) fn read_array<T: Abi>(address: u64, count: u32) -> Result<Vec<T>, Errno> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let source = pointer::<T>(address)?;
    let mut items = Vec::with_capacity(count as usize);
    // SAFETY: the caller of the ioctl promises `count` items there, as to a driver. A driver would
    // return EFAULT; this code would crash.
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
    // SAFETY: see `read_array`.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr(), pointer::<T>(address)?, items.len()) };
    Ok(())
}

/// Fills `size` bytes at `address` with the value's first bytes, then zeros.
pub(crate) fn write_sized<T: Abi>(address: u64, size: u32, value: &T) -> Result<(), Errno> {
    let target = pointer::<u8>(address)?;
    let known = (size as usize).min(size_of::<T>());
    // SAFETY: see `read_array`; `known` is at most the value's own size.
    unsafe {
        ptr::write_bytes(target, 0, size as usize);
        ptr::copy_nonoverlapping((&raw const *value).cast(), target, known);
    }
    Ok(())
}

/// Copies `bytes` out to `address` if `room` suffices. Does not change a shorter buffer.
pub(crate) fn write_bytes(address: u64, room: u64, bytes: &[u8]) {
    if address != 0 && room >= bytes.len() as u64 {
        // SAFETY: see `read_array`; the code has checked `room`.
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
