//! Inputs that cannot be merged.

use std::path::PathBuf;

use anyhow::Error;

/// An input that cannot be merged.
#[derive(Debug)]
pub(super) struct Damaged {
    /// The path by which messages are sorted.
    pub(super) path: PathBuf,
    /// The reason, which names the path.
    pub(super) error: Error,
}
