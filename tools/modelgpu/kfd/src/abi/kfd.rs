//! `/dev/kfd`: interface version 1.x (`linux/kfd_ioctl.h`).

use super::{Counted, abi_structs};

/// The ioctl type of `/dev/kfd`.
pub(crate) const TYPE: u32 = b'K' as u32;
/// The interface version that the model reports. Event ages need 1.14. Version 1.17 is that of the
/// first kernels that ran gfx942.
pub(crate) const VERSION: (u32, u32) = (1, 17);

/// Number of an ioctl: bits 0 to 7 of the request.
pub(crate) mod nr {
    pub(crate) const GET_VERSION: u32 = 0x01;
    pub(crate) const CREATE_QUEUE: u32 = 0x02;
    pub(crate) const DESTROY_QUEUE: u32 = 0x03;
    pub(crate) const SET_MEMORY_POLICY: u32 = 0x04;
    pub(crate) const GET_CLOCK_COUNTERS: u32 = 0x05;
    pub(crate) const GET_PROCESS_APERTURES: u32 = 0x06;
    pub(crate) const UPDATE_QUEUE: u32 = 0x07;
    pub(crate) const CREATE_EVENT: u32 = 0x08;
    pub(crate) const DESTROY_EVENT: u32 = 0x09;
    pub(crate) const SET_EVENT: u32 = 0x0a;
    pub(crate) const RESET_EVENT: u32 = 0x0b;
    pub(crate) const WAIT_EVENTS: u32 = 0x0c;
    pub(crate) const SET_SCRATCH_BACKING_VA: u32 = 0x11;
    pub(crate) const GET_TILE_CONFIG: u32 = 0x12;
    pub(crate) const SET_TRAP_HANDLER: u32 = 0x13;
    pub(crate) const GET_PROCESS_APERTURES_NEW: u32 = 0x14;
    pub(crate) const ACQUIRE_VM: u32 = 0x15;
    pub(crate) const ALLOC_MEMORY: u32 = 0x16;
    pub(crate) const FREE_MEMORY: u32 = 0x17;
    pub(crate) const MAP_MEMORY: u32 = 0x18;
    pub(crate) const UNMAP_MEMORY: u32 = 0x19;
    pub(crate) const SET_CU_MASK: u32 = 0x1a;
    pub(crate) const GET_DMABUF_INFO: u32 = 0x1c;
    pub(crate) const IMPORT_DMABUF: u32 = 0x1d;
    pub(crate) const ALLOC_QUEUE_GWS: u32 = 0x1e;
    pub(crate) const SVM: u32 = 0x20;
    pub(crate) const SET_XNACK_MODE: u32 = 0x21;
    pub(crate) const AVAILABLE_MEMORY: u32 = 0x23;
    pub(crate) const EXPORT_DMABUF: u32 = 0x24;
    pub(crate) const RUNTIME_ENABLE: u32 = 0x25;
    /// Memory between processes, in AMD's releases of the driver.
    pub(crate) const IPC_IMPORT_HANDLE: u32 = 0x80;
    pub(crate) const IPC_EXPORT_HANDLE: u32 = 0x81;
    /// Streaming performance monitor; ROCr releases it at exit without an acquire.
    pub(crate) const RLC_SPM: u32 = 0x84;
    /// `RLC_SPM` under the number of older out-of-tree drivers.
    pub(crate) const RLC_SPM_OLD: u32 = 0x82;
}

/// `queue_type` of CREATE_QUEUE.
pub(crate) mod queue_type {
    pub(crate) const COMPUTE: u32 = 0;
    pub(crate) const SDMA: u32 = 1;
    pub(crate) const COMPUTE_AQL: u32 = 2;
    pub(crate) const SDMA_XGMI: u32 = 3;
    /// An SDMA queue on an engine of the caller's choice (interface 1.17).
    pub(crate) const SDMA_BY_ENGINE: u32 = 4;
}

/// `event_type` of CREATE_EVENT.
pub(crate) mod event_type {
    pub(crate) const SIGNAL: u32 = 0;
    pub(crate) const HW_EXCEPTION: u32 = 3;
    pub(crate) const MEMORY: u32 = 8;
}

/// `wait_result` of WAIT_EVENTS.
pub(crate) mod wait_result {
    pub(crate) const COMPLETE: u32 = 0;
    pub(crate) const TIMEOUT: u32 = 1;
}

/// `flags` of ALLOC_MEMORY.
pub(crate) mod memory_flag {
    pub(crate) const VRAM: u32 = 1 << 0;
    pub(crate) const USERPTR: u32 = 1 << 2;
    pub(crate) const DOORBELL: u32 = 1 << 3;
    pub(crate) const MMIO_REMAP: u32 = 1 << 4;
}

/// `op` of SVM.
pub(crate) mod svm_operation {
    pub(crate) const SET: u32 = 0;
    pub(crate) const GET: u32 = 1;
}

