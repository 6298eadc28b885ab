//! Device nodes: one anonymous file per node, so that mmap, close, dup and fork work unchanged.
//!
//! The model recognises a node's descriptors by inode, whatever their number. An mmap offset from
//! the driver is an offset in the node's file. Each file is mapped here once, whole and sparse. A
//! freed piece loses its pages but stays mapped, so that a kernel that still runs on it reads zeros
//! instead of crashing the process.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::sys::{self, Errno, FileId};

/// The lowest number of our own descriptors: programs expect the low numbers for themselves.
const LOWEST_FD: RawFd = 800;

/// A device node's file and its mapping.
pub(crate) struct Node {
    file: OwnedFd,
    id: FileId,
    map: MmapRaw,
}

impl Node {
    /// Creates a node with a sparse file of `size` bytes.
    pub(crate) fn new(name: &str, size: u64) -> Result<Self, Errno> {
        let name = CString::new(name).map_err(|_| Errno(libc::EINVAL))?;
        let file = sys::memfd(&name, size, LOWEST_FD)?;
        let id = sys::file_id(file.as_raw_fd()).ok_or(Errno(libc::EBADF))?;
        Self::map(file, id, size)
    }

    /// Opens the node that another process has under `descriptor`.
    ///
    /// # Errors
    /// Fails if that process has ended, belongs to another user, or has another file there.
    pub(crate) fn for_process(process: u32, descriptor: RawFd, id: FileId) -> Result<Self, Errno> {
        let file = sys::open_of_process(process, descriptor)?;
        if sys::file_id(file.as_raw_fd()) != Some(id) {
            return Err(Errno(libc::ENODEV));
        }
        let size = File::from(file.try_clone()?).metadata()?.len();
        Self::map(file, id, size)
    }

    fn map(file: OwnedFd, id: FileId, size: u64) -> Result<Self, Errno> {
        let map = MmapOptions::new()
            .len(size as usize)
            .no_reserve_swap()
            .map_raw(&file)?;
        // Like the driver's own mappings: not in a forked child, and not in a core dump.
        map.advise(Advice::DontFork)?;
        map.advise(Advice::DontDump)?;
        Ok(Self { file, id, map })
    }

    /// The node's descriptor and the identity of its file.
    pub(crate) fn place(&self) -> (RawFd, FileId) {
        (self.file.as_raw_fd(), self.id)
    }

    /// Returns whether this file is the node's.
    pub(crate) fn is(&self, id: FileId) -> bool {
        self.id == id
    }

    /// Opens the node again, like `open` of the device: returns a separate descriptor.
    pub(crate) fn open(&self, close_on_exec: bool) -> Result<OwnedFd, Errno> {
        let path = CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
            .map_err(|_| Errno(libc::EINVAL))?;
        let flags = libc::O_RDWR | if close_on_exec { libc::O_CLOEXEC } else { 0 };
        let fd = sys::open(&path, flags)?;
        // A program that closes every unknown descriptor (as daemons do) has closed ours, and the
        // number may now name another file.
        match sys::file_id(fd.as_raw_fd()) {
            Some(id) if self.is(id) => Ok(fd),
            _ => Err(Errno(libc::ENODEV)),
        }
    }

    /// Host address of the byte at `offset` of the node's file, which never moves. `None` for an
    /// offset outside the file.
    pub(crate) fn host(&self, offset: u64) -> Option<*mut u8> {
        let inside = offset < self.map.len() as u64;
        inside.then(|| self.map.as_mut_ptr().wrapping_add(offset as usize))
    }

    /// The aligned 64-bit word at `offset`.
    pub(crate) fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let host = self.host(offset).filter(|_| offset.is_multiple_of(8))?;
        // SAFETY: the word lies in the mapping, which lives as long as the node, and it is aligned
        // like the mapping. Programs write it (a doorbell) with single stores.
        Some(unsafe { AtomicU64::from_ptr(host.cast()) })
    }

    /// Frees the pages of a range, which then reads as zeros.
    pub(crate) fn clear(&self, offset: u64, len: u64) -> Result<(), Errno> {
        sys::punch_hole(self.file.as_raw_fd(), offset, len)
    }
}

/// First-fit allocation of ranges of a node's file.
pub(crate) struct Ranges {
    size: u64,
    /// Start and end of each used range, in order.
    used: std::collections::BTreeMap<u64, u64>,
}

impl Ranges {
    /// Creates a file range `0..size`, all free.
    pub(crate) fn new(size: u64) -> Self {
        Self {
            size,
            used: std::collections::BTreeMap::new(),
        }
    }

    /// Takes `len` bytes at a multiple of `align` (a power of two); `None` if too few are left.
    pub(crate) fn take(&mut self, len: u64, align: u64) -> Option<u64> {
        let mut start = 0u64;
        for (&from, &to) in &self.used {
            if start.checked_add(len)? <= from {
                break;
            }
            start = to.checked_next_multiple_of(align)?;
        }
        let end = start.checked_add(len).filter(|&end| end <= self.size)?;
        self.used.insert(start, end);
        Some(start)
    }

    /// Frees the range that starts at `start`.
    pub(crate) fn release(&mut self, start: u64) {
        self.used.remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_reused_first_fit() {
        let mut ranges = Ranges::new(0x10000);
        assert_eq!(ranges.take(0x1000, 0x1000), Some(0));
        assert_eq!(ranges.take(0x3000, 0x1000), Some(0x1000));
        assert_eq!(ranges.take(0x1000, 0x4000), Some(0x4000));
        ranges.release(0x1000);
        assert_eq!(ranges.take(0x4000, 0x1000), Some(0x5000));
        assert_eq!(ranges.take(0x2000, 0x1000), Some(0x1000));
        assert_eq!(ranges.take(0x8000, 0x1000), None);
        assert_eq!(ranges.take(u64::MAX, 0x1000), None);
    }

    #[test]
    fn a_node_is_one_file_under_many_descriptors() {
        let node = Node::new("test", 1 << 40).unwrap();
        let one = node.open(true).unwrap();
        let two = node.open(false).unwrap();
        assert_ne!(one.as_raw_fd(), two.as_raw_fd());
        for fd in [&one, &two] {
            assert!(node.is(sys::file_id(fd.as_raw_fd()).unwrap()));
        }
        let stdin = sys::file_id(0);
        assert!(stdin.is_none_or(|id| !node.is(id)));
    }

    #[test]
    fn cleared_ranges_read_as_zeros() {
        let node = Node::new("test", 1 << 30).unwrap();
        let word = node.word(0x5000).unwrap();
        word.store(7, std::sync::atomic::Ordering::Relaxed);
        node.clear(0x5000, 0x1000).unwrap();
        assert_eq!(word.load(std::sync::atomic::Ordering::Relaxed), 0);
        assert!(node.word(0x5004).is_none());
        assert!(node.word(1 << 30).is_none());
    }
}
