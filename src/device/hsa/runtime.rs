//! Finds the HSA runtime that the process has loaded, and its functions.

use std::ffi::{CStr, c_int, c_void};
use std::mem::size_of;

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::device::DeviceError;
use crate::device::hsa::abi;
use crate::device::hsa::abi::LoaderTable;

/// The runtime's soname, in all releases since 2016.
pub const HSA_LIBRARY: &str = "libhsa-runtime64.so.1";
/// `RTLD_NOLOAD` of glibc and musl: opens a library only if it is loaded.
const RTLD_NOLOAD: c_int = 4;

/// The functions of a loaded HSA runtime that the drain calls.
///
/// They come from the runtime's own handle. `dlsym(RTLD_DEFAULT)` would find the interposers of librocov, and
/// would miss a runtime that was loaded with `RTLD_LOCAL` (by Python's ctypes, for example).
#[derive(Debug)]
pub(super) struct Api {
    pub(super) system_get_info: abi::SystemGetInfoFn,
    pub(super) iterate_agents: abi::IterateFn,
    pub(super) agent_get_info: abi::GetInfoFn,
    pub(super) isa_get_info: abi::GetInfoFn,
    pub(super) symbol_by_name: abi::SymbolByNameFn,
    pub(super) symbol_get_info: abi::GetInfoFn,
    pub(super) memory_copy: abi::MemoryCopyFn,
    pub(super) pointer_info: abi::PointerInfoFn,
    extension_table: abi::ExtensionTableFn,
    /// Keeps the runtime mapped while its functions can be called.
    library: Library,
}

/// The functions of a loaded HSA runtime for a wait on a queue. Must not outlive the [`Api`] that they come
/// from.
#[derive(Debug)]
pub(super) struct QueueApi {
    pub(super) load_read_index: abi::LoadIndexFn,
    pub(super) load_write_index: abi::LoadIndexFn,
    pub(super) cas_write_index: abi::CasIndexFn,
    pub(super) load_signal: abi::SignalLoadFn,
    pub(super) signals: SignalApi,
}

/// The functions of a loaded HSA runtime for concurrent copies. Must not outlive the [`Api`] that they come
/// from.
#[derive(Debug)]
pub(super) struct CopyApi {
    pub(super) async_copy: abi::AsyncCopyFn,
    pub(super) lock_memory: abi::MemoryLockFn,
    pub(super) unlock_memory: abi::MemoryUnlockFn,
    pub(super) wait_signal: abi::SignalWaitFn,
    pub(super) signals: SignalApi,
}

/// The functions and the agent for copies.
#[derive(Debug)]
pub(super) struct Copier {
    pub(super) api: CopyApi,
    /// The handle of the CPU agent, which owns the window's memory.
    pub(super) cpu: u64,
}

/// The functions of a loaded HSA runtime for memory pools. Must not outlive the [`Api`] that they come from.
#[derive(Debug)]
pub(super) struct PoolApi {
    pub(super) iterate: abi::IteratePoolsFn,
    pub(super) get_info: abi::GetInfoFn,
    pub(super) agent_get_info: abi::AgentPoolInfoFn,
}

/// The functions of a loaded HSA runtime that make, set and destroy signals. Must not outlive the [`Api`] that
/// they come from.
#[derive(Debug)]
pub(super) struct SignalApi {
    pub(super) create: abi::SignalCreateFn,
    pub(super) destroy: abi::SignalDestroyFn,
    pub(super) store: abi::SignalStoreFn,
}

impl SignalApi {
    /// Makes a signal with this value, for which any agent may wait. Returns its handle.
    pub(super) fn make(&self, value: i64) -> Result<u64, DeviceError> {
        let mut signal = 0;
        // SAFETY: the call reads no list of agents, and writes the handle to `signal`.
        let status = unsafe { (self.create)(value, 0, std::ptr::null(), &raw mut signal) };
        check("hsa_signal_create", status)?;
        Ok(signal)
    }

