//! Gives `CUDA_ROOT` to the processes of Python only.
//!
//! JAX's compiler looks for ptxas below `CUDA_ROOT`, and so finds rocov's stand-in for it. The directory has no other part of
//! a toolkit. tileiras, the compiler of cuTile, looks for libNVVM below `CUDA_ROOT`, too, and fails without it; build scripts
//! look for headers there.

use std::env;
use std::ffi::OsStr;
use std::fs;

use rocov::settings::variables::CUDA_TOOLKIT;

const CUDA_ROOT: &str = "CUDA_ROOT";

/// Sets `CUDA_ROOT` in a process of Python, and removes it from one that Python has started.
#[ctor::ctor(unsafe)]
fn at_load() {
    let Some(toolkit) = env::var_os(CUDA_TOOLKIT.name).filter(|toolkit| !toolkit.is_empty()) else {
        return;
    };
    let program = fs::read_link("/proc/self/exe").unwrap_or_default();
    let is_python = program.file_name().is_some_and(is_python);
    let root = env::var_os(CUDA_ROOT).filter(|root| !root.is_empty());
    match root {
        // SAFETY: the library is preloaded, so this runs before main, while the process has one thread.
        None if is_python => unsafe { env::set_var(CUDA_ROOT, toolkit) },
        // SAFETY: as above.
        Some(root) if !is_python && root == toolkit => unsafe { env::remove_var(CUDA_ROOT) },
        _ => {}
    }
}

/// Returns whether a program with this name interprets Python: `python3.12`, `pypy3`.
fn is_python(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"python") || name.starts_with(b"pypy")
}
