//! The part of the HSA C interface that the drain uses, mirrored by hand.
//!
//! Sources: `hsa.h`, `hsa_ext_amd.h` and `hsa_ven_amd_loader.h` of ROCr 5.2.3. The numbers are unchanged up
//! to 6.4.3. `tests/real_rocr/hsa_abi.rs` compares every one with the installed headers.

use std::ffi::{c_char, c_void};

/// `hsa_status_t`.
pub type Status = u32;
/// The call succeeded.
pub const SUCCESS: Status = 0;
/// The runtime is not started, or shut down (`HSA_STATUS_ERROR_NOT_INITIALIZED`).
pub const NOT_INITIALIZED: Status = 0x100B;
/// A symbol of that name does not exist (`HSA_STATUS_ERROR_INVALID_SYMBOL_NAME`).
pub const INVALID_SYMBOL_NAME: Status = 0x1013;

/// `hsa_system_info_t`: the timestamp. A query for it is a probe that starts nothing.
pub const SYSTEM_INFO_TIMESTAMP: u32 = 2;
/// `hsa_agent_info_t`: name, 64 bytes with its NUL.
pub const AGENT_INFO_NAME: u32 = 0;
/// The length of an agent's name with its NUL, in bytes.
pub const AGENT_NAME_LEN: usize = 64;
/// `hsa_agent_info_t`: device type, a u32.
pub const AGENT_INFO_DEVICE: u32 = 17;
/// `hsa_agent_info_t`: the first instruction set of the agent, an `hsa_isa_t`, which is a u64.
pub const AGENT_INFO_ISA: u32 = 19;
/// `hsa_amd_agent_info_t`: the driver's number of the node, a u32.
pub const AGENT_INFO_DRIVER_NODE_ID: u32 = 0xA004;
/// `hsa_amd_agent_info_t`: UUID, at most 21 bytes with its NUL. `GPU-XX` if the device has none.
pub const AGENT_INFO_UUID: u32 = 0xA011;
/// `hsa_isa_info_t`: length of the name in bytes, a u32. The header excludes the NUL, ROCr includes it.
pub const ISA_INFO_NAME_LENGTH: u32 = 0;
/// `hsa_isa_info_t`: the name.
pub const ISA_INFO_NAME: u32 = 1;
/// `hsa_device_type_t`: a CPU.
pub const DEVICE_TYPE_CPU: u32 = 0;
/// `hsa_device_type_t`: a GPU.
pub const DEVICE_TYPE_GPU: u32 = 1;
/// `hsa_executable_symbol_info_t`: kind, a u32.
pub const SYMBOL_INFO_TYPE: u32 = 0;
/// `hsa_executable_symbol_info_t`: device address of a variable, a u64.
pub const SYMBOL_INFO_VARIABLE_ADDRESS: u32 = 21;
/// `hsa_executable_symbol_info_t`: size of a variable in bytes, a u32. 0 for a variable that the program
/// defined from outside.
pub const SYMBOL_INFO_VARIABLE_SIZE: u32 = 9;
/// `hsa_symbol_kind_t`: a variable.
pub const SYMBOL_KIND_VARIABLE: u32 = 0;
/// `hsa_extension_t`: AMD's loader extension.
pub const EXTENSION_AMD_LOADER: u16 = 0x201;

/// `hsa_ven_amd_loader_loaded_code_object_info_t`: kind, a u32.
pub const LOADED_INFO_KIND: u32 = 2;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: agent.
pub const LOADED_INFO_AGENT: u32 = 3;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: kind of storage, a u32.
pub const LOADED_INFO_STORAGE_TYPE: u32 = 4;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: host address of the ELF, if the storage is memory.
pub const LOADED_INFO_STORAGE_BASE: u32 = 5;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: size of the ELF in bytes, if the storage is memory.
pub const LOADED_INFO_STORAGE_SIZE: u32 = 6;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: load delta, an i64.
pub const LOADED_INFO_LOAD_DELTA: u32 = 8;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: first device address, a u64.
pub const LOADED_INFO_LOAD_BASE: u32 = 9;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: bytes of device memory, a u64.
pub const LOADED_INFO_LOAD_SIZE: u32 = 10;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: length of the URI in bytes without a NUL, a u32.
pub const LOADED_INFO_URI_LENGTH: u32 = 11;
/// `hsa_ven_amd_loader_loaded_code_object_info_t`: the URI, not NUL terminated.
pub const LOADED_INFO_URI: u32 = 12;
/// The code object is loaded on one agent. (A code object of the other kind, 1, belongs to a program.)
pub const LOADED_KIND_AGENT: u32 = 2;
/// The ELF is in host memory.
pub const STORAGE_MEMORY: u32 = 2;

