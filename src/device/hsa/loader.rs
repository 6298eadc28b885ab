//! Queries of the runtime: agents, executables, code objects and variables.

use std::ffi::{CString, c_void};

use crate::device::hsa::abi;
use crate::device::hsa::abi::Status;
use crate::device::hsa::runtime::{Api, HSA_LIBRARY, PoolApi, check};
use crate::device::{Agent, DeviceError, DeviceRange, Executable, LoadedCodeObject, Symbol};
use crate::support::memory::zeroed;

impl Api {
    /// The GPU agents in the runtime's order.
    pub(super) fn gpu_agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let mut agents = Vec::new();
        for handle in collect("hsa_iterate_agents", self.iterate_agents)? {
            let kind: u32 = self.agent_info(handle, abi::AGENT_INFO_DEVICE)?;
            if kind != abi::DEVICE_TYPE_GPU {
                continue;
            }
            agents.push(Agent {
                handle,
                index: agents.len(),
                name: self.agent_name(handle)?,
                isa: self.isa(handle).ok(),
                uuid: self.uuid(handle).ok(),
                node: self.agent_info(handle, abi::AGENT_INFO_DRIVER_NODE_ID).ok(),
            });
        }
        Ok(agents)
    }

    /// The first CPU agent.
    pub(super) fn cpu_agent(&self) -> Result<u64, DeviceError> {
        for handle in collect("hsa_iterate_agents", self.iterate_agents)? {
            let kind: u32 = self.agent_info(handle, abi::AGENT_INFO_DEVICE)?;
            if kind == abi::DEVICE_TYPE_CPU {
                return Ok(handle);
            }
        }
        Err(DeviceError::NoCpu)
    }

    /// The name of an agent, such as `gfx90a`.
    pub(super) fn agent_name(&self, handle: u64) -> Result<String, DeviceError> {
        let name: [u8; abi::AGENT_NAME_LEN] = self.agent_info(handle, abi::AGENT_INFO_NAME)?;
        Ok(until_nul(&name))
    }

    /// The live executables.
    pub(super) fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        let iterate = self
            .loader_table()?
            .iterate_executables
            .ok_or_else(|| missing("hsa_ven_amd_loader_iterate_executables"))?;
        let handles = collect("hsa_ven_amd_loader_iterate_executables", iterate)?;
        Ok(handles.into_iter().map(Executable).collect())
    }

    /// The code objects that `executable` has loaded on agents.
    pub(super) fn loaded_code_objects(
        &self,
        executable: Executable,
    ) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        unsafe extern "C" fn visit(_: u64, code_object: u64, data: *mut c_void) -> Status {
            // SAFETY: `data` is the vector below, which outlives the iteration.
            unsafe { note(code_object, data) }
        }
        const ITERATE: &str = "hsa_ven_amd_loader_executable_iterate_loaded_code_objects";
        let table = self.loader_table()?;
        let iterate = table
            .iterate_loaded_code_objects
            .ok_or_else(|| missing(ITERATE))?;
        let get_info = table
            .loaded_code_object_get_info
            .ok_or_else(|| missing("hsa_ven_amd_loader_loaded_code_object_get_info"))?;
        let mut handles: Vec<u64> = Vec::new();
        // SAFETY: the callback gets the vector's address and is called before this returns.
        let status = unsafe { iterate(executable.0, visit, (&raw mut handles).cast()) };
        check(ITERATE, status)?;

        let mut loaded = Vec::with_capacity(handles.len());
        for handle in handles {
            if let Some(code_object) = describe(executable, Info { get_info, handle })? {
                loaded.push(code_object);
            }
        }
        Ok(loaded)
    }

    /// The host address of the loader's copy of the data at a device address. That is the data as it was
    /// loaded, without changes by kernels. `None` if the loader put nothing there.
    pub(super) fn host_address(&self, address: u64) -> Option<u64> {
        let query = self.loader_table().ok()?.query_host_address?;
        let mut host: *const c_void = std::ptr::null();
        // SAFETY: the loader looks the address up and writes a pointer.
        let status = unsafe { query(address as *const c_void, &raw mut host) };
        (status == abi::SUCCESS && !host.is_null()).then_some(host as u64)
    }

    /// The variable `name`, from ROCr's hash of (name, agent).
    pub(super) fn variable(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let mut handle = 0_u64;
        // SAFETY: the pointers are valid for the call; the executable's owner keeps it alive.
        let status = unsafe {
            (self.symbol_by_name)(
                executable.0,
                name.as_ptr(),
                &raw const agent,
                &raw mut handle,
            )
        };
        if status == abi::INVALID_SYMBOL_NAME {
            return Ok(None);
        }
        check("hsa_executable_get_symbol_by_name", status)?;
        let info = Info {
            get_info: self.symbol_get_info,
            handle,
        };
        let call = "hsa_executable_symbol_get_info";
        if info.get::<u32>(call, abi::SYMBOL_INFO_TYPE)? != abi::SYMBOL_KIND_VARIABLE {
            return Ok(None);
        }
        Ok(Some(Symbol {
            address: info.get(call, abi::SYMBOL_INFO_VARIABLE_ADDRESS)?,
            size: u64::from(info.get::<u32>(call, abi::SYMBOL_INFO_VARIABLE_SIZE)?),
        }))
    }

    /// The name of the agent's first instruction set. A GPU that also runs generic targets lists them after
    /// its own.
    fn isa(&self, agent: u64) -> Result<String, DeviceError> {
        const CALL: &str = "hsa_isa_get_info_alt";
        let info = Info {
            get_info: self.isa_get_info,
            handle: self.agent_info(agent, abi::AGENT_INFO_ISA)?,
        };
        let len: u32 = info.get(CALL, abi::ISA_INFO_NAME_LENGTH)?;
        info.text(CALL, abi::ISA_INFO_NAME, len as usize)
    }

    fn uuid(&self, agent: u64) -> Result<String, DeviceError> {
        // This has room to spare, so a longer UUID of another release cannot overflow it.
        let uuid: [u8; abi::AGENT_NAME_LEN] = self.agent_info(agent, abi::AGENT_INFO_UUID)?;
        Ok(until_nul(&uuid))
    }

    fn agent_info<T: Plain>(&self, handle: u64, attribute: u32) -> Result<T, DeviceError> {
        Info {
            get_info: self.agent_get_info,
            handle,
        }
        .get("hsa_agent_get_info", attribute)
    }
}

