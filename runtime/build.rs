//! Links the unwinder into librocov.so instead of loading libgcc_s.so with it.
//!
//! Panics are caught at the C boundary, so that there must be an unwinder; but a library that is
//! preloaded into every process of a test suite should not bring another along: it doubled the
//! system calls of loading librocov. Whole, and ahead of the standard library's own `-lgcc_s`,
//! which is then not needed and not recorded (`--as-needed`).

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The profile `small`: functions with one code are one. For LLD, by which Rust links here.
    if std::env::var("OPT_LEVEL").is_ok_and(|level| level == "z") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--icf=all");
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
        // A library that is not found is answered with its bare name.
        None => {
            println!("cargo::warning={compiler} has no libgcc_eh.a; librocov.so needs libgcc_s.so")
        }
    }
}
