//! Finds the CUDA driver that the process has loaded, and its functions.
#![expect(unsafe_code, reason = "calls the CUDA driver")]

use std::ffi::{CString, c_int, c_void};
use std::mem::transmute_copy;

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::device::DeviceError;
use crate::device::cuda::abi;
use crate::device::cuda::abi::{CudaStatus, Handle};
use crate::device::cuda::captures::Captures;
use crate::support::memory::zeroed;

/// The driver's library. Its name has not changed since CUDA 2.
pub const CUDA_LIBRARY: &str = "libcuda.so.1";
/// `RTLD_NOLOAD` of glibc and musl: opens a library only if it is loaded.
const RTLD_NOLOAD: c_int = 4;

/// The functions of the loaded driver that rocov calls.
#[derive(Debug)]
pub(super) struct Driver {
    driver_get_version: abi::DriverGetVersionFn,
    device_get_count: abi::DeviceGetCountFn,
    device_get: abi::DeviceGetFn,
    device_get_attribute: abi::DeviceGetAttributeFn,
    device_get_uuid: abi::DeviceGetUuidFn,
    push_context: abi::PushFn,
    pop_context: abi::OutFn,
    exchange_mode: abi::ExchangeModeFn,
    get_global: abi::GetGlobalFn,
    stream_create: abi::MakeFn,
    stream_synchronize: abi::OfHandleFn,
    stream_destroy: abi::OfHandleFn,
    copy_to_host: abi::CopyToHostFn,
    copy_to_device: abi::CopyToDeviceFn,
    host_alloc: abi::HostAllocFn,
    host_free: abi::HostFreeFn,
    event_create: abi::MakeFn,
    event_record: abi::RecordFn,
    event_query: abi::OfHandleFn,
    event_destroy: abi::OfHandleFn,
    /// From CUDA 12.0 on.
    library_get_module: Option<abi::GetModuleFn>,
    /// From CUDA 12.5 on.
    context_record: Option<abi::RecordFn>,
    /// Keeps the driver mapped while its functions can be called.
    _library: Library,
}

/// The driver's function `name`.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn function<T: Copy>(library: &Library, name: &'static str) -> Result<T, DeviceError> {
    // SAFETY: `get` only reads an address, whatever is there.
    match unsafe { library.get::<*mut c_void>(name) } {
        // SAFETY: as the caller promises.
        Ok(address) => Ok(unsafe { transmute_copy::<*mut c_void, T>(&*address) }),
        Err(error) => Err(DeviceError::MissingFunction {
            library: CUDA_LIBRARY,
            symbol: name,
            reason: error.to_string(),
        }),
    }
}

/// Calls [`function()`] for a field with the type of the function.
macro_rules! function {
    ($library:expr, $name:literal) => {
        // SAFETY: the type is the one that cuda.h declares for the name.
        unsafe { function(&$library, $name) }
    };
}

/// Turns a status into a result that names the call.
pub(super) fn check(call: &'static str, status: CudaStatus) -> Result<(), DeviceError> {
    match status {
        abi::SUCCESS => Ok(()),
        status if abi::FAULTS.contains(&status) => Err(DeviceError::Faulted { status }),
        status => Err(DeviceError::Call {
            call,
            status: status as u32,
        }),
    }
}

/// Returns whether `error` is the driver's answer while it is taken down.
pub(super) fn is_gone(error: &DeviceError) -> bool {
    matches!(error, DeviceError::Call { status, .. } if *status == abi::DEINITIALIZED as u32)
}