/// `type` of an attribute of SVM. Those of access name a GPU; on output the type gives its access.
pub(crate) mod svm_attribute {
    pub(crate) const PREFERRED_LOCATION: u32 = 0;
    pub(crate) const PREFETCH_LOCATION: u32 = 1;
    pub(crate) const ACCESS: u32 = 2;
    pub(crate) const ACCESS_IN_PLACE: u32 = 3;
    pub(crate) const NO_ACCESS: u32 = 4;
    pub(crate) const SET_FLAGS: u32 = 5;
    pub(crate) const CLEAR_FLAGS: u32 = 6;
    pub(crate) const GRANULARITY: u32 = 7;
}

/// A location of SVM that is no GPU.
pub(crate) mod svm_location {
    pub(crate) const SYSTEM: u32 = 0;
    pub(crate) const UNDEFINED: u32 = u32::MAX;
}

/// Flags of SVM.
pub(crate) mod svm_flag {
    pub(crate) const HOST_ACCESS: u32 = 1 << 0;
    pub(crate) const COHERENT: u32 = 1 << 1;
    #[cfg(test)]
    pub(crate) const READ_MOSTLY: u32 = 1 << 5;
}

/// `ErrorType` of a memory exception: a GPU hang without a known access.
pub(crate) const MEMORY_ERROR_GPU_HANG: u32 = 3;

abi_structs! {
    GetVersion: 8 { major: u32, minor: u32, }
    CreateQueue: 96 {
        ring_base: u64,
        write_pointer: u64,
        read_pointer: u64,
        doorbell_offset: u64,
        ring_size: u32,
        gpu_id: u32,
        queue_type: u32,
        percentage: u32,
        priority: u32,
        queue_id: u32,
        eop_buffer: u64,
        eop_buffer_size: u64,
        save_area: u64,
        save_area_size: u32,
        control_stack_size: u32,
        /// Engine of an SDMA queue by engine (interface 1.17).
        sdma_engine: u32,
        pad: u32,
    }
    DestroyQueue: 8 { queue_id: u32, pad: u32, }
    UpdateQueue: 24 {
        ring_base: u64,
        queue_id: u32,
        ring_size: u32,
        percentage: u32,
        priority: u32,
    }
    GetClockCounters: 40 {
        gpu_clock: u64,
        cpu_clock: u64,
        system_clock: u64,
        system_frequency: u64,
        gpu_id: u32,
        pad: u32,
    }
    Apertures: 56 {
        lds_base: u64,
        lds_limit: u64,
        scratch_base: u64,
        scratch_limit: u64,
        gpuvm_base: u64,
        gpuvm_limit: u64,
        gpu_id: u32,
        pad: u32,
    }
    /// The deprecated call has room for seven GPUs.
    GetProcessApertures: 400 {
        apertures: [Apertures; 7],
        count: u32,
        pad: u32,
    }
    GetProcessAperturesNew: 16 { apertures: u64, count: u32, pad: u32, }
    CreateEvent: 32 {
        page_offset: u64,
        trigger_data: u32,
        event_type: u32,
        auto_reset: u32,
        node_id: u32,
        event_id: u32,
        slot_index: u32,
    }
    EventId: 8 { event_id: u32, pad: u32, }
    /// The header's union of memory exception, hardware exception and (since 1.14) the last event
    /// age, as plain words.
    EventData: 48 {
        payload: [u64; 4],
        extension: u64,
        event_id: u32,
        pad: u32,
    }
    WaitEvents: 24 {
        events: u64,
        count: u32,
        wait_for_all: u32,
        timeout_ms: u32,
        result: u32,
    }
    GetTileConfig: 40 {
        tile_config: u64,
        macro_tile_config: u64,
        tile_configs: u32,
        macro_tile_configs: u32,
        gpu_id: u32,
        address_config: u32,
        banks: u32,
        ranks: u32,
    }
    AllocMemory: 40 {
        va: u64,
        size: u64,
        handle: u64,
        mmap_offset: u64,
        gpu_id: u32,
        flags: u32,
    }
    FreeMemory: 8 { handle: u64, }
    MapMemory: 24 {
        handle: u64,
        gpu_ids: u64,
        count: u32,
        done: u32,
    }
    GetDmabufInfo: 32 {
        size: u64,
        metadata: u64,
        metadata_size: u32,
        gpu_id: u32,
        flags: u32,
        fd: u32,
    }
    ImportDmabuf: 24 { va: u64, handle: u64, gpu_id: u32, fd: u32, }
    ExportDmabuf: 16 { handle: u64, flags: u32, fd: u32, }
    AllocQueueGws: 16 { queue_id: u32, count: u32, first: u32, pad: u32, }
    /// The attributes follow.
    Svm: 24 { start: u64, size: u64, operation: u32, count: u32, }
    SvmAttribute: 8 { kind: u32, value: u32, }
    ExportHandle: 32 { handle: u64, share: [u32; 4], gpu_id: u32, flags: u32, }
    ImportHandle: 48 {
        handle: u64,
        va: u64,
        mmap_offset: u64,
        share: [u32; 4],
        gpu_id: u32,
        flags: u32,
    }
    SetXnackMode: 4 { enabled: i32, }
    AvailableMemory: 16 { available: u64, gpu_id: u32, pad: u32, }
    RuntimeEnable: 16 { r_debug: u64, mode: u32, capabilities: u32, }
}

impl Counted for Svm {
    fn count(&self) -> u32 {
        self.count
    }
}
