//! The types and constants of the CUDA driver that rocov uses, as cuda.h declares them (CUDA 11.1 to 13.0).

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `CUresult`.
pub type CudaStatus = c_int;
/// `CUDA_SUCCESS`.
pub const SUCCESS: CudaStatus = 0;

/// `CUDA_ERROR_DEINITIALIZED`: the driver is being taken down, because the process ends.
pub const DEINITIALIZED: CudaStatus = 4;
/// `CUDA_ERROR_NOT_FOUND`.
pub const NOT_FOUND: CudaStatus = 500;
/// `CUDA_ERROR_NOT_READY`.
pub const NOT_READY: CudaStatus = 600;

/// The errors after which no call of the context works any more, because a kernel or the GPU has failed:
/// `CUDA_ERROR_ECC_UNCORRECTABLE`, `CUDA_ERROR_NVLINK_UNCORRECTABLE`, `CUDA_ERROR_CONTAINED`,
/// `CUDA_ERROR_ILLEGAL_ADDRESS`, `CUDA_ERROR_LAUNCH_TIMEOUT`, `CUDA_ERROR_ASSERT`, `CUDA_ERROR_HARDWARE_STACK_ERROR`,
/// `CUDA_ERROR_ILLEGAL_INSTRUCTION`, `CUDA_ERROR_MISALIGNED_ADDRESS`, `CUDA_ERROR_INVALID_ADDRESS_SPACE`,
/// `CUDA_ERROR_INVALID_PC`, `CUDA_ERROR_LAUNCH_FAILED` and `CUDA_ERROR_TENSOR_MEMORY_LEAK`.
pub(super) const FAULTS: [CudaStatus; 13] = [
    214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721,
];

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the program's streams.
pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_LEGACY`: the default stream of a context, for which its blocking streams wait.
pub(super) const LEGACY_STREAM: Handle = std::ptr::without_provenance_mut(1);
/// `CU_EVENT_DISABLE_TIMING`.
pub(super) const EVENT_DISABLE_TIMING: c_uint = 2;
/// `CU_MEMHOSTALLOC_PORTABLE`: all contexts may copy to the memory.
pub(super) const HOST_MEMORY_PORTABLE: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: calls of this thread do not end a capture of the program.
pub(super) const CAPTURE_MODE_RELAXED: c_int = 2;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(super) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(super) const COMPUTE_CAPABILITY_MINOR: c_int = 76;

/// A handle: `CUcontext`, `CUmodule`, `CUlibrary`, `CUstream` or `CUevent`.
pub type Handle = *mut c_void;

pub(super) type DriverGetVersionFn = unsafe extern "C" fn(*mut c_int) -> CudaStatus;
pub(super) type DeviceGetCountFn = unsafe extern "C" fn(*mut c_int) -> CudaStatus;
pub(super) type DeviceGetFn = unsafe extern "C" fn(*mut c_int, c_int) -> CudaStatus;
pub(super) type DeviceGetAttributeFn = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> CudaStatus;
pub(super) type DeviceGetUuidFn = unsafe extern "C" fn(*mut [u8; 16], c_int) -> CudaStatus;
pub(super) type PushFn = unsafe extern "C" fn(Handle) -> CudaStatus;
pub(super) type MakeFn = unsafe extern "C" fn(*mut Handle, c_uint) -> CudaStatus;
pub(super) type OfHandleFn = unsafe extern "C" fn(Handle) -> CudaStatus;
pub(super) type OutFn = unsafe extern "C" fn(*mut Handle) -> CudaStatus;
pub(super) type GetModuleFn = unsafe extern "C" fn(*mut Handle, Handle) -> CudaStatus;
pub(super) type GetGlobalFn =
    unsafe extern "C" fn(*mut u64, *mut usize, Handle, *const c_char) -> CudaStatus;
pub(super) type CopyToHostFn = unsafe extern "C" fn(*mut c_void, u64, usize, Handle) -> CudaStatus;
pub(super) type CopyToDeviceFn =
    unsafe extern "C" fn(u64, *const c_void, usize, Handle) -> CudaStatus;
pub(super) type HostAllocFn = unsafe extern "C" fn(*mut *mut c_void, usize, c_uint) -> CudaStatus;
pub(super) type HostFreeFn = unsafe extern "C" fn(*mut c_void) -> CudaStatus;
pub(super) type RecordFn = unsafe extern "C" fn(Handle, Handle) -> CudaStatus;
pub(super) type ExchangeModeFn = unsafe extern "C" fn(*mut c_int) -> CudaStatus;