impl PoolApi {
    /// The pools of global memory of an agent.
    pub(super) fn agent_pools(&self, agent: u64) -> Result<Vec<u64>, DeviceError> {
        let mut pools: Vec<u64> = Vec::new();
        // SAFETY: the callback gets the vector's address and is called before this returns.
        let status = unsafe { (self.iterate)(agent, note, (&raw mut pools).cast()) };
        check("hsa_amd_agent_iterate_memory_pools", status)?;
        let mut global = Vec::new();
        for handle in pools {
            let get_info = self.get_info;
            let info = Info { get_info, handle };
            let segment: u32 = info.get("hsa_amd_memory_pool_get_info", abi::POOL_INFO_SEGMENT)?;
            if segment == abi::POOL_SEGMENT_GLOBAL {
                global.push(handle);
            }
        }
        Ok(global)
    }

    /// The access of `agent` to a pool.
    pub(super) fn access(&self, agent: u64, pool: u64) -> Result<u32, DeviceError> {
        let mut access = 0_u32;
        // SAFETY: the attribute is a u32.
        let status = unsafe {
            let attribute = abi::AGENT_POOL_INFO_ACCESS;
            (self.agent_get_info)(agent, pool, attribute, (&raw mut access).cast())
        };
        check("hsa_amd_agent_memory_pool_get_info", status)?;
        Ok(access)
    }
}

