//! `stat` in all its forms.
//!
//! A node's file is an anonymous file, and its name in the tree is an empty file. Both must look
//! like the character device: libdrm recognises render nodes by the numbers from `fstat`. `stat`
//! and `stat64` have one layout on x86-64.

use std::ffi::{c_char, c_int, c_uint};

use super::target::Target;
use crate::abi::drm;
use crate::model::Model;
use crate::paths::{DeviceNode, FIRST_RENDER_MINOR};
use crate::sys::{self, FileId};

/// Major number of `/dev/kfd`, which the kernel assigns dynamically.
const KFD_MAJOR: u32 = 511;

/// Character device numbers of a node.
fn numbers(device: DeviceNode) -> (u32, u32) {
    match device {
        DeviceNode::Kfd => (KFD_MAJOR, 0),
        DeviceNode::Render(gpu) => (drm::MAJOR, FIRST_RENDER_MINOR + gpu as u32),
    }
}

/// Changes a file's status to that of a device node.
fn disguise(status: &mut libc::stat, device: DeviceNode) {
    let (major, minor) = numbers(device);
    status.st_mode = libc::S_IFCHR | 0o666;
    status.st_rdev = libc::makedev(major, minor);
    status.st_size = 0;
}

/// # Safety
/// As for C's `fstatat`.
unsafe fn stat_at(dir: c_int, path: *const c_char, status: *mut libc::stat, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::from_path(path) };
    // SAFETY: the path is the caller's or our own C string.
    let result = unsafe { sys::fstatat(dir, target.path(path), status, flags) };
    if result != 0 {
        return result;
    }
    // SAFETY: the kernel has just filled in the status.
    let status = unsafe { &mut *status };
    if let Some(device) = target.device() {
        disguise(status, device);
    } else if flags & libc::AT_EMPTY_PATH != 0 {
        disguise_open(status);
    }
    0
}

/// Disguises the status of an open file if it is a node's.
fn disguise_open(status: &mut libc::stat) {
    let id = FileId {
        device: status.st_dev,
        inode: status.st_ino,
    };
    if let Some(device) = Model::existing().and_then(|model| model.device_with(id)) {
        disguise(status, device);
    }
}

/// # Safety
/// As for C's `fstat`.
unsafe fn stat_fd(fd: c_int, status: *mut libc::stat) -> c_int {
    // SAFETY: the empty path with this flag names the descriptor itself.
    let result = unsafe { sys::fstatat(fd, c"".as_ptr(), status, libc::AT_EMPTY_PATH) };
    if result == 0 {
        // SAFETY: the kernel has just filled in the status.
        disguise_open(unsafe { &mut *status });
    }
    result
}

/// Defines the forms that take a path, with their plain and versioned names. Programs built against
/// a glibc older than 2.33 call the versioned ones.
macro_rules! stat_forms {
    ($($name:ident, $versioned:ident, $flags:expr;)*) => {$(
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, status: *mut libc::stat) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { stat_at(libc::AT_FDCWD, path, status, $flags) }
        }

        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $versioned(
            _version: c_int,
            path: *const c_char,
            status: *mut libc::stat,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { stat_at(libc::AT_FDCWD, path, status, $flags) }
        }
    )*};
}

stat_forms! {
    stat, __xstat, 0;
    stat64, __xstat64, 0;
    lstat, __lxstat, libc::AT_SYMLINK_NOFOLLOW;
    lstat64, __lxstat64, libc::AT_SYMLINK_NOFOLLOW;
}

/// Defines the forms that take a descriptor.
macro_rules! fstat_forms {
    ($($name:ident, $versioned:ident, $at:ident, $versioned_at:ident;)*) => {$(
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: c_int, status: *mut libc::stat) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { stat_fd(fd, status) }
        }

        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $versioned(
            _version: c_int,
            fd: c_int,
            status: *mut libc::stat,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { stat_fd(fd, status) }
        }

        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $at(
            dir: c_int,
            path: *const c_char,
            status: *mut libc::stat,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { stat_at(dir, path, status, flags) }
        }

        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $versioned_at(
            _version: c_int,
            dir: c_int,
            path: *const c_char,
            status: *mut libc::stat,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { stat_at(dir, path, status, flags) }
        }
    )*};
}

fstat_forms! {
    fstat, __fxstat, fstatat, __fxstatat;
    fstat64, __fxstat64, fstatat64, __fxstatat64;
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    status: *mut libc::statx,
) -> c_int {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::from_path(path) };
    let real = target.path(path);
    // SAFETY: the path is the caller's or our own C string.
    let result = unsafe { libc::syscall(libc::SYS_statx, dir, real, flags, mask, status) };
    if result != 0 {
        return result as c_int;
    }
    // SAFETY: after a success the path, if any, was readable.
    let names_fd = flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path } == 0);
    let open = names_fd
        .then(|| Model::existing()?.device_of(dir))
        .flatten();
    if let Some(device) = target.device().or(open) {
        let (major, minor) = numbers(device);
        // SAFETY: the kernel has just filled in the status.
        let status = unsafe { &mut *status };
        status.stx_mode = (libc::S_IFCHR | 0o666) as u16;
        (status.stx_rdev_major, status.stx_rdev_minor) = (major, minor);
        status.stx_size = 0;
    }
    0
}
