//! Finding the HSA runtime that is in the process already.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;

use libloading::os::unix::{Library, RTLD_LAZY};

use super::abi::{self, LoaderTable};
use crate::device::DeviceError;

/// The runtime's soname. All releases since 2016 have had it.
pub const HSA_LIBRARY: &str = "libhsa-runtime64.so.1";
/// `RTLD_NOLOAD` of glibc and musl: a handle of a library only if it is loaded.
const RTLD_NOLOAD: c_int = 4;

/// The functions of a loaded HSA runtime that the drain calls.
///
/// Looked up in the runtime's own handle: `dlsym(RTLD_DEFAULT)` would find the interposers of
/// librocov, and misses a runtime that came in under `RTLD_LOCAL` (Python's ctypes).
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

/// The functions of a loaded HSA runtime that waiting for a queue takes. Not to outlive the
/// [`Api`] that they come from.
#[derive(Debug)]
pub(super) struct QueueApi {
    pub(super) load_read_index: abi::LoadIndexFn,
    pub(super) load_write_index: abi::LoadIndexFn,
    pub(super) cas_write_index: abi::CasIndexFn,
    pub(super) create_signal: abi::SignalCreateFn,
    pub(super) destroy_signal: abi::SignalDestroyFn,
    pub(super) load_signal: abi::SignalLoadFn,
    pub(super) store_signal: abi::SignalStoreFn,
}

/// The functions of a loaded HSA runtime that copies take of which several are under way. Not to
/// outlive the [`Api`] that they come from.
#[derive(Debug)]
pub(super) struct CopyApi {
    pub(super) async_copy: abi::AsyncCopyFn,
    pub(super) lock_memory: abi::MemoryLockFn,
    pub(super) unlock_memory: abi::MemoryUnlockFn,
    pub(super) create_signal: abi::SignalCreateFn,
    pub(super) destroy_signal: abi::SignalDestroyFn,
    pub(super) store_signal: abi::SignalStoreFn,
    pub(super) wait_signal: abi::SignalWaitFn,
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
    // SAFETY: an address, whatever is there.
    match unsafe { library.get::<*mut c_void>(name) } {
        Ok(symbol) => Ok(*symbol),
        Err(error) => Err(DeviceError::MissingFunction {
            library: HSA_LIBRARY,
            symbol: name,
            reason: error.to_string(),
        }),
    }
}

/// [`function`] for a field whose type is that of the function, or the error out of the caller.
macro_rules! function {
    ($library:expr, $name:literal) => {
        // SAFETY: the type is the one that hsa.h or hsa_ext_amd.h declares for the name.
        unsafe { function(&$library, $name) }?
    };
}

impl Api {
    /// The runtime's functions, or `None` where no HSA runtime is loaded.
    ///
    /// # Errors
    /// Fails where the loaded runtime lacks one of the functions.
    pub(super) fn find() -> Result<Option<Api>, DeviceError> {
        if !is_loaded() {
            return Ok(None);
        }
        // SAFETY: NOLOAD runs no initialiser; it only takes a reference.
        let opened = unsafe { Library::open(Some(HSA_LIBRARY), RTLD_NOLOAD | RTLD_LAZY) };
        let Ok(library) = opened else {
            return Ok(None);
        };
        Ok(Some(Api {
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

    /// The functions on queues and signals.
    ///
    /// # Errors
    /// Fails where the runtime lacks one of them.
    pub(super) fn queues(&self) -> Result<QueueApi, DeviceError> {
        Ok(QueueApi {
            load_read_index: function!(self.library, "hsa_queue_load_read_index_scacquire"),
            load_write_index: function!(self.library, "hsa_queue_load_write_index_scacquire"),
            cas_write_index: function!(self.library, "hsa_queue_cas_write_index_scacq_screl"),
            create_signal: function!(self.library, "hsa_signal_create"),
            destroy_signal: function!(self.library, "hsa_signal_destroy"),
            load_signal: function!(self.library, "hsa_signal_load_scacquire"),
            store_signal: function!(self.library, "hsa_signal_store_screlease"),
        })
    }

    /// The functions for copies that nobody waits for.
    ///
    /// # Errors
    /// Fails where the runtime lacks one of them.
    pub(super) fn copies(&self) -> Result<CopyApi, DeviceError> {
        Ok(CopyApi {
            async_copy: function!(self.library, "hsa_amd_memory_async_copy"),
            lock_memory: function!(self.library, "hsa_amd_memory_lock"),
            unlock_memory: function!(self.library, "hsa_amd_memory_unlock"),
            create_signal: function!(self.library, "hsa_signal_create"),
            destroy_signal: function!(self.library, "hsa_signal_destroy"),
            store_signal: function!(self.library, "hsa_signal_store_screlease"),
            wait_signal: function!(self.library, "hsa_signal_wait_scacquire"),
        })
    }

    /// Whether the runtime is started. A closed one says so; the probe itself starts nothing, unlike
    /// `hsa_init`. With any other failure it is taken for running: what else fails is then said, where
    /// counts would be lost without a word.
    #[must_use]
    pub(super) fn is_running(&self) -> bool {
        let mut timestamp = 0_u64;
        // SAFETY: the attribute is a u64.
        let status = unsafe {
            (self.system_get_info)(abi::SYSTEM_INFO_TIMESTAMP, (&raw mut timestamp).cast())
        };
        status != abi::NOT_INITIALIZED
    }

    /// The loader extension's functions.
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

/// Whether an HSA runtime is mapped into the process.
///
/// Walks the dynamic linker's list, because `dlopen(RTLD_NOLOAD)` of a library that is not
/// loaded still searches the file system for it: system calls, in a process that has nothing to
/// do with GPUs.
#[must_use]
pub fn is_loaded() -> bool {
    unsafe extern "C" fn visit(object: *const PhdrInfo, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a valid object.
        let name = unsafe { (*object).name };
        if name.is_null() {
            return 0;
        }
        // SAFETY: a non-null name is a NUL-terminated string.
        let path = unsafe { CStr::from_ptr(name) }.to_bytes();
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        c_int::from(file.starts_with(b"libhsa-runtime64.so"))
    }
    // SAFETY: the callback matches the interface and keeps nothing.
    unsafe { dl_iterate_phdr(visit, std::ptr::null_mut()) != 0 }
}

/// The leading fields of `struct dl_phdr_info` of <link.h>.
#[repr(C)]
struct PhdrInfo {
    _address: usize,
    name: *const c_char,
}

unsafe extern "C" {
    /// Calls back for each object of the process until the callback returns non-zero, and
    /// returns what it returned last (glibc, musl).
    fn dl_iterate_phdr(
        callback: unsafe extern "C" fn(*const PhdrInfo, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}
