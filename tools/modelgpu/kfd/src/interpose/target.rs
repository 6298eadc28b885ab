//! The paths that programs name, and the boundary to C.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::log;
use crate::model::{Model, config};
use crate::paths::{self, DeviceNode, Place};
use crate::sys::{Errno, set_errno};
use crate::tree::PATH_BYTES;

/// A path for the kernel.
#[allow(
    clippy::large_enum_variant,
    reason = "lives on the stack for one call; a box would allocate in every file call"
)]
pub(super) enum Target {
    /// The program's path.
    Untouched,
    /// A path inside the generated tree; with the device, if it is a device node's name.
    Tree(TreePath, Option<DeviceNode>),
}

/// A C string on the stack.
pub(super) struct TreePath([u8; PATH_BYTES]);

impl TreePath {
    /// `root` followed by `path`; `None` if that is too long.
    pub(super) fn new(root: &[u8], path: &[u8]) -> Option<Self> {
        let len = root.len() + path.len();
        let mut bytes = [0; PATH_BYTES];
        // One byte remains for the NUL.
        bytes.get_mut(..len).filter(|_| len < PATH_BYTES)?;
        bytes[..root.len()].copy_from_slice(root);
        bytes[root.len()..len].copy_from_slice(path);
        Some(Self(bytes))
    }
}

impl Target {
    /// The target of `path`.
    ///
    /// # Safety
    /// `path` must be null or a C string.
    pub(super) unsafe fn from_path(path: *const c_char) -> Self {
        // SAFETY: the path is not null, so it is a C string with a readable first byte.
        if path.is_null() || unsafe { *path } != b'/' as c_char {
            return Self::Untouched;
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
        if !paths::is_ours(bytes) {
            return Self::Untouched;
        }
        guard(|| Ok(Self::from_driver_path(bytes))).unwrap_or(Self::Untouched)
    }

    /// A path that may be the driver's.
    pub(super) fn from_driver_path(path: &[u8]) -> Self {
        let Some(config) = config() else {
            return Self::Untouched;
        };
        let Some(place) = paths::place(path, config.gpus.len()) else {
            return Self::Untouched;
        };
        let device = match place {
            Place::Device(device) => Some(device),
            Place::Tree => None,
        };
        let Some(model) = Model::get() else {
            return Self::Untouched;
        };
        match TreePath::new(model.tree_root(), path) {
            Some(path) => Self::Tree(path, device),
            None => Self::Untouched,
        }
    }

    /// The path to pass on; `original` is the program's path.
    pub(super) fn path(&self, original: *const c_char) -> *const c_char {
        match self {
            Self::Untouched => original,
            Self::Tree(path, _) => path.0.as_ptr().cast(),
        }
    }

    pub(super) fn device(&self) -> Option<DeviceNode> {
        match self {
            Self::Tree(_, device) => *device,
            Self::Untouched => None,
        }
    }
}

/// The boundary to C, which a panic must not cross. The standard library prints the panic on
/// standard error, and the call fails with `EIO`.
pub(super) fn guard<T>(action: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(|_| {
        log::message("internal error; the call fails with EIO");
        Err(Errno(libc::EIO))
    })
}

/// Converts a result to that of a C function.
pub(super) fn to_c(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|Errno(errno)| {
        set_errno(errno);
        -1
    })
}