    /// Makes a signal with this value, for which only this agent may wait: the runtime then raises no interrupt at the end
    /// of a packet, which would wake its threads. The host may look at the value. Returns the handle.
    pub(super) fn make_without_interrupt(
        &self,
        value: i64,
        agent: u64,
    ) -> Result<u64, DeviceError> {
        let mut signal = 0;
        // SAFETY: the call reads a list of one agent, and writes the handle to `signal`.
        let status = unsafe { (self.create)(value, 1, &raw const agent, &raw mut signal) };
        check("hsa_signal_create", status)?;
        Ok(signal)
    }

    /// Sets a signal or a doorbell.
    ///
    /// # Safety
    /// The signal was not destroyed.
    pub(super) unsafe fn set(&self, signal: u64, value: i64) {
        // SAFETY: the caller promises it.
        unsafe { (self.store)(signal, value) };
    }

    /// Destroys a signal.
    ///
    /// # Safety
    /// The signal comes from [`SignalApi::make`] or [`SignalApi::make_without_interrupt`], was not destroyed, and no
    /// agent uses it any more.
    pub(super) unsafe fn destroy(&self, signal: u64) {
        // SAFETY: the caller promises it.
        unsafe { (self.destroy)(signal) };
    }
}

/// The runtime's function `name`.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn function<T: Copy>(library: &Library, name: &'static str) -> Result<T, DeviceError> {
    let address = address(library, name)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&address) })
}

/// The address of the runtime's function `name`.
fn address(library: &Library, name: &'static str) -> Result<*mut c_void, DeviceError> {
    // SAFETY: `get` only reads an address, whatever is there.
    match unsafe { library.get::<*mut c_void>(name) } {
        Ok(symbol) => Ok(*symbol),
        Err(error) => Err(DeviceError::MissingFunction {
            library: HSA_LIBRARY,
            symbol: name,
            reason: error.to_string(),
        }),
    }
}

/// Calls [`function()`] for a field with the type of the function. Returns the error from the caller.
macro_rules! function {
    ($library:expr, $name:literal) => {
        // SAFETY: the type is the one that hsa.h or hsa_ext_amd.h declares for the name.
        unsafe { function(&$library, $name) }?
    };
}

impl Api {
    /// The runtime's functions. `None` if no HSA runtime is loaded.
    ///
    /// # Errors
    /// Fails if the loaded runtime lacks one of the functions.
    pub(super) fn find() -> Result<Option<Self>, DeviceError> {
        if !is_loaded() {
            return Ok(None);
        }
        // SAFETY: NOLOAD runs no initialiser and only takes a reference.
        let opened = unsafe { Library::open(Some(HSA_LIBRARY), RTLD_NOLOAD | RTLD_LAZY) };
        let Ok(library) = opened else {
            return Ok(None);
        };
        Ok(Some(Self {
            system_get_info: function!(library, "hsa_system_get_info"),
            iterate_agents: function!(library, "hsa_iterate_agents"),
            agent_get_info: function!(library, "hsa_agent_get_info"),
            isa_get_info: function!(library, "hsa_isa_get_info_alt"),
            symbol_by_name: function!(library, "hsa_executable_get_symbol_by_name"),
            symbol_get_info: function!(library, "hsa_executable_symbol_get_info"),
            memory_copy: function!(library, "hsa_memory_copy"),
            pointer_info: function!(library, "hsa_amd_pointer_info"),
            extension_table: function!(library, "hsa_system_get_major_extension_table"),
            library,
        }))
    }

    /// The functions for queues and signals.
    ///
    /// # Errors
    /// Fails if the runtime lacks one of them.
    pub(super) fn queues(&self) -> Result<QueueApi, DeviceError> {
        Ok(QueueApi {
            load_read_index: function!(self.library, "hsa_queue_load_read_index_scacquire"),
            load_write_index: function!(self.library, "hsa_queue_load_write_index_scacquire"),
            cas_write_index: function!(self.library, "hsa_queue_cas_write_index_scacq_screl"),
            load_signal: function!(self.library, "hsa_signal_load_scacquire"),
            signals: self.signals()?,
        })
    }

