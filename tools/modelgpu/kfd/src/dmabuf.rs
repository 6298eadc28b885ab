//! Exported buffers: a substitute for a dma-buf.
//!
//! An anonymous file as long as the buffer, because libdrm asks `lseek` for the size. Its first
//! bytes name the allocation, its process, and its place in a render node's file. Another process
//! finds that file among the descriptors of the first (`/proc/PID/fd`), as long as it lives, and maps
//! it. Only memory of the driver can be shared so.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use crate::abi::drm::Metadata;
use crate::foreign::ForeignBuffer;
use crate::memory::Allocation;
use crate::model::Model;
use crate::sys::{self, Errno, FileId};

const MAGIC: u64 = u64::from_le_bytes(*b"rocovbuf");
const FIELDS: usize = 9;
/// Bytes before the contents of the metadata.
const HEADER: usize = 8 * FIELDS + 24;
/// The most bytes of the metadata's contents.
const METADATA: usize = 256;

/// An exported buffer, as a process sees it.
pub(crate) enum Buffer {
    /// An allocation of this process.
    Own(Allocation),
    /// Memory of another process.
    Foreign(Box<ForeignBuffer>),
}

/// Exports an allocation.
pub(crate) fn export(model: &Model, allocation: &Allocation) -> Result<OwnedFd, Errno> {
    let bytes = ((HEADER + METADATA) as u64).max(allocation.size);
    let file = File::from(sys::memfd(c"dmabuf", bytes, 0)?);
    let place = model.place(allocation);
    let (descriptor, node) = place.unwrap_or((-1, FileId::default()));
    let fields: [u64; FIELDS] = [
        MAGIC,
        u64::from(std::process::id()),
        allocation.handle,
        descriptor as u64,
        node.device,
        node.inode,
        allocation.offset,
        allocation.size,
        allocation.gpu as u64,
    ];
    let metadata = model.memory.attached(allocation.handle);
    let sizes = [metadata.flags, metadata.tiling, metadata.size.into()];
    let mut header: Vec<u8> = (fields.iter().chain(&sizes))
        .flat_map(|field| field.to_le_bytes())
        .collect();
    header.extend(metadata.data.iter().flat_map(|word| word.to_le_bytes()));
    file.write_all_at(&header, 0)?;
    Ok(file.into())
}

/// The buffer of an exported file.
///
/// # Errors
/// Fails if the file is not an export, or an export of memory that another process cannot reach
/// (`EINVAL`).
pub(crate) fn import(model: &Model, fd: RawFd) -> Result<Buffer, Errno> {
    if fd < 0 || sys::file_id(fd).is_none() {
        return Err(Errno(libc::EBADF));
    }
    // SAFETY: the descriptor is open, and the caller keeps it open during the ioctl.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let file = File::from(file.try_clone_to_owned()?);
    let mut header = [0; HEADER + METADATA];
    if file.read_exact_at(&mut header, 0).is_err() {
        return Err(Errno(libc::EINVAL));
    }
    let field = |i: usize| {
        let bytes = header[8 * i..8 * i + 8].try_into();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    if field(0) != MAGIC {
        return Err(Errno(libc::EINVAL));
    }
    if field(1) == u64::from(std::process::id()) {
        return model.memory.get(field(2)).map(Buffer::Own);
    }
    let foreign = ForeignBuffer {
        process: field(1) as u32,
        descriptor: field(3) as RawFd,
        node: FileId {
            device: field(4),
            inode: field(5),
        },
        offset: field(6),
        size: field(7),
        gpu: field(8) as usize,
        metadata: Metadata {
            flags: field(FIELDS),
            tiling: field(FIELDS + 1),
            size: field(FIELDS + 2) as u32,
            data: std::array::from_fn(|i| {
                let at = HEADER + 4 * i;
                u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or_default())
            }),
            pad: 0,
        },
    };
    match foreign.descriptor >= 0 && foreign.gpu < model.config.gpus.len() {
        true => Ok(Buffer::Foreign(Box::new(foreign))),
        false => Err(Errno(libc::EINVAL)),
    }
}