impl Driver {
    /// The driver's functions. `None` if no driver is loaded.
    ///
    /// # Errors
    /// Fails if the loaded driver lacks one of the functions.
    pub(super) fn find() -> Result<Option<Self>, DeviceError> {
        // SAFETY: NOLOAD runs no initialiser and only takes a reference.
        let opened = unsafe { Library::open(Some(CUDA_LIBRARY), RTLD_NOLOAD | RTLD_LAZY) };
        let Ok(library) = opened else {
            return Ok(None);
        };
        Ok(Some(Self {
            driver_get_version: function!(library, "cuDriverGetVersion")?,
            device_get_count: function!(library, "cuDeviceGetCount")?,
            device_get: function!(library, "cuDeviceGet")?,
            device_get_attribute: function!(library, "cuDeviceGetAttribute")?,
            device_get_uuid: function!(library, "cuDeviceGetUuid")?,
            push_context: function!(library, "cuCtxPushCurrent_v2")?,
            pop_context: function!(library, "cuCtxPopCurrent_v2")?,
            exchange_mode: function!(library, "cuThreadExchangeStreamCaptureMode")?,
            get_global: function!(library, "cuModuleGetGlobal_v2")?,
            stream_create: function!(library, "cuStreamCreate")?,
            stream_synchronize: function!(library, "cuStreamSynchronize")?,
            stream_destroy: function!(library, "cuStreamDestroy_v2")?,
            copy_to_host: function!(library, "cuMemcpyDtoHAsync_v2")?,
            copy_to_device: function!(library, "cuMemcpyHtoDAsync_v2")?,
            host_alloc: function!(library, "cuMemHostAlloc")?,
            host_free: function!(library, "cuMemFreeHost")?,
            event_create: function!(library, "cuEventCreate")?,
            event_record: function!(library, "cuEventRecord")?,
            event_query: function!(library, "cuEventQuery")?,
            event_destroy: function!(library, "cuEventDestroy_v2")?,
            library_get_module: function!(library, "cuLibraryGetModule").ok(),
            context_record: function!(library, "cuCtxRecordEvent").ok(),
            _library: library,
        }))
    }

    /// Returns whether the driver answers. It does not once it is taken down at the end of the process.
    pub(super) fn is_running(&self) -> bool {
        let mut count = 0;
        // SAFETY: the call writes an int.
        let status = unsafe { (self.device_get_count)(&raw mut count) };
        status != abi::DEINITIALIZED
    }

    /// The version of CUDA that the driver is for, such as 13000 for 13.0.
    pub(super) fn version(&self) -> i32 {
        let mut version = 0;
        // SAFETY: the call writes an int.
        let status = unsafe { (self.driver_get_version)(&raw mut version) };
        if status == abi::SUCCESS { version } else { 0 }
    }

    /// The number of GPUs.
    pub(super) fn devices(&self) -> Result<i32, DeviceError> {
        let mut count = 0;
        // SAFETY: the call writes an int.
        check("cuDeviceGetCount", unsafe {
            (self.device_get_count)(&raw mut count)
        })?;
        Ok(count)
    }

