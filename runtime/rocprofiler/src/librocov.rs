//! The librocov of the process, or the one next to this library.

use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The functions of `rocov.h` that this tool calls. It ignores their results, because librocov prints
/// every error.
#[derive(Clone, Copy)]
pub(crate) struct Librocov {
    code_loaded: unsafe extern "C" fn() -> c_int,
    code_unloading: unsafe extern "C" fn() -> c_int,
}

impl Librocov {
    fn in_library(library: &Library) -> Option<Self> {
        // SAFETY: rocov.h declares the functions with these types.
        unsafe {
            Some(Self {
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

/// Returns librocov. Looks for it once.
///
/// # Errors
/// Fails if there is none; the text names the file that was tried.
pub(crate) fn find() -> Result<Librocov, String> {
    static FOUND: OnceLock<Result<Librocov, String>> = OnceLock::new();
    FOUND
        .get_or_init(|| Librocov::in_library(&Library::this()).map_or_else(open, Ok))
        .clone()
}

fn open() -> Result<Librocov, String> {
    let path = directory().join("librocov.so");
    // RTLD_LOCAL: otherwise calls that the runtimes have not bound yet would go to its hooks, and others
    // past them. SAFETY: librocov's constructor only registers handlers.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| error.to_string())?;
    let found = Librocov::in_library(&library);
    // The library stays, because this tool calls its functions to the end.
    std::mem::forget(library);
    found.ok_or_else(|| {
        format!(
            "{} is a different version: install both from one release",
            path.display()
        )
    })
}

/// Returns the directory of this library.
fn directory() -> PathBuf {
    // SAFETY: an all-zero Dl_info is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address lies in this library.
    let found = unsafe { libc::dladdr(directory as *const libc::c_void, &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return PathBuf::new();
    }
    // SAFETY: a file name that is not null is NUL terminated.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    file.parent().unwrap_or(Path::new("")).to_owned()
}
