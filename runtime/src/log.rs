//! Standard error, which is the program's: used when something is lost, or when asked for.

use std::fmt::Arguments;
use std::io::{Write, stderr};
use std::sync::OnceLock;

/// Says that something is lost. One line.
pub(crate) fn warn(message: Arguments<'_>) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(stderr(), "rocov: {message}");
}

/// Says what happens, where `LLVM_PROFILE_VERBOSE` or `ROCOV_VERBOSE` asks for it.
pub(crate) fn verbose(message: Arguments<'_>) {
    static VERBOSE: OnceLock<bool> = OnceLock::new();
    if *VERBOSE.get_or_init(crate::config::verbose) {
        warn(message);
    }
}
