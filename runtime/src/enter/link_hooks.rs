//! The functions of hipRTC and HIP that add bitcode to a link.
//!
//! Instrumented units have names in common, and LLVM's linker rejects the second one
//! ([`rocov::format::bitcode`]). So each unit gets names of its own before the linker sees it. The calls pass through
//! these hooks as described in [`super::interpose`].
#![expect(unsafe_code, reason = "defines and calls functions of HIP")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rocov::format::bitcode;
use rocov::store::read_input;

use super::exchange::MAX_FILE;
use super::next_symbol;
use crate::guest::boundary;

/// `hiprtcLinkAddData` and `hipLinkAddData`: the link, the kind of input, its bytes and their number, a name, the number
/// of options, their kinds and their values.
type AddDataFn = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut c_void,
    usize,
    *const c_char,
    c_uint,
    *mut c_int,
    *mut *mut c_void,
) -> c_int;

/// `hiprtcLinkAddFile` and `hipLinkAddFile`.
type AddFileFn = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    c_uint,
    *mut c_int,
    *mut *mut c_void,
) -> c_int;

/// `HIPRTC_ERROR_INTERNAL_ERROR` and `hipErrorNotSupported`, for a program that calls HIP without having it.
const NO_HIPRTC: c_int = 11;
const NO_HIP: c_int = 801;

/// A copy of bitcode in which each instrumented unit has names of its own; `None` if there is none in it.
fn distinguished(bytes: &[u8]) -> Option<Vec<u8>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut found = None;
    boundary::guest("the names of linked bitcode", || {
        let mut copy = bytes.to_vec();
        let next = || NEXT.fetch_add(1, Ordering::Relaxed);
        found = (bitcode::distinguish(&mut copy, next) > 0).then_some(copy);
    });
    found
}

/// The contents of a file with names of its own, as of [`distinguished`].
///
/// # Safety
/// `path` is null or a C string.
unsafe fn distinguished_file(path: *const c_char) -> Option<Vec<u8>> {
    if path.is_null() {
        return None;
    }
    // SAFETY: `path` is not null, so it is a C string that ends with a 0 byte (the caller's promise).
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    // A pipe can be read once only, and that is HIP's part.
    distinguished(&read_input(Path::new(path), MAX_FILE).ok()?)
}

/// Returns the function `name` of HIP.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn meant<T: Copy>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*const c_void>()) }
    // SAFETY: `T` is a pointer to a function (the caller's promise), so it has the 8 bytes of `found`.
    next_symbol::find_meant(name).map(|found| unsafe { std::mem::transmute_copy(&found) })
}

macro_rules! hooks {
    ($data:ident, $data_name:literal, $file:ident, $file_name:literal, $missing:ident) => {
        /// Adds bytes to a link.
        ///
        /// # Safety
        /// As for HIP's function of this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $data(
            link: *mut c_void,
            kind: c_int,
            bytes: *mut c_void,
            size: usize,
            name: *const c_char,
            count: c_uint,
            options: *mut c_int,
            values: *mut *mut c_void,
        ) -> c_int {
            // SAFETY: hiprtc.h and hip_runtime_api.h declare the function with this type.
            let Some(add) = (unsafe { meant::<AddDataFn>($data_name) }) else {
                return $missing;
            };
            let copy = if bytes.is_null() {
                None
            } else {
                // SAFETY: `bytes` is not null, and HIP's contract is that the caller has `size` readable bytes there,
                // which nobody changes during this call.
                distinguished(unsafe { std::slice::from_raw_parts(bytes.cast(), size) })
            };
            // HIP copies the bytes.
            let bytes = copy
                .as_ref()
                .map_or(bytes, |copy| copy.as_ptr().cast_mut().cast());
            // SAFETY: the caller's arguments. `bytes` are the caller's `size` bytes, or a copy of exactly `size` bytes
            // that lives until the call returns.
            unsafe { add(link, kind, bytes, size, name, count, options, values) }
        }

        /// Adds a file to a link.
        ///
        /// # Safety
        /// As for HIP's function of this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $file(
            link: *mut c_void,
            kind: c_int,
            path: *const c_char,
            count: c_uint,
            options: *mut c_int,
            values: *mut *mut c_void,
        ) -> c_int {
            // SAFETY: hiprtc.h and hip_runtime_api.h declare the functions with these types, and the path is a C string.
            let (add, add_file, copy) = unsafe {
                (
                    meant::<AddDataFn>($data_name),
                    meant::<AddFileFn>($file_name),
                    distinguished_file(path),
                )
            };
            match (copy, add, add_file) {
                (Some(mut copy), Some(add), _) => {
                    let bytes = copy.as_mut_ptr().cast();
                    // SAFETY: the caller's arguments. `bytes` has `copy.len()` bytes, and `copy` lives until the call
                    // returns.
                    unsafe { add(link, kind, bytes, copy.len(), path, count, options, values) }
                }
                // SAFETY: the caller's arguments, passed on.
                (_, _, Some(add_file)) => unsafe {
                    add_file(link, kind, path, count, options, values)
                },
                _ => $missing,
            }
        }
    };
}

hooks!(
    hiprtcLinkAddData,
    c"hiprtcLinkAddData",
    hiprtcLinkAddFile,
    c"hiprtcLinkAddFile",
    NO_HIPRTC
);
hooks!(
    hipLinkAddData,
    c"hipLinkAddData",
    hipLinkAddFile,
    c"hipLinkAddFile",
    NO_HIP
);
