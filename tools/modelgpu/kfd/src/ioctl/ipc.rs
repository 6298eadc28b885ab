//! Memory between processes, as AMD's own releases of the driver share it; Linux's has only dma-bufs.
//!
//! The 128 bits of a handle name an exported buffer's file: the process, its descriptor there, and the
//! inode that it must have.

use std::os::fd::{AsRawFd, IntoRawFd};

use crate::abi::kfd::{ExportHandle, ImportHandle};
use crate::dmabuf::{self, Buffer};
use crate::model::Model;
use crate::sys::{self, Errno};

pub(super) fn export(model: &Model, arguments: &mut ExportHandle) -> Result<(), Errno> {
    let allocation = model.memory.get(arguments.handle)?;
    let file = dmabuf::export(model, &allocation)?;
    let id = sys::file_id(file.as_raw_fd()).ok_or(Errno(libc::EBADF))?;
    // Other processes may ask for the file as long as this one lives.
    let descriptor = file.into_raw_fd();
    arguments.share = [
        std::process::id(),
        descriptor as u32,
        id.inode as u32,
        (id.inode >> 32) as u32,
    ];
    Ok(())
}

pub(super) fn import(model: &Model, arguments: &mut ImportHandle) -> Result<(), Errno> {
    let [process, descriptor, low, high] = arguments.share;
    let file = sys::open_of_process(process, descriptor as i32)?;
    let id = sys::file_id(file.as_raw_fd()).ok_or(Errno(libc::EBADF))?;
    if id.inode != u64::from(low) | u64::from(high) << 32 {
        return Err(Errno(libc::EINVAL));
    }
    let (memory, va) = (&model.memory, arguments.va);
    let imported = match dmabuf::import(model, file.as_raw_fd())? {
        Buffer::Own(source) => memory.alias(source.handle, va, 0, source.size, None)?,
        Buffer::Foreign(buffer) => model.import(&buffer, va)?,
    };
    arguments.handle = imported.handle;
    // The host does not map it: it is device memory.
    arguments.mmap_offset = 0;
    arguments.flags = 0;
    Ok(())
}
