//! Indexed profiles that a merge wrote.

use std::path::PathBuf;

/// An indexed profile that was written.
pub(super) struct Indexed<'a> {
    /// The architecture, or `host` for host code.
    pub(super) arch: &'a str,
    /// The contents, in words.
    pub(super) contents: String,
    pub(super) path: PathBuf,
}
