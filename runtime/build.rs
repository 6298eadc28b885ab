//! Links the unwinder into librocov.so, instead of libgcc_s.so.
//!
//! Panics are caught at the C boundary, so librocov needs an unwinder. But a library that is preloaded
//! into every process of a test suite should not load another one: that doubled the system calls of
//! loading librocov. The unwinder is linked whole and ahead of the standard library's own `-lgcc_s`,
//! which is then not needed and not recorded (`--as-needed`).
//!
//! GNU ld links it, where there is one: lld, which rustc takes by default, keeps the exception tables of functions that it
//! leaves out. They are 61 KB of librocov.so.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // zig links an unwinder of its own, which needs no new C library. GCC's calls `_dl_find_object` of glibc 2.35.
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_default();
    if linker.contains("zigcc") {
        return;
    }
    if Command::new("ld.bfd").arg("--version").output().is_ok() {
        println!("cargo::rustc-link-arg-cdylib=-fuse-ld=bfd");
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".into());
    let output = Command::new(&compiler)
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let directory = path
        .as_ref()
        .ok()
        .and_then(|path| path.strip_suffix("/libgcc_eh.a"));
    match directory {
        Some(directory) => {
            println!("cargo::rustc-link-search=native={directory}");
            println!("cargo::rustc-link-lib=static:+whole-archive,-bundle=gcc_eh");
        }
        // The compiler answers with the bare name if it does not find the library.
        None => {
            println!("cargo::warning={compiler} has no libgcc_eh.a; librocov.so needs libgcc_s.so")
        }
    }
}
