//! `open` and its variants.

use std::ffi::{c_char, c_int};
use std::os::fd::IntoRawFd;

use super::target::{Target, guard, to_c};
use crate::model::Model;
use crate::paths::DeviceNode;
use crate::sys::{self, Errno};

/// # Safety
/// As for C's `openat`. The function reads `mode` only if the flags say that the caller passed it.
unsafe fn open_path(dir: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    let creates = flags & (libc::O_CREAT | libc::O_TMPFILE) != 0;
    let mode = if creates { mode } else { 0 };
    // SAFETY: the caller's promise.
    let target = unsafe { Target::from_path(path) };
    match target.device() {
        Some(device) => to_c(guard(|| open_device(device, flags))),
        // SAFETY: the path is the caller's or our own C string.
        None => unsafe { sys::openat(dir, target.path(path), flags, mode) },
    }
}

fn open_device(device: DeviceNode, flags: c_int) -> Result<c_int, Errno> {
    let model = Model::get().ok_or(Errno(libc::ENODEV))?;
    model.note(2, format_args!("open {device:?}"));
    let fd = model.node(device)?.open(flags & libc::O_CLOEXEC != 0)?;
    Ok(fd.into_raw_fd())
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(dir, path, flags, mode) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(dir, path, flags, mode) }
}

/// The form of `open` without a mode under `_FORTIFY_SOURCE`.
///
/// # Safety
/// As for `open`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(libc::AT_FDCWD, path, flags, 0) }
}

/// # Safety
/// As for `open64`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(libc::AT_FDCWD, path, flags, 0) }
}

/// # Safety
/// As for `openat`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(dir, path, flags, 0) }
}

/// # Safety
/// As for `openat64`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_path(dir, path, flags, 0) }
}
