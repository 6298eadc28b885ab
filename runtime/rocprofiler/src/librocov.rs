//! librocov: the one that the process has, or the one beside this library.

use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// What is called of `rocov.h`. The answers are for programs: what goes wrong is said by librocov.
#[derive(Clone, Copy)]
pub(crate) struct Librocov {
    code_loaded: unsafe extern "C" fn() -> c_int,
    code_unloading: unsafe extern "C" fn() -> c_int,
}

impl Librocov {
    fn of(library: &Library) -> Option<Librocov> {
        // SAFETY: rocov.h declares the functions so.
        unsafe {
            Some(Librocov {
                code_loaded: *library.get(b"rocov_code_loaded\0").ok()?,
                code_unloading: *library.get(b"rocov_code_unloading\0").ok()?,
            })
        }
    }

    pub(crate) fn code_loaded(&self) {
        // SAFETY: may be called from any thread.
        unsafe { (self.code_loaded)() };
    }

    pub(crate) fn code_unloading(&self) {
        // SAFETY: may be called from any thread.
        unsafe { (self.code_unloading)() };
    }
}

/// librocov, looked for once.
///
/// # Errors
/// Fails where there is none; the text says where it was looked for.
pub(crate) fn find() -> Result<Librocov, String> {
    static FOUND: OnceLock<Result<Librocov, String>> = OnceLock::new();
    FOUND
        .get_or_init(|| Librocov::of(&Library::this()).map_or_else(open, Ok))
        .clone()
}

fn open() -> Result<Librocov, String> {
    let path = directory().join("librocov.so");
    // In a scope of its own: calls that the runtimes have not bound yet would go to its hooks, and others
    // past them. SAFETY: librocov's constructor registers handlers, no more.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| error.to_string())?;
    let found = Librocov::of(&library);
    // Stays: its functions are called to the end.
    std::mem::forget(library);
    found.ok_or_else(|| format!("{} is of another version", path.display()))
}

/// Where this library lies.
fn directory() -> PathBuf {
    // SAFETY: an all-zero Dl_info is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of this library.
    let found = unsafe { libc::dladdr(directory as *const libc::c_void, &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return PathBuf::new();
    }
    // SAFETY: a file name that is not null is NUL terminated.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    file.parent().unwrap_or(Path::new("")).to_owned()
}
