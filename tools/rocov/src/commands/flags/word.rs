//! One word of a command line.

use std::ffi::OsString;
use std::path::Path;

/// An option with its value, in one word.
pub(super) fn prefixed(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}