/// `hsa_amd_memory_pool_info_t`: the segment, a u32.
pub const POOL_INFO_SEGMENT: u32 = 0;
/// `hsa_amd_segment_t`: global memory, which all agents address alike.
pub const POOL_SEGMENT_GLOBAL: u32 = 0;
/// `hsa_amd_agent_memory_pool_info_t`: the access of an agent to a pool, a u32.
pub const AGENT_POOL_INFO_ACCESS: u32 = 0;
/// `hsa_amd_memory_pool_access_t`: the agent never has access.
pub const POOL_ACCESS_NEVER: u32 = 0;

/// `hsa_amd_pointer_type_t`: allocated by the runtime.
pub const POINTER_TYPE_HSA: u32 = 1;

/// `hsa_amd_pointer_info_t` up to the fields that every release since 1.0 has. The runtime fills no more than
/// `size` bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerInfo {
    /// The size of this struct in bytes, set by the caller.
    pub size: u32,
    /// `hsa_amd_pointer_type_t`.
    pub kind: u32,
    /// The start of the allocation for agents.
    pub agent_base: *mut c_void,
    /// The start of the allocation for the host, or null.
    pub host_base: *mut c_void,
    /// The length of the allocation in bytes.
    pub len: usize,
    /// The program's own pointer.
    pub user_data: *mut c_void,
    /// The owner's `hsa_agent_t`.
    pub owner: u64,
}

/// `hsa_queue_type32_t`: only one thread puts packets in.
pub const QUEUE_TYPE_SINGLE: u32 = 1;

/// `hsa_queue_t` of the large machine model. Its address is the handle.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// `hsa_queue_type32_t`.
    pub kind: u32,
    /// The queue's features.
    pub features: u32,
    /// The address of the packets.
    pub base: u64,
    /// The doorbell signal, which takes a packet's index.
    pub doorbell: u64,
    /// The number of packets that fit, a power of two.
    pub size: u32,
}

/// `hsa_barrier_and_packet_t`: 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BarrierPacket {
    /// The header, in the lower half.
    pub header: u32,
    /// Must be 0.
    pub reserved1: u32,
    /// Signals to wait for, 0 for none.
    pub dependencies: [u64; 5],
    /// Must be 0.
    pub reserved2: u64,
    /// The signal to decrement when everything before is done.
    pub completion_signal: u64,
}

/// The header of a barrier-and packet that waits for everything before it, and makes it visible to everybody:
/// `HSA_PACKET_TYPE_BARRIER_AND`, the barrier bit, and `HSA_FENCE_SCOPE_SYSTEM` for both fences.
pub const BARRIER_HEADER: u32 = 3 | 1 << 8 | 2 << 9 | 2 << 11;

/// `hsa_queue_load_read_index_scacquire` and `hsa_queue_load_write_index_scacquire`. A queue is passed by its
/// address.
pub type LoadIndexFn = unsafe extern "C" fn(u64) -> u64;
/// `hsa_queue_cas_write_index_scacq_screl`: queue, expected, new. Returns the value found.
pub type CasIndexFn = unsafe extern "C" fn(u64, u64, u64) -> u64;
/// `hsa_signal_create`: value, number of agents that wait, these agents, place for the handle.
pub type SignalCreateFn = unsafe extern "C" fn(i64, u32, *const u64, *mut u64) -> Status;
/// `hsa_signal_destroy`.
pub type SignalDestroyFn = unsafe extern "C" fn(u64) -> Status;
/// `hsa_signal_load_scacquire`.
pub type SignalLoadFn = unsafe extern "C" fn(u64) -> i64;
/// `hsa_signal_store_screlease`.
pub type SignalStoreFn = unsafe extern "C" fn(u64, i64);
/// `hsa_signal_wait_scacquire`: signal, condition, value, timeout in ticks, wait state. Returns the signal's
/// value.
pub type SignalWaitFn = unsafe extern "C" fn(u64, u32, i64, u64, u32) -> i64;
/// The handler of `hsa_amd_signal_async_handler`: the signal's value and the argument. Returns whether to continue
/// watching the signal.
pub type SignalHandler = unsafe extern "C" fn(i64, *mut c_void) -> bool;
/// `hsa_amd_signal_async_handler`: signal, condition, value, handler, its argument.
pub type AsyncHandlerFn = unsafe extern "C" fn(u64, u32, i64, SignalHandler, *mut c_void) -> Status;
/// `hsa_signal_condition_t`: less than.
pub const SIGNAL_LESS: u32 = 2;
/// `hsa_wait_state_t`: the thread may sleep.
pub const WAIT_BLOCKED: u32 = 0;

