//! Names as people write them, by the demangler that the process has.
//!
//! One of our own would be a fifth of librocov. The runtimes of HIP and HSA are C++, so where there
//! are kernels there is libstdc++.
//!
//! It takes its memory from the stack, which is that of a thread of the program's, and recurses: long
//! names are left to those who read the registry.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::OnceLock;

use crate::objects;

/// `__cxa_demangle` of the Itanium C++ ABI: name, buffer and its length or nulls, status. Its
/// result is `malloc`ed, or null where the name is not one.
type CxaDemangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// The longest name that is demangled here, in bytes. Of these, libstdc++ 12 needs 24 KiB of stack at
/// most, which pointers to pointers and expressions do (350 bytes for each of the name): it was searched
/// for names that need more. A program's smallest threads have 64 KiB.
const LONGEST: usize = 64;

/// `scale(float*, int, float)` for `_Z5scalePfif`; `None` for what is not mangled or too long, or where
/// the process has no libstdc++.
pub(crate) fn demangle(name: &str) -> Option<String> {
    // Types are mangled too: of a kernel `extern "C" i` the demangler would make `int`.
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return None;
    }
    let name = CString::new(name).ok()?;
    let demangle = demangler()?;
    // SAFETY: a name that ends with a NUL; the demangler is to allocate, and asked for no status.
    let text = unsafe {
        demangle(
            name.as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if text.is_null() {
        return None;
    }
    // SAFETY: text that is not null ends with a NUL.
    let demangled = unsafe { CStr::from_ptr(text) }.to_str().map(str::to_owned);
    // SAFETY: it is ours, and from malloc.
    unsafe { libc::free(text.cast()) };
    demangled.ok()
}

/// libstdc++'s demangler. Others would do, but libstdc++ alone is known to stay: it has unique
/// symbols (`STB_GNU_UNIQUE`), and glibc never unloads an object that has.
fn demangler() -> Option<CxaDemangle> {
    static FOUND: OnceLock<CxaDemangle> = OnceLock::new();
    if FOUND.get().is_none() {
        let is_libstdcxx = |name: &OsStr| name.as_bytes().starts_with(b"libstdc++.so");
        let address = objects::all()
            .into_iter()
            .filter(|object| object.path().file_name().is_some_and(is_libstdcxx))
            .find_map(|object| object.defines(c"__cxa_demangle"))?;
        // SAFETY: the C++ ABI declares a function of this name so.
        let function =
            unsafe { std::mem::transmute::<*mut std::ffi::c_void, CxaDemangle>(address) };
        FOUND.get_or_init(|| function);
    }
    FOUND.get().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libstdcxx_demangles_once_it_is_there() {
        assert_eq!(demangle("_Z5scalePfif"), None, "in a process without C++");
        // SAFETY: libstdc++ may be initialised at any time.
        let libstdcxx = unsafe { libloading::Library::new("libstdc++.so.6") };
        drop(libstdcxx.expect("libstdc++"));
        for (name, demangled) in [
            ("_Z5scalePfif", Some("scale(float*, int, float)")),
            (
                "_ZN12_GLOBAL__N_14foldIiEEvPT_",
                Some("void (anonymous namespace)::fold<int>(int*)"),
            ),
            ("scale", None),
            ("i", None),
            ("_Z", None),
            ("_Z5scal", None),
            ("_Z5scalePfif\0", None),
            ("", None),
        ] {
            assert_eq!(demangle(name).as_deref(), demangled, "{name:?}");
        }
        let deep = |stars| format!("_Z1f{}i", "P".repeat(stars));
        let longest = format!("f(int{})", "*".repeat(59));
        assert_eq!(demangle(&deep(59)), Some(longest));
        assert_eq!(demangle(&deep(60)), None);
    }
}
