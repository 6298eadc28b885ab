//! ioctls of the render nodes for libdrm, the thunk and HIP.

use std::os::fd::IntoRawFd;

use modelgpu_amdgcn::ComputeUnits;

use crate::abi::drm::{
    GEM_CREATE_INFO, GemClose, GemCreateInfo, GemMetadata, GemMmap, GemOp, GemVa, Info, InfoDevice,
    MemoryInfo, PrimeHandle, Version, domain, metadata_operation, nr, query, va_operation,
};
use crate::config::Bar;
use crate::dmabuf::{self, Buffer};
use crate::gpu::{NS_PER_TICK, identity};
use crate::memory::{Allocation, Backing};
use crate::model::Model;
use crate::sys::{Errno, PAGE};
use crate::user::{self, Argument};

/// Device memory that the host can see with a small BAR: the usual window, which ROCr does not use.
const SMALL_BAR_BYTES: u64 = 256 << 20;

/// Handles ioctl number `number` on the render node of GPU `gpu`.
pub(crate) fn ioctl(
    model: &'static Model,
    gpu: usize,
    number: u32,
    argument: Argument,
) -> Result<(), Errno> {
    model.note(2, format_args!("drm ioctl {number:#x} on gpu {gpu}"));
    match number {
        nr::VERSION => argument.with(version),
        nr::AMDGPU_INFO => argument.with(|info: &mut Info| answer(model, gpu, info)),
        nr::PRIME_FD_TO_HANDLE => argument.with(|prime: &mut PrimeHandle| {
            let imported = match dmabuf::import(model, prime.fd)? {
                Buffer::Own(allocation) => allocation,
                Buffer::Foreign(buffer) => model.import(&buffer, 0)?,
            };
            prime.handle = imported.handle as u32;
            Ok(())
        }),
        nr::PRIME_HANDLE_TO_FD => argument.with(|prime: &mut PrimeHandle| {
            prime.fd = dmabuf::export(model, &object(model, prime.handle)?)?.into_raw_fd();
            Ok(())
        }),
        // Handles are the driver's allocation handles, which FREE_MEMORY closes.
        nr::GEM_CLOSE => argument.with(|_: &mut GemClose| Ok(())),
        nr::AMDGPU_GEM_MMAP => argument.with(|mmap: &mut GemMmap| {
            let object = object(model, mmap.handle)?;
            // The program maps this process's node.
            if object.backing == Backing::Foreign {
                return Err(Errno(libc::EINVAL));
            }
            let offset = object.offset;
            (mmap.handle, mmap.high) = (offset as u32, (offset >> 32) as u32);
            Ok(())
        }),
        nr::AMDGPU_GEM_METADATA => argument.with(|metadata| exchange_metadata(model, metadata)),
        nr::AMDGPU_GEM_OP => argument.with(|operation| create_info(model, operation)),
        nr::AMDGPU_GEM_VA => argument.with(|va: &mut GemVa| map_object(model, gpu, va)),
        _ => {
            model.note(1, format_args!("drm ioctl {number:#x} is not modelled"));
            Err(Errno(libc::EINVAL))
        }
    }
}

/// The allocation with this 32-bit handle.
fn object(model: &Model, handle: u32) -> Result<Allocation, Errno> {
    let found = model.memory.by_low_handle(handle);
    found.ok_or(Errno(libc::ENOENT))
}

/// DRM_IOCTL_VERSION: called twice, first for the lengths, then for the strings.
fn version(version: &mut Version) -> Result<(), Errno> {
    (version.major, version.minor, version.patch) = (3, 57, 0);
    let put = |address: u64, len: &mut u64, text: &[u8]| {
        user::write_bytes(address, *len, text);
        *len = text.len() as u64;
    };
    put(version.name, &mut version.name_len, b"amdgpu");
    put(version.date, &mut version.date_len, b"20150101");
    put(
        version.description,
        &mut version.description_len,
        b"AMD GPU",
    );
    Ok(())
}

/// AMDGPU_INFO: copies the answer to the request's pointer, cut to the request's size.
fn answer(model: &Model, gpu: usize, info: &Info) -> Result<(), Errno> {
    let (address, size) = (info.return_pointer, info.return_size);
    match info.query {
        query::ACCEL_WORKING => user::write_sized(address, size, &1u32),
        query::DEV_INFO => user::write_sized(address, size, &device(model, gpu)),
        query::MEMORY => user::write_sized(address, size, &memory(model, gpu)),
        // No graphics or video engines, and registers that read as zero.
        query::HW_IP_INFO | query::HW_IP_COUNT | query::READ_MMR_REG => {
            user::write_sized(address, size, &0u32)
        }
        unknown => {
            model.note(
                1,
                format_args!("drm info {unknown:#x} is not modelled: zeros"),
            );
            user::write_sized(address, size, &0u32)
        }
    }
}

