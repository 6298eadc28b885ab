//! The real ROCr: loads code objects into this process, and measures the times of its calls.

use std::ffi::c_void;
use std::sync::Arc;

use libloading::os::unix::Library;
use rocov::device::Device;
use rocov::device::hsa::{HSA_LIBRARY, HsaDevice, Runtime, abi};

const SYMBOL_INFO_NAME_LENGTH: u32 = 1;

type InitFn = unsafe extern "C" fn() -> abi::Status;
type ReaderFn = unsafe extern "C" fn(*const u8, usize, *mut u64) -> abi::Status;
type CreateFn = unsafe extern "C" fn(u32, u32, *const u8, *mut u64) -> abi::Status;
type LoadFn = unsafe extern "C" fn(u64, u64, u64, *const u8, *mut u64) -> abi::Status;
type FreezeFn = unsafe extern "C" fn(u64, *const u8) -> abi::Status;
type DestroyFn = unsafe extern "C" fn(u64) -> abi::Status;
type QueueFn =
    unsafe extern "C" fn(u64, u32, u32, *const u8, *const u8, u32, u32, *mut u64) -> abi::Status;
type SymbolCallback = unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> abi::Status;
type SymbolsFn = unsafe extern "C" fn(u64, u64, SymbolCallback, *mut c_void) -> abi::Status;

/// The started ROCr.
pub(crate) struct Rocr {
    library: Library,
    device: HsaDevice,
}

impl Rocr {
    /// Starts ROCr.
    pub(crate) fn start() -> Self {
        // SAFETY: ROCr's initialisers may run at any time.
        let library = unsafe { Library::new(HSA_LIBRARY) }.expect("ROCr is installed");
        // SAFETY: the type is that of hsa.h.
        let init = unsafe { library.get::<InitFn>("hsa_init") }.expect("a function");
        // SAFETY: the function takes no arguments.
        assert_eq!(unsafe { init() }, abi::SUCCESS, "hsa_init");
        let device = HsaDevice::attach(&Runtime::new(), &Arc::default()).expect("ROCr is whole");
        Self {
            library,
            device: device.expect("it runs"),
        }
    }

    /// The library's view of ROCr.
    pub(crate) fn device(&self) -> &HsaDevice {
        &self.device
    }

    /// Loads the code object `image`, which must stay in memory, on the agent with this handle.
    /// Returns the executable's handle.
    pub(crate) fn load(&self, image: &'static [u8], agent: u64) -> u64 {
        let (mut reader, mut executable) = (0, 0);
        // SAFETY: the types are those of hsa.h.
        let (read, create, load, freeze) = unsafe {
            (
                self.function::<ReaderFn>("hsa_code_object_reader_create_from_memory"),
                self.function::<CreateFn>("hsa_executable_create_alt"),
                self.function::<LoadFn>("hsa_executable_load_agent_code_object"),
                self.function::<FreezeFn>("hsa_executable_freeze"),
            )
        };
        let none = std::ptr::null();
        // SAFETY: the calls above have made the handles; null means no options.
        unsafe {
            succeeds(read(image.as_ptr(), image.len(), &raw mut reader));
            succeeds(create(0, 0, none, &raw mut executable));
            succeeds(load(executable, agent, reader, none, std::ptr::null_mut()));
            succeeds(freeze(executable, none));
        }
        executable
    }

    /// Makes a queue of an agent, and keeps it.
    pub(crate) fn make_queue(&self, agent: u64) {
        let mut queue = 0;
        let (none, any) = (std::ptr::null(), u32::MAX);
        // SAFETY: the type is that of hsa.h.
        let make = unsafe { self.function::<QueueFn>("hsa_queue_create") };
        // SAFETY: the call has no error callback; it writes the handle to `queue`.
        succeeds(unsafe { make(agent, 64, 0, none, none, any, any, &raw mut queue) });
    }

    /// Destroys an executable.
    pub(crate) fn destroy(&self, executable: u64) {
        // SAFETY: the type is that of hsa.h.
        let destroy = unsafe { self.function::<DestroyFn>("hsa_executable_destroy") };
        // SAFETY: no kernel of it runs.
        succeeds(unsafe { destroy(executable) });
    }

    /// The function that a program linked with ROCr would call: librocov's, if librocov is
    /// preloaded.
    ///
    /// # Safety
    /// `T` is the type of a pointer to the function `name`.
    unsafe fn function<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the caller's promise.
        if let Ok(found) = unsafe { Library::this().get::<T>(name) } {
            return *found;
        }
        // SAFETY: the caller's promise.
        *unsafe { self.library.get::<T>(name) }.expect("a function of ROCr")
    }

    fn symbol_info(&self, symbol: u64, attribute: u32, into: *mut c_void) {
        // SAFETY: the type is that of hsa.h.
        let info = unsafe { self.function::<abi::GetInfoFn>("hsa_executable_symbol_get_info") };
        // SAFETY: the callers pass a buffer of the attribute's type.
        succeeds(unsafe { info(symbol, attribute, into) });
    }
}

impl Rocr {
    /// Handle of the first GPU agent.
    pub(crate) fn first_agent(&self) -> u64 {
        self.device.agents().expect("agents")[0].handle
    }

    /// The symbols that `executable` has on `agent`.
    pub(crate) fn symbols(&self, executable: u64, agent: u64) -> Vec<u64> {
        unsafe extern "C" fn push(_: u64, _: u64, symbol: u64, data: *mut c_void) -> abi::Status {
            // SAFETY: `data` is the address of the vector below.
            unsafe { (*data.cast::<Vec<u64>>()).push(symbol) };
            abi::SUCCESS
        }
        // SAFETY: the type is that of hsa.h.
        let iterate = unsafe { self.function::<SymbolsFn>("hsa_executable_iterate_agent_symbols") };
        let mut symbols: Vec<u64> = Vec::new();
        // SAFETY: the function makes all callbacks before it returns.
        succeeds(unsafe { iterate(executable, agent, push, (&raw mut symbols).cast()) });
        symbols
    }

    /// Returns whether a symbol is a variable.
    pub(crate) fn is_variable(&self, symbol: u64) -> bool {
        let mut kind = 0_u32;
        self.symbol_info(symbol, abi::SYMBOL_INFO_TYPE, (&raw mut kind).cast());
        kind == abi::SYMBOL_KIND_VARIABLE
    }

    /// Length of a symbol's name in bytes.
    pub(crate) fn name_len(&self, symbol: u64) -> usize {
        let mut len = 0_u32;
        self.symbol_info(symbol, SYMBOL_INFO_NAME_LENGTH, (&raw mut len).cast());
        len as usize
    }

    /// Device address of a variable.
    pub(crate) fn address(&self, symbol: u64) -> u64 {
        let mut address = 0_u64;
        let attribute = abi::SYMBOL_INFO_VARIABLE_ADDRESS;
        self.symbol_info(symbol, attribute, (&raw mut address).cast());
        address
    }
}

fn succeeds(status: abi::Status) {
    assert_eq!(status, abi::SUCCESS, "a call of ROCr");
}