/// Describes a loaded code object. `None` if it belongs to no agent.
fn describe(executable: Executable, info: Info) -> Result<Option<LoadedCodeObject>, DeviceError> {
    const CALL: &str = "hsa_ven_amd_loader_loaded_code_object_get_info";
    if info.get::<u32>(CALL, abi::LOADED_INFO_KIND)? != abi::LOADED_KIND_AGENT {
        return Ok(None);
    }
    let storage = if info.get::<u32>(CALL, abi::LOADED_INFO_STORAGE_TYPE)? == abi::STORAGE_MEMORY {
        Some(DeviceRange {
            start: info.get(CALL, abi::LOADED_INFO_STORAGE_BASE)?,
            len: info.get(CALL, abi::LOADED_INFO_STORAGE_SIZE)?,
        })
    } else {
        None
    };
    let uri_len: u32 = info.get(CALL, abi::LOADED_INFO_URI_LENGTH)?;
    Ok(Some(LoadedCodeObject {
        executable,
        agent: info.get(CALL, abi::LOADED_INFO_AGENT)?,
        uri: info.text(CALL, abi::LOADED_INFO_URI, uri_len as usize)?,
        segment: DeviceRange {
            start: info.get(CALL, abi::LOADED_INFO_LOAD_BASE)?,
            len: info.get(CALL, abi::LOADED_INFO_LOAD_SIZE)?,
        },
        load_delta: info.get(CALL, abi::LOADED_INFO_LOAD_DELTA)?,
        storage,
    }))
}

/// Collects a handle of an iteration. ROCr holds a lock of its loader during the callbacks, so they must do
/// nothing else. Releases 5.2.3 to 6.2.0 pass 0 for executables that are destroyed.
///
/// # Safety
/// `data` is the address of a vector of handles.
unsafe extern "C" fn note(handle: u64, data: *mut c_void) -> Status {
    if handle != 0 {
        // SAFETY: as the caller promises.
        unsafe { (*data.cast::<Vec<u64>>()).push(handle) };
    }
    abi::SUCCESS
}

/// Collects the handles of an iteration.
fn collect(call: &'static str, iterate: abi::IterateFn) -> Result<Vec<u64>, DeviceError> {
    let mut handles: Vec<u64> = Vec::new();
    // SAFETY: the callback gets the vector's address and is called before this returns.
    check(call, unsafe { iterate(note, (&raw mut handles).cast()) })?;
    Ok(handles)
}

fn missing(symbol: &'static str) -> DeviceError {
    DeviceError::MissingFunction {
        library: HSA_LIBRARY,
        symbol,
        reason: "the loader extension of this release does not have it".into(),
    }
}

/// An object with attributes, and the getter for its kind.
#[derive(Clone, Copy)]
struct Info {
    get_info: abi::GetInfoFn,
    handle: u64,
}

impl Info {
    /// The value of `attribute`. `T` must be the type that the constant's documentation names.
    fn get<T: Plain>(self, call: &'static str, attribute: u32) -> Result<T, DeviceError> {
        let mut value = T::ZERO;
        // SAFETY: every attribute constant is used with the type that its documentation names, and `Plain`
        // types are valid for any bytes.
        check(call, unsafe {
            (self.get_info)(self.handle, attribute, (&raw mut value).cast())
        })?;
        Ok(value)
    }

    /// The text of `attribute`, `len` bytes with or without a NUL.
    fn text(self, call: &'static str, attribute: u32, len: usize) -> Result<String, DeviceError> {
        // One byte more: some releases write a NUL after the URI.
        let mut text = zeroed(len as u64 + 1)?;
        // SAFETY: the buffer holds what the length attribute announced, and a NUL.
        check(call, unsafe {
            (self.get_info)(self.handle, attribute, text.as_mut_ptr().cast())
        })?;
        Ok(until_nul(&text))
    }
}

/// The text up to its NUL, if there is one.
fn until_nul(text: &[u8]) -> String {
    let len = text.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&text[..len.unwrap_or(text.len())]).into_owned()
}

/// Types that the runtime may fill with any bytes.
trait Plain: Copy {
    const ZERO: Self;
}
impl Plain for u32 {
    const ZERO: Self = 0;
}
impl Plain for u64 {
    const ZERO: Self = 0;
}
impl Plain for [u8; abi::AGENT_NAME_LEN] {
    const ZERO: Self = [0; abi::AGENT_NAME_LEN];
}
