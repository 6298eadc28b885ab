//! Allocates, maps, shares and frees memory.

use std::os::fd::IntoRawFd;

use crate::abi::kfd::{
    AllocMemory, AvailableMemory, ExportDmabuf, FreeMemory, GetDmabufInfo, ImportDmabuf, MapMemory,
    memory_flag,
};
use crate::dmabuf::{self, Buffer};
use crate::gpu::gpu_id;
use crate::memory::HostAddress;
use crate::model::Model;
use crate::paths::DeviceNode;
use crate::sys::{self, Errno, PAGE};
use crate::user;

pub(super) fn allocate(model: &'static Model, arguments: &mut AllocMemory) -> Result<(), Errno> {
    let gpu = model.gpu(arguments.gpu_id)?;
    let (va, size, flags) = (arguments.va, arguments.size, arguments.flags);
    if size == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let memory = &model.memory;
    // Doorbells and remapped registers are pieces of the /dev/kfd file.
    let borrow_kfd = |offset| {
        let host = model.node(DeviceNode::Kfd)?.host(offset);
        let host = HostAddress(host.ok_or(Errno(libc::ENOMEM))?);
        Ok::<_, Errno>(memory.borrow(gpu, va, size, host, offset))
    };
    let allocation = if flags & memory_flag::USERPTR != 0 {
        // The mmap offset is the program's own address here. The driver pins its pages.
        let in_page = arguments.mmap_offset % PAGE;
        if !sys::is_mapped(
            arguments.mmap_offset - in_page,
            size.saturating_add(in_page),
        ) {
            return Err(Errno(libc::EFAULT));
        }
        let host = HostAddress(arguments.mmap_offset as *mut u8);
        memory.borrow(gpu, va, size, host, arguments.mmap_offset)
    } else if flags & memory_flag::DOORBELL != 0 {
        borrow_kfd(Model::doorbells(gpu))?
    } else if flags & memory_flag::MMIO_REMAP != 0 {
        borrow_kfd(Model::mmio(gpu))?
    } else {
        let vram = flags & memory_flag::VRAM != 0;
        memory.allocate(model.node(DeviceNode::Render(gpu))?, gpu, va, size, vram)?
    };
    arguments.handle = allocation.handle;
    arguments.mmap_offset = allocation.offset;
    model.note(
        2,
        format_args!(
            "memory {} on gpu {gpu}: {va:#x}, {size:#x} bytes, flags {flags:#x}",
            allocation.handle
        ),
    );
    Ok(())
}

pub(super) fn free(model: &'static Model, arguments: &mut FreeMemory) -> Result<(), Errno> {
    if let Some(trace) = &model.trace {
        let going = model.memory.get(arguments.handle)?;
        model.placed.gone(trace, going.va, going.size);
    }
    let node = |gpu| model.node(DeviceNode::Render(gpu));
    let freed = model.memory.free(arguments.handle, node)?;
    model.note(2, format_args!("memory {} freed", freed.handle));
    Ok(())
}

/// Maps or unmaps on each listed GPU. `done` counts the finished GPUs; the loop continues there.
pub(super) fn map(model: &Model, arguments: &mut MapMemory, mapped: bool) -> Result<(), Errno> {
    let ids: Vec<u32> = user::read_array(arguments.gpu_ids, arguments.count)?;
    for &id in ids.iter().skip(arguments.done as usize) {
        let gpu = model.gpu(id)?;
        model.memory.set_mapped(arguments.handle, gpu, mapped)?;
        arguments.done += 1;
    }
    Ok(())
}

pub(super) fn available(model: &Model, arguments: &mut AvailableMemory) -> Result<(), Errno> {
    let gpu = model.gpu(arguments.gpu_id)?;
    arguments.available = model.memory.vram_available(gpu);
    Ok(())
}

pub(super) fn dmabuf_info(model: &Model, arguments: &mut GetDmabufInfo) -> Result<(), Errno> {
    let (size, gpu, metadata) = match dmabuf::import(model, arguments.fd as i32)? {
        Buffer::Own(own) => (own.size, own.gpu, model.memory.attached(own.handle)),
        Buffer::Foreign(foreign) => (foreign.size, foreign.gpu, foreign.metadata),
    };
    let contents: Vec<u8> = (metadata.data.iter())
        .flat_map(|word| word.to_le_bytes())
        .take(metadata.size as usize)
        .collect();
    user::write_bytes(
        arguments.metadata,
        arguments.metadata_size.into(),
        &contents,
    );
    arguments.size = size;
    arguments.gpu_id = gpu_id(gpu);
    arguments.flags = memory_flag::VRAM;
    arguments.metadata_size = metadata.size;
    Ok(())
}

pub(super) fn import_dmabuf(model: &Model, arguments: &mut ImportDmabuf) -> Result<(), Errno> {
    let (memory, va) = (&model.memory, arguments.va);
    let imported = match dmabuf::import(model, arguments.fd as i32)? {
        Buffer::Own(source) => memory.alias(source.handle, va, 0, source.size, None)?,
        Buffer::Foreign(buffer) => model.import(&buffer, va)?,
    };
    arguments.handle = imported.handle;
    Ok(())
}

pub(super) fn export_dmabuf(model: &Model, arguments: &mut ExportDmabuf) -> Result<(), Errno> {
    let allocation = model.memory.get(arguments.handle)?;
    arguments.fd = dmabuf::export(model, &allocation)?.into_raw_fd() as u32;
    Ok(())
}
