//! Memory of other processes.

use std::os::fd::RawFd;

use crate::abi::drm::Metadata;
use crate::sys::FileId;

/// A piece of the render node of another process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignBuffer {
    pub(crate) process: u32,
    /// The node's descriptor in that process, and the identity that it must have.
    pub(crate) descriptor: RawFd,
    pub(crate) node: FileId,
    /// The piece.
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) gpu: usize,
    pub(crate) metadata: Metadata,
}