fn device(model: &Model, gpu: usize) -> InfoDevice {
    let target = model.config.gpus[gpu];
    let (identity, units) = (identity(target), ComputeUnits::for_target(target));
    InfoDevice {
        device_id: identity.device_id,
        chip_rev: 1,
        external_rev: 0x3c,
        pci_rev: 1,
        family: identity.family,
        shader_engines: units.engines_per_xcc / identity.arrays_per_engine,
        shader_arrays_per_engine: identity.arrays_per_engine,
        counter_frequency: (1_000_000 / NS_PER_TICK) as u32,
        max_engine_clock: 1_700_000,
        max_memory_clock: 1_600_000,
        active_cus: units.units(),
        cu_ao_mask: 0,
        cu_bitmap: [0; 16],
        rb_pipes: [0; 2],
        hw_gfx_contexts: 8,
        pad: 0,
        ids_flags: 0,
        va_offset: 0x20_0000,
        va_max: 0x8000_0000_0000,
        va_alignment: PAGE as u32,
        pte_fragment_size: 2 << 20,
        gart_page_size: PAGE as u32,
        ce_ram_size: 0,
        // HBM
        vram_type: 6,
        vram_bit_width: 4096,
        harvest: [0; 2],
        gs_buffers: [0; 6],
        wave_front_size: identity.wave_size,
        shader: [0; 7],
        cu_ao_bitmap: [0; 16],
        high_va_offset: 0xffff_8000_0000_0000,
        high_va_max: 0xffff_ffff_ffff_e000,
        tile_steering: [0; 2],
        tcc_disabled_mask: 0,
    }
}

fn memory(model: &Model, gpu: usize) -> MemoryInfo {
    let total = model.config.vram_bytes;
    let visible = match model.config.bar {
        Bar::Small => SMALL_BAR_BYTES.min(total),
        Bar::Large => total,
    };
    MemoryInfo {
        vram: [total, total, model.memory.vram_used(gpu), total],
        cpu_accessible_vram: [visible, visible, 0, visible],
        gtt: [0; 4],
    }
}

/// Maps an imported buffer at the caller's address, or unmaps it.
fn map_object(model: &Model, gpu: usize, va: &GemVa) -> Result<(), Errno> {
    match va.operation {
        va_operation::MAP | va_operation::REPLACE => {
            let handle = object(model, va.handle)?.handle;
            let size = va.size.checked_next_multiple_of(PAGE);
            let size = size.ok_or(Errno(libc::EINVAL))?;
            let mapped = model
                .memory
                .alias(handle, va.va, va.offset, size, Some(gpu));
            mapped.map(drop)
        }
        va_operation::UNMAP | va_operation::CLEAR => {
            model.memory.free_alias_at(va.va);
            Ok(())
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// Sets what the program attaches to a buffer, or returns it.
fn exchange_metadata(model: &Model, arguments: &mut GemMetadata) -> Result<(), Errno> {
    let handle = object(model, arguments.handle)?.handle;
    match arguments.operation {
        metadata_operation::SET => {
            if arguments.metadata.size as usize > size_of_val(&arguments.metadata.data) {
                return Err(Errno(libc::EINVAL));
            }
            model.memory.attach(handle, arguments.metadata);
        }
        metadata_operation::GET => arguments.metadata = model.memory.attached(handle),
        _ => return Err(Errno(libc::EINVAL)),
    }
    Ok(())
}

/// Tells how a buffer was created.
fn create_info(model: &Model, arguments: &GemOp) -> Result<(), Errno> {
    let allocation = object(model, arguments.handle)?;
    if arguments.operation != GEM_CREATE_INFO {
        return Err(Errno(libc::EINVAL));
    }
    let is_system = allocation.backing == Backing::Piece { vram: false };
    let info = GemCreateInfo {
        size: allocation.size,
        alignment: PAGE,
        domains: if is_system {
            domain::SYSTEM
        } else {
            domain::VRAM
        },
        flags: 0,
    };
    user::write_array(arguments.value, &[info])
}