    /// The compute capability of a GPU, such as `(9, 0)`.
    pub(super) fn capability(&self, ordinal: i32) -> Result<(i32, i32), DeviceError> {
        let device = self.device(ordinal)?;
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the call writes an int.
            let status = unsafe { (self.device_get_attribute)(&raw mut value, attribute, device) };
            check("cuDeviceGetAttribute", status).map(|()| value)
        };
        Ok((
            attribute(abi::COMPUTE_CAPABILITY_MAJOR)?,
            attribute(abi::COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    /// The UUID of a GPU, if the driver reports it.
    pub(super) fn uuid(&self, ordinal: i32) -> Option<[u8; 16]> {
        let device = self.device(ordinal).ok()?;
        let mut uuid = [0; 16];
        // SAFETY: the call writes 16 bytes.
        let status = unsafe { (self.device_get_uuid)(&raw mut uuid, device) };
        (status == abi::SUCCESS).then_some(uuid)
    }

    fn device(&self, ordinal: i32) -> Result<c_int, DeviceError> {
        let mut device = 0;
        // SAFETY: the call writes an int.
        check("cuDeviceGet", unsafe {
            (self.device_get)(&raw mut device, ordinal)
        })?;
        Ok(device)
    }

    /// Makes `context` the thread's current one until the result is dropped.
    ///
    /// # Errors
    /// Fails if the context is gone.
    pub(super) fn enter(&self, context: u64) -> Result<Entered<'_>, DeviceError> {
        // SAFETY: the driver checks the handle of a context.
        check("cuCtxPushCurrent", unsafe {
            (self.push_context)(context as Handle)
        })?;
        let mut mode = abi::CAPTURE_MODE_RELAXED;
        // SAFETY: the call exchanges the mode of this thread. A driver that cannot leaves it as it is.
        let exchanged = unsafe { (self.exchange_mode)(&raw mut mode) };
        Ok(Entered {
            driver: self,
            mode: (exchanged == abi::SUCCESS).then_some(mode),
        })
    }
}

/// A context that is current, with captures of the program left alone. All calls that need a context are here.
#[derive(Debug)]
pub(super) struct Entered<'a> {
    driver: &'a Driver,
    /// The thread's mode of captures before.
    mode: Option<c_int>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(mut mode) = self.mode {
            // SAFETY: as in `enter`.
            unsafe { (self.driver.exchange_mode)(&raw mut mode) };
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: the call writes a handle.
        unsafe { (self.driver.pop_context)(&raw mut context) };
    }
}

impl Entered<'_> {
    /// The device address and the size in bytes of the variable `name` of `module`. `None` if it has none.
    pub(super) fn global(
        &self,
        module: u64,
        name: &str,
    ) -> Result<Option<(u64, u64)>, DeviceError> {
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let (mut address, mut size) = (0, 0);
        // SAFETY: the handle is of a loaded module, and the call writes an address and a size.
        let status = unsafe {
            (self.driver.get_global)(
                &raw mut address,
                &raw mut size,
                module as Handle,
                name.as_ptr(),
            )
        };
        match status {
            abi::NOT_FOUND => Ok(None),
            status => check("cuModuleGetGlobal", status).map(|()| Some((address, size as u64))),
        }
    }

    /// The module of `library` in this context. Loads it if it is not loaded yet.
    pub(super) fn module_of(&self, library: u64) -> Result<u64, DeviceError> {
        const NAME: &str = "cuLibraryGetModule";
        let Some(get) = self.driver.library_get_module else {
            return check(NAME, abi::NOT_FOUND).map(|()| 0);
        };
        let mut module = std::ptr::null_mut();
        // SAFETY: the handle is of a loaded library, and the call writes a handle.
        check(NAME, unsafe { get(&raw mut module, library as Handle) })?;
        Ok(module as u64)
    }

    /// Makes a stream that waits for no other.
    pub(super) fn stream(&self) -> Result<Stream<'_>, DeviceError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the call writes a handle.
        check("cuStreamCreate", unsafe {
            (self.driver.stream_create)(&raw mut handle, abi::STREAM_NON_BLOCKING)
        })?;
        Ok(Stream {
            driver: self.driver,
            handle,
        })
    }

    /// Records everything that the context has been given up to now. `None` while the program captures a graph, which
    /// this would invalidate. Before CUDA 12.5 there is no such call: only the
    /// legacy default stream is recorded then, and the streams that wait for it.
    pub(super) fn work_so_far(
        &self,
        context: u64,
        captures: &Captures,
    ) -> Result<Option<Work<'_>>, DeviceError> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the call writes a handle.
        check("cuEventCreate", unsafe {
            (self.driver.event_create)(&raw mut event, abi::EVENT_DISABLE_TIMING)
        })?;
        let work = Work {
            driver: self.driver,
            event,
        };
        // SAFETY: the context is current, and the event was made in it.
        let record = || unsafe {
            match self.driver.context_record {
                Some(record) => check("cuCtxRecordEvent", record(context as Handle, event)),
                None => check(
                    "cuEventRecord",
                    (self.driver.event_record)(event, abi::LEGACY_STREAM),
                ),
            }
        };
        captures
            .without(record)
            .transpose()
            .map(|done| done.map(|()| work))
    }
}

/// The work of a context up to a moment.
#[derive(Debug)]
pub(super) struct Work<'a> {
    driver: &'a Driver,
    event: Handle,
}

