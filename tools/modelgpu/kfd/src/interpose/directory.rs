//! Functions that name a file without an open, or make more than one system call. These exchange
//! the path and leave the rest to the C library.

use std::ffi::{c_char, c_int, c_void};
use std::mem;
use std::ptr;

use super::next::Next;
use super::target::Target;

/// Looks up all functions. The library does this when it is loaded, because a lookup takes the
/// dynamic linker's lock. In a child after fork, another thread may hold that lock forever.
pub(super) fn resolve() {
    for next in NEXT {
        next.get();
    }
}

/// Defines functions that exchange a path and call the real function. Arguments before the path
/// stand in brackets.
macro_rules! with_path {
    ($($name:ident $([$before:ident: $before_type:ty])? (path $(, $after:ident: $after_type:ty)*)
        -> $result:ty, or $failure:expr;)*) => {
        $(
            /// # Safety
            /// As in C.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                $($before: $before_type,)? path: *const c_char $(, $after: $after_type)*
            ) -> $result {
                let real = real::$name.get();
                if real.is_null() {
                    return $failure;
                }
                type Real = unsafe extern "C" fn(
                    $($before_type,)? *const c_char $(, $after_type)*
                ) -> $result;
                // SAFETY: the C library's function of this name has this type.
                let real = unsafe { mem::transmute::<*mut c_void, Real>(real) };
                // SAFETY: the caller's promise.
                let target = unsafe { Target::from_path(path) };
                // SAFETY: the caller's promise, with another C string as the path.
                unsafe { real($($before,)? target.path(path) $(, $after)*) }
            }
        )*

        /// The real functions, under their own names.
        #[allow(non_upper_case_globals, reason = "named after what they find")]
        mod real {
            use crate::interpose::next::Next;

            $(pub(super) static $name: Next = Next::new(
                match std::ffi::CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
            );)*
        }

        static NEXT: &[&Next] = &[$(&real::$name),*];
    };
}

type Filter = *const c_void;

with_path! {
    fopen(path, mode: *const c_char) -> *mut libc::FILE, or ptr::null_mut();
    fopen64(path, mode: *const c_char) -> *mut libc::FILE, or ptr::null_mut();
    opendir(path) -> *mut libc::DIR, or ptr::null_mut();
    scandir(path, list: *mut c_void, filter: Filter, compare: Filter) -> c_int, or -1;
    scandir64(path, list: *mut c_void, filter: Filter, compare: Filter) -> c_int, or -1;
    realpath(path, resolved: *mut c_char) -> *mut c_char, or ptr::null_mut();
    __realpath_chk(path, resolved: *mut c_char, room: usize) -> *mut c_char, or ptr::null_mut();
    readlink(path, buffer: *mut c_char, size: usize) -> isize, or -1;
    access(path, mode: c_int) -> c_int, or -1;
    faccessat[dir: c_int](path, mode: c_int, flags: c_int) -> c_int, or -1;
}
