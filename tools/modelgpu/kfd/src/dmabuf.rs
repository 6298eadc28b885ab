//! Exported buffers: a substitute for a dma-buf.
//!
//! An anonymous file as long as the buffer, because libdrm asks `lseek` for the size. Its first
//! bytes name the allocation. The handle works inside one process only; the exporter's process id
//! in the file shows this.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use crate::memory::{Allocation, Memory};
use crate::sys::{self, Errno};

const MAGIC: u64 = u64::from_le_bytes(*b"rocovbuf");
const FIELDS: usize = 3;

/// Exports an allocation.
pub(crate) fn export(allocation: &Allocation) -> Result<OwnedFd, Errno> {
    let bytes = (8 * FIELDS as u64).max(allocation.size);
    let file = File::from(sys::memfd(c"dmabuf", bytes, 0)?);
    let fields = [MAGIC, u64::from(std::process::id()), allocation.handle];
    let header: Vec<u8> = fields
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect();
    file.write_all_at(&header, 0)?;
    Ok(file.into())
}

/// The allocation of an exported file.
///
/// # Errors
/// Fails if the file is not an export of this process (`EINVAL`).
pub(crate) fn import(memory: &Memory, fd: RawFd) -> Result<Allocation, Errno> {
    if fd < 0 || sys::file_id(fd).is_none() {
        return Err(Errno(libc::EBADF));
    }
    // SAFETY: the descriptor is open, and the caller keeps it open during the ioctl.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let file = File::from(file.try_clone_to_owned()?);
    let mut header = [0; 8 * FIELDS];
    if file.read_exact_at(&mut header, 0).is_err() {
        return Err(Errno(libc::EINVAL));
    }
    let field = |i: usize| {
        let bytes = header[8 * i..8 * i + 8].try_into();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    match (field(0), field(1) == u64::from(std::process::id())) {
        (MAGIC, true) => memory.get(field(2)),
        _ => Err(Errno(libc::EINVAL)),
    }
}
