//! The variables of the environment that librocov may trust.
#![expect(unsafe_code, reason = "calls getauxval")]

use std::env;
use std::ffi::OsString;

/// Returns a variable of the environment; `None` in a privileged program, because the person who set
/// the variable has fewer rights than the program.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|_| !is_privileged())
}

/// Returns whether the program has rights that its user lacks: setuid, setgid, file capabilities.
/// The kernel reports this as `AT_SECURE`.
///
/// librocov writes no files with such rights: the user would choose their paths, by the environment
/// and the working directory, and could damage the system.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: reads a value that the kernel gave to the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
