//! The object that gets the program's calls of HSA.
#![expect(unsafe_code, reason = "calls dlsym")]

use std::ffi::{CStr, c_void};

use libloading::os::unix::Library;

use super::copies::is_in_a_copy;
use crate::guest::elf_objects::device_code;

/// A function of HSA. The object with its first definition gets the program's calls.
const FREEZE: &CStr = c"hsa_executable_freeze";

/// The object that gets the program's calls of HSA: the first in the search order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interposer {
    /// Our hooks, or another copy's.
    Rocov,
    /// HSA itself, or another tool's hooks.
    Other,
    /// None that we see. Our hooks are not exported, or HSA's callers do not look where they are.
    Unknown,
}

impl Interposer {
    /// Returns the present one. A runtime that is loaded later stands behind us.
    pub(crate) fn now() -> Self {
        let seen = |name: &CStr| {
            // SAFETY: the name is NUL terminated.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        };
        let found = seen(FREEZE);
        if found.is_null() {
            Self::Unknown
        } else if !is_in_a_copy(found) {
            Self::Other
        } else if is_global(FREEZE) || !seen(c"hsa_iterate_agents").is_null() {
            Self::Rocov
        } else {
            // ROCr was loaded with `RTLD_LOCAL` and has loaded us as a tool: we see ourselves.
            Self::Unknown
        }
    }
}

/// Returns whether LLVM's offload runtime (libomptarget) was linked into the process. It looks HSA's functions
/// up in the library that it has opened, so its calls pass all interposed functions. Only the tool table
/// sees them.
pub(crate) fn has_offload_runtime() -> bool {
    // SAFETY: the name is NUL terminated. The address is not used.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, device_code::OPENMP.register.as_ptr()) }.is_null()
}

/// Returns whether `name` is defined in the global scope, where every object looks first.
fn is_global(name: &CStr) -> bool {
    // SAFETY: the address is not used.
    unsafe { Library::this().get::<*const c_void>(name.to_bytes_with_nul()) }.is_ok()
}
