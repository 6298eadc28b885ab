//! The next definitions of the functions that librocov hooks, for which the program's calls are meant.
#![expect(unsafe_code, reason = "calls dlsym")]

use std::ffi::{CStr, c_void};

use libloading::os::unix::{Library, RTLD_LAZY};
use rocov::device::hsa::HSA_LIBRARY;

use crate::elect;
use crate::guest::elf_objects;

/// Returns the next definition of `name` in the search order behind this library.
pub(super) fn find_behind(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is NUL terminated.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Returns the function that a call of `name` is meant for: the next in the search order behind us, or
/// one in a library that was loaded with `RTLD_LOCAL`, as below a Python extension.
pub(super) fn find_meant(name: &CStr) -> Option<*mut c_void> {
    find_behind(name).or_else(|| {
        let objects = elf_objects::all().into_iter();
        objects
            .filter_map(|object| object.defines(name))
            .find(|address| !elect::is_in_a_copy(*address))
    })
}

/// Returns the function `name` behind ours: the next in the search order, which keeps another tool's
/// hook. A runtime that was loaded with `RTLD_LOCAL` (Python's ctypes) is in no search order; then
/// returns the runtime's own.
///
/// # Safety
/// `T` is the type of a pointer to that function.
pub(super) unsafe fn next<T: Copy>(name: &CStr) -> Option<T> {
    let found = find_behind(name).or_else(|| find_in_hsa(name))?;
    // SAFETY: a function pointer of the type that the caller promises.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
}

fn find_in_hsa(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: NOLOAD runs no initialiser.
    let library =
        unsafe { Library::open(Some(HSA_LIBRARY), libc::RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: reads an address, of whatever kind.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }
        .ok()
        .map(|found| *found);
    // The reference stays: the function must outlive us.
    std::mem::forget(library);
    symbol
}