/// `hsa_system_get_info`.
pub type SystemGetInfoFn = unsafe extern "C" fn(u32, *mut c_void) -> Status;
/// `hsa_system_get_major_extension_table`.
pub type ExtensionTableFn = unsafe extern "C" fn(u16, u16, usize, *mut c_void) -> Status;
/// Callback over handles: agents, executables.
pub type HandleCallback = unsafe extern "C" fn(u64, *mut c_void) -> Status;
/// `hsa_iterate_agents`, `hsa_ven_amd_loader_iterate_executables`.
pub type IterateFn = unsafe extern "C" fn(HandleCallback, *mut c_void) -> Status;
/// `hsa_amd_agent_iterate_memory_pools`: agent, callback over pools, data.
pub type IteratePoolsFn = unsafe extern "C" fn(u64, HandleCallback, *mut c_void) -> Status;
/// `hsa_amd_agent_memory_pool_get_info`: agent, pool, attribute, place for its value.
pub type AgentPoolInfoFn = unsafe extern "C" fn(u64, u64, u32, *mut c_void) -> Status;
/// Attribute getters: memory pool, agent, instruction set, executable symbol, loaded code object.
pub type GetInfoFn = unsafe extern "C" fn(u64, u32, *mut c_void) -> Status;
/// `hsa_executable_get_symbol_by_name`.
pub type SymbolByNameFn = unsafe extern "C" fn(u64, *const c_char, *const u64, *mut u64) -> Status;
/// `hsa_memory_copy`.
pub type MemoryCopyFn = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> Status;
/// `hsa_amd_memory_async_copy`: destination and its agent, source and its agent, bytes, number of signals to
/// wait for, these signals, completion signal. The call decrements the completion signal at the end, or makes
/// it negative if the copy fails.
pub type AsyncCopyFn = unsafe extern "C" fn(
    *mut c_void,
    u64,
    *const c_void,
    u64,
    usize,
    u32,
    *const u64,
    u64,
) -> Status;
/// `hsa_amd_memory_lock`: host memory, bytes, agents that get access and their number (none for all), place
/// for its address for agents.
pub type MemoryLockFn =
    unsafe extern "C" fn(*mut c_void, usize, *const u64, i32, *mut *mut c_void) -> Status;
/// `hsa_amd_memory_unlock`.
pub type MemoryUnlockFn = unsafe extern "C" fn(*mut c_void) -> Status;
/// `hsa_amd_pointer_info`.
pub type PointerInfoFn = unsafe extern "C" fn(
    *const c_void,
    *mut PointerInfo,
    Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    *mut u32,
    *mut *mut u64,
) -> Status;
/// Callback over the loaded code objects of an executable: executable, code object, data.
pub type LoadedCallback = unsafe extern "C" fn(u64, u64, *mut c_void) -> Status;
/// `hsa_ven_amd_loader_executable_iterate_loaded_code_objects`.
pub type IterateLoadedFn = unsafe extern "C" fn(u64, LoadedCallback, *mut c_void) -> Status;

/// `hsa_ven_amd_loader_query_host_address`.
pub type HostAddressFn = unsafe extern "C" fn(*const c_void, *mut *const c_void) -> Status;

/// `hsa_ven_amd_loader_1_03_pfn_t`: the functions of the loader extension. A runtime with an earlier minor
/// version fills only the first ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LoaderTable {
    /// `hsa_ven_amd_loader_query_host_address`.
    pub query_host_address: Option<HostAddressFn>,
    /// `hsa_ven_amd_loader_query_segment_descriptors`.
    pub query_segment_descriptors: Option<unsafe extern "C" fn()>,
    /// `hsa_ven_amd_loader_query_executable`.
    pub query_executable: Option<unsafe extern "C" fn()>,
    /// `hsa_ven_amd_loader_executable_iterate_loaded_code_objects`, from 1.01.
    pub iterate_loaded_code_objects: Option<IterateLoadedFn>,
    /// `hsa_ven_amd_loader_loaded_code_object_get_info`, from 1.01.
    pub loaded_code_object_get_info: Option<GetInfoFn>,
    /// `hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size`, from 1.02.
    pub reader_from_file: Option<unsafe extern "C" fn()>,
    /// `hsa_ven_amd_loader_iterate_executables`, from 1.03.
    pub iterate_executables: Option<IterateFn>,
}