    /// The functions for asynchronous copies.
    ///
    /// # Errors
    /// Fails if the runtime lacks one of them.
    pub(super) fn copies(&self) -> Result<CopyApi, DeviceError> {
        Ok(CopyApi {
            async_copy: function!(self.library, "hsa_amd_memory_async_copy"),
            lock_memory: function!(self.library, "hsa_amd_memory_lock"),
            unlock_memory: function!(self.library, "hsa_amd_memory_unlock"),
            wait_signal: function!(self.library, "hsa_signal_wait_scacquire"),
            signals: self.signals()?,
        })
    }

    /// The functions for memory pools.
    ///
    /// # Errors
    /// Fails if the runtime lacks one of them.
    pub(super) fn pools(&self) -> Result<PoolApi, DeviceError> {
        Ok(PoolApi {
            iterate: function!(self.library, "hsa_amd_agent_iterate_memory_pools"),
            get_info: function!(self.library, "hsa_amd_memory_pool_get_info"),
            agent_get_info: function!(self.library, "hsa_amd_agent_memory_pool_get_info"),
        })
    }

    /// The functions for signals, and the one that has the runtime call back.
    ///
    /// # Errors
    /// Fails if the runtime lacks one of them.
    pub(super) fn callbacks(&self) -> Result<(SignalApi, abi::AsyncHandlerFn), DeviceError> {
        let call_back = function!(self.library, "hsa_amd_signal_async_handler");
        Ok((self.signals()?, call_back))
    }

    fn signals(&self) -> Result<SignalApi, DeviceError> {
        Ok(SignalApi {
            create: function!(self.library, "hsa_signal_create"),
            destroy: function!(self.library, "hsa_signal_destroy"),
            store: function!(self.library, "hsa_signal_store_screlease"),
        })
    }

    /// Returns whether the runtime is started. A closed runtime fails this call with its own status. Unlike
    /// `hsa_init`, the call starts nothing. After any other failure the runtime counts as running: later
    /// calls then report their failures, and no counts are lost silently.
    #[must_use]
    pub(super) fn is_running(&self) -> bool {
        let mut timestamp = 0_u64;
        // SAFETY: the attribute is a u64.
        let status = unsafe {
            (self.system_get_info)(abi::SYSTEM_INFO_TIMESTAMP, (&raw mut timestamp).cast())
        };
        status != abi::NOT_INITIALIZED
    }

    /// The functions of the loader extension.
    pub(super) fn loader_table(&self) -> Result<LoaderTable, DeviceError> {
        let mut table = LoaderTable::default();
        // SAFETY: major version 1 of the extension fills at most the given number of bytes with
        // the function pointers that `LoaderTable` mirrors.
        let status = unsafe {
            (self.extension_table)(
                abi::EXTENSION_AMD_LOADER,
                1,
                size_of::<LoaderTable>(),
                (&raw mut table).cast(),
            )
        };
        check("hsa_system_get_major_extension_table", status)?;
        Ok(table)
    }
}

/// Turns a status into a result that names the call.
pub(super) fn check(call: &'static str, status: abi::Status) -> Result<(), DeviceError> {
    match status {
        abi::SUCCESS => Ok(()),
        status => Err(DeviceError::Call { call, status }),
    }
}

/// Returns whether an HSA runtime is mapped into the process.
///
/// Walks the dynamic linker's list. `dlopen(RTLD_NOLOAD)` would search the file system for a library that is
/// not loaded: system calls, in a process that does not use GPUs.
#[must_use]
pub fn is_loaded() -> bool {
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a valid object.
        let name = unsafe { (*object).dlpi_name };
        if name.is_null() {
            return 0;
        }
        // SAFETY: a non-null name is a NUL-terminated string.
        let path = unsafe { CStr::from_ptr(name) }.to_bytes();
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        c_int::from(file.starts_with(b"libhsa-runtime64.so"))
    }
    // SAFETY: the callback matches the interface and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) != 0 }
}
