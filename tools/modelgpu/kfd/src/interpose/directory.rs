//! Functions that take a path and do more than one system call, or name a file without opening
//! it: the path is exchanged and the rest is the C library's.

use std::ffi::{c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Target;
use crate::sys::set_errno;

/// A function of the next library in search order, found at its first use.
struct Next {
    name: &'static std::ffi::CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static std::ffi::CStr) -> Next {
        Next {
            name,
            found: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The function's address; null with `ENOSYS` if the C library has none.
    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            set_errno(libc::ENOSYS);
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Defines functions that exchange their first argument, a path, and call the real function.
macro_rules! with_path {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, or $failure:expr;)*) => {$(
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, $($argument: $type),*) -> $result {
            static NEXT: Next = Next::new({
                const NAME: &str = concat!(stringify!($name), "\0");
                match std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                }
            });
            let real = NEXT.get();
            if real.is_null() {
                return $failure;
            }
            type Real = unsafe extern "C" fn(*const c_char, $($type),*) -> $result;
            // SAFETY: the C library's function of this name has this type.
            let real = unsafe { mem::transmute::<*mut c_void, Real>(real) };
            // SAFETY: the caller's promise.
            let target = unsafe { Target::of(path) };
            // SAFETY: as the caller's, with a path that is a C string too.
            unsafe { real(target.path(path), $($argument),*) }
        }
    )*};
}

type Filter = *const c_void;

with_path! {
    fopen(mode: *const c_char) -> *mut libc::FILE, or ptr::null_mut();
    fopen64(mode: *const c_char) -> *mut libc::FILE, or ptr::null_mut();
    opendir() -> *mut libc::DIR, or ptr::null_mut();
    scandir(list: *mut c_void, filter: Filter, compare: Filter) -> c_int, or -1;
    scandir64(list: *mut c_void, filter: Filter, compare: Filter) -> c_int, or -1;
    realpath(resolved: *mut c_char) -> *mut c_char, or ptr::null_mut();
    __realpath_chk(resolved: *mut c_char, room: usize) -> *mut c_char, or ptr::null_mut();
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::of(path) };
    let (dir, path) = (libc::AT_FDCWD, target.path(path));
    // SAFETY: as the caller's.
    unsafe { libc::syscall(libc::SYS_readlinkat, dir, path, buffer, size) as isize }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { faccessat(libc::AT_FDCWD, path, mode, 0) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(
    dir: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::of(path) };
    let path = target.path(path);
    if flags == 0 {
        // SAFETY: as the caller's.
        return unsafe { libc::syscall(libc::SYS_faccessat, dir, path, mode) as c_int };
    }
    // SAFETY: as the caller's. The call with flags is younger (Linux 5.8) than the one without.
    unsafe { libc::syscall(libc::SYS_faccessat2, dir, path, mode, flags) as c_int }
}
