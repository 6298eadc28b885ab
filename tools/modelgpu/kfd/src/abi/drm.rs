//! The render nodes: `drm/drm.h` and `drm/amdgpu_drm.h`.

use super::abi_structs;

/// The ioctl type of DRM nodes.
pub(crate) const TYPE: u32 = b'd' as u32;

/// Major number of DRM character devices.
pub(crate) const MAJOR: u32 = 226;

/// Number of an ioctl: bits 0 to 7 of the request. Driver-specific ones start at 0x40.
pub(crate) mod nr {
    pub(crate) const VERSION: u32 = 0x00;
    pub(crate) const GEM_CLOSE: u32 = 0x09;
    pub(crate) const PRIME_HANDLE_TO_FD: u32 = 0x2d;
    pub(crate) const PRIME_FD_TO_HANDLE: u32 = 0x2e;
    pub(crate) const AMDGPU_GEM_MMAP: u32 = 0x41;
    pub(crate) const AMDGPU_INFO: u32 = 0x45;
    pub(crate) const AMDGPU_GEM_METADATA: u32 = 0x46;
    pub(crate) const AMDGPU_GEM_VA: u32 = 0x48;
    pub(crate) const AMDGPU_GEM_OP: u32 = 0x50;
}

/// `query` of AMDGPU_INFO.
pub(crate) mod query {
    pub(crate) const ACCEL_WORKING: u32 = 0x00;
    pub(crate) const HW_IP_INFO: u32 = 0x02;
    pub(crate) const HW_IP_COUNT: u32 = 0x03;
    pub(crate) const READ_MMR_REG: u32 = 0x15;
    pub(crate) const DEV_INFO: u32 = 0x16;
    pub(crate) const MEMORY: u32 = 0x19;
}

/// `operation` of AMDGPU_GEM_METADATA.
pub(crate) mod metadata_operation {
    pub(crate) const SET: u32 = 1;
    pub(crate) const GET: u32 = 2;
}

/// `operation` of AMDGPU_GEM_OP: how the buffer was created.
pub(crate) const GEM_CREATE_INFO: u32 = 0;

/// `domains` of a buffer.
pub(crate) mod domain {
    pub(crate) const SYSTEM: u64 = 2;
    pub(crate) const VRAM: u64 = 4;
}

/// `operation` of AMDGPU_GEM_VA.
pub(crate) mod va_operation {
    pub(crate) const MAP: u32 = 1;
    pub(crate) const UNMAP: u32 = 2;
    pub(crate) const CLEAR: u32 = 3;
    pub(crate) const REPLACE: u32 = 4;
}

abi_structs! {
    Version: 64 {
        major: i32,
        minor: i32,
        patch: i32,
        pad: u32,
        name_len: u64,
        name: u64,
        date_len: u64,
        date: u64,
        description_len: u64,
        description: u64,
    }
    Info: 32 {
        return_pointer: u64,
        return_size: u32,
        query: u32,
        arguments: [u32; 4],
    }
    InfoDevice: 368 {
        device_id: u32,
        chip_rev: u32,
        external_rev: u32,
        pci_rev: u32,
        family: u32,
        /// The number in an XCC.
        shader_engines: u32,
        shader_arrays_per_engine: u32,
        /// In kHz.
        counter_frequency: u32,
        /// In kHz.
        max_engine_clock: u64,
        /// In kHz.
        max_memory_clock: u64,
        active_cus: u32,
        cu_ao_mask: u32,
        cu_bitmap: [u32; 16],
        rb_pipes: [u32; 2],
        hw_gfx_contexts: u32,
        pad: u32,
        ids_flags: u64,
        va_offset: u64,
        va_max: u64,
        va_alignment: u32,
        pte_fragment_size: u32,
        gart_page_size: u32,
        ce_ram_size: u32,
        vram_type: u32,
        vram_bit_width: u32,
        harvest: [u32; 2],
        gs_buffers: [u64; 6],
        wave_front_size: u32,
        shader: [u32; 7],
        cu_ao_bitmap: [u32; 16],
        high_va_offset: u64,
        high_va_max: u64,
        tile_steering: [u32; 2],
        tcc_disabled_mask: u64,
    }
    /// Each heap: total size, usable size, usage, largest allocation.
    MemoryInfo: 96 {
        vram: [u64; 4],
        cpu_accessible_vram: [u64; 4],
        gtt: [u64; 4],
    }
    PrimeHandle: 12 { handle: u32, flags: u32, fd: i32, }
    GemClose: 8 { handle: u32, pad: u32, }
    /// A union: the handle goes in, the mmap offset comes out.
    GemMmap: 8 { handle: u32, high: u32, }
    /// A program attaches this to a buffer for those that import it: up to 256 bytes.
    Metadata: 280 {
        flags: u64,
        tiling: u64,
        size: u32,
        data: [u32; 64],
        pad: u32,
    }
    GemMetadata: 288 { handle: u32, operation: u32, metadata: Metadata, }
    GemOp: 16 { handle: u32, operation: u32, value: u64, }
    GemCreateInfo: 32 { size: u64, alignment: u64, domains: u64, flags: u64, }
    GemVa: 40 {
        handle: u32,
        pad: u32,
        operation: u32,
        flags: u32,
        va: u64,
        offset: u64,
        size: u64,
    }
}