impl Work<'_> {
    /// Returns whether the work is done. The context is current.
    pub(super) fn is_done(&self) -> Result<bool, DeviceError> {
        // SAFETY: the event was made, and is destroyed with this value.
        match unsafe { (self.driver.event_query)(self.event) } {
            abi::NOT_READY => Ok(false),
            status => check("cuEventQuery", status).map(|()| true),
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        // SAFETY: the event was made and not destroyed.
        unsafe { (self.driver.event_destroy)(self.event) };
    }
}

/// A stream of rocov's own.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    driver: &'a Driver,
    handle: Handle,
}

impl Stream<'_> {
    /// Begins a copy of device memory to pinned memory.
    ///
    /// # Safety
    /// `into` has room for `bytes` bytes until [`Stream::finish`] has returned.
    pub(super) unsafe fn begin_read(
        &self,
        into: *mut u8,
        address: u64,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the driver checks the device addresses, and the caller promises the rest.
        let status =
            unsafe { (self.driver.copy_to_host)(into.cast(), address, bytes, self.handle) };
        check("cuMemcpyDtoHAsync", status)
    }

    /// Begins a copy to device memory.
    ///
    /// # Safety
    /// `from` has `bytes` bytes until [`Stream::finish`] has returned.
    pub(super) unsafe fn begin_write(
        &self,
        address: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the driver checks the device addresses, and the caller promises the rest.
        let status =
            unsafe { (self.driver.copy_to_device)(address, from.cast(), bytes, self.handle) };
        check("cuMemcpyHtoDAsync", status)
    }

    /// Waits for all copies that were begun.
    pub(super) fn finish(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream was made, and is destroyed with this value.
        check("cuStreamSynchronize", unsafe {
            (self.driver.stream_synchronize)(self.handle)
        })
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        // SAFETY: the stream was made and not destroyed.
        unsafe { (self.driver.stream_destroy)(self.handle) };
    }
}

/// Host memory to which the GPU copies.
#[derive(Debug)]
pub(super) struct Staging<'a> {
    /// The driver, if the memory is pinned.
    pinned_by: Option<&'a Driver>,
    start: *mut u8,
    bytes: usize,
    /// The memory, if it is not pinned.
    _pageable: Vec<u8>,
}

impl<'a> Staging<'a> {
    /// Allocates `bytes` bytes that are pinned. A context is current. The driver waits for its kernels when the memory is
    /// freed, so it must be idle.
    pub(super) fn pinned(driver: &'a Driver, bytes: usize) -> Result<Self, DeviceError> {
        let mut start = std::ptr::null_mut();
        // SAFETY: the call writes an address.
        check("cuMemHostAlloc", unsafe {
            (driver.host_alloc)(&raw mut start, bytes, abi::HOST_MEMORY_PORTABLE)
        })?;
        let start = start.cast::<u8>();
        Ok(Self {
            pinned_by: Some(driver),
            start,
            bytes,
            _pageable: Vec::new(),
        })
    }

    /// Allocates `bytes` bytes of usual memory. Each copy to it ends before its call does.
    pub(super) fn pageable(bytes: usize) -> Result<Self, DeviceError> {
        let mut pageable = zeroed(bytes as u64)?;
        Ok(Self {
            pinned_by: None,
            start: pageable.as_mut_ptr(),
            bytes,
            _pageable: pageable,
        })
    }

    /// The size in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// The address of byte `at`.
    pub(super) fn address(&self, at: usize) -> *mut u8 {
        debug_assert!(at <= self.bytes, "inside the memory");
        // SAFETY: the address is inside the allocation or at its end.
        unsafe { self.start.add(at) }
    }

    /// The first `bytes` bytes. No copy is under way.
    pub(super) fn contents(&self, bytes: usize) -> &[u8] {
        assert!(bytes <= self.bytes, "inside the memory");
        // SAFETY: the allocation has `self.bytes` bytes, at least `bytes` (checked above), which copies have written.
        unsafe { std::slice::from_raw_parts(self.start, bytes) }
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if let Some(driver) = self.pinned_by {
            // SAFETY: the memory was allocated and not freed.
            unsafe { (driver.host_free)(self.start.cast()) };
        }
    }
}
