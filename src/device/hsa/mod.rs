//! The device interface on ROCr, AMD's HSA runtime.
//!
//! [`abi`] mirrors the C types, `runtime` finds the runtime in the process, `loader` lists the loaded code objects,
//! `elf_image` reads their ELFs, and [`exchange`] lists those into which rocov has inserted counters. `direct_reads`
//! reads device memory that the host sees. `blocking_copy` copies one range. `staging` copies many at a time, on a
//! `copy_queue` for each agent, until `stuck_agents` gives an agent up. `queues` waits for kernels, and `callbacks` for
//! what HIP does when they are complete. `executions` asks the modelled GPU under ROCr.
//!
//! Nothing here starts HSA, so rocov does not change a process that never uses a GPU.

pub mod abi;
mod blocking_copy;
mod callbacks;
mod copy_queue;
mod direct_reads;
mod elf_image;
pub mod exchange;
pub(super) mod executions;
mod loader;
mod queues;
mod runtime;
mod staging;
mod stuck_agents;

use std::sync::{Arc, OnceLock};

use crate::device::hsa::exchange::Exchanged;
use crate::device::hsa::executions::ModelledGpu;
use crate::device::hsa::runtime::{Api, Copier};
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, Executions, LoadedCodeObject,
    Symbol, Take, TakeParts,
};

pub use crate::device::hsa::executions::counts_executions;
pub use crate::device::hsa::queues::Queues;
pub use crate::device::hsa::runtime::{HSA_LIBRARY, is_loaded};
pub use crate::device::hsa::stuck_agents::Copying;

/// Returns whether an HSA runtime is loaded and running. A forked child inherits the answer, but not the
/// runtime.
#[must_use]
pub fn is_running() -> bool {
    matches!(Api::find(), Ok(Some(api)) if api.is_running())
}

/// The HSA runtime that a process has loaded. Its functions are looked up once, and it stays mapped from then on.
#[derive(Debug, Default)]
pub struct Runtime {
    api: OnceLock<Arc<Api>>,
    /// The modelled GPU under it, if that counts executed instructions.
    model: OnceLock<Option<ModelledGpu>>,
    exchanged: OnceLock<Arc<Exchanged>>,
}

impl Runtime {
    /// Makes a place for the runtime, which may be loaded later.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            api: OnceLock::new(),
            model: OnceLock::new(),
            exchanged: OnceLock::new(),
        }
    }

    /// The code objects that it has got instead of the program's.
    #[must_use]
    pub fn exchanged(&self) -> &Arc<Exchanged> {
        self.exchanged.get_or_init(Arc::default)
    }

    /// The runtime's functions. `None` if it is not loaded.
    fn api(&self) -> Result<Option<Arc<Api>>, DeviceError> {
        if let Some(api) = self.api.get() {
            return Ok(Some(api.clone()));
        }
        let found = Api::find()?.map(Arc::new);
        Ok(found.map(|api| self.api.get_or_init(|| api).clone()))
    }
}

/// The process's running HSA runtime.
#[derive(Debug)]
pub struct HsaDevice {
    api: Arc<Api>,
    copying: Arc<Copying>,
    copies: OnceLock<Copier>,
    model: Option<ModelledGpu>,
    exchanged: Arc<Exchanged>,
}

impl HsaDevice {
    /// Attaches to the HSA runtime of this process. `None` if no runtime is loaded, or if it is not running
    /// (never started, or shut down). Pass one `runtime` and one `copying` for all devices of a process.
    ///
    /// # Errors
    /// Fails if the loaded runtime lacks a function that the drain needs.
    pub fn attach(runtime: &Runtime, copying: &Arc<Copying>) -> Result<Option<Self>, DeviceError> {
        let Some(api) = runtime.api()? else {
            return Ok(None);
        };
        let copying = copying.clone();
        Ok(api.is_running().then(|| Self {
            api,
            copying,
            copies: OnceLock::new(),
            model: *runtime.model.get_or_init(ModelledGpu::traced),
            exchanged: runtime.exchanged().clone(),
        }))
    }

    /// The storage of a code object that ROCr has got instead of the program's. It stays as it is until the executable is
    /// destroyed.
    fn exchanged_storage(&self, code_object: &LoadedCodeObject) -> Option<Box<dyn ElfImage>> {
        let storage = code_object.storage?;
        self.exchanged.uri(storage.start)?;
        Some(Box::new(elf_image::storage_part(code_object)?))
    }

    /// The functions and the agent for copies. Looks them up until that succeeds once.
    fn copies(&self) -> Result<&Copier, DeviceError> {
        if let Some(copies) = self.copies.get() {
            return Ok(copies);
        }
        let found = Copier {
            api: self.api.copies()?,
            cpu: self.api.cpu_agent()?,
        };
        Ok(self.copies.get_or_init(|| found))
    }
}

impl Device for HsaDevice {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        self.api.gpu_agents()
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        self.api.executables()
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let mut code_objects = self.api.loaded_code_objects(executable)?;
        for code_object in &mut code_objects {
            let storage = code_object.storage;
            if let Some(uri) = storage.and_then(|storage| self.exchanged.uri(storage.start)) {
                code_object.uri = uri.as_ref().into();
            }
        }
        Ok(code_objects)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        self.api.variable(executable, agent, name)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        if let Some(image) = self.exchanged_storage(code_object) {
            return Ok(image);
        }
        let loaded = |address| self.api.host_address(address);
        elf_image::open(code_object, loaded).map_err(|source| DeviceError::Image {
            uri: code_object.uri.clone(),
            source,
        })
    }

    fn held_image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        match elf_image::storage_part(code_object) {
            Some(part) => Ok(Box::new(part)),
            None => self.image(code_object),
        }
    }

    fn has_lasting_image(&self, code_object: &LoadedCodeObject) -> bool {
        let storage = code_object.storage;
        storage.is_some_and(|storage| self.exchanged.uri(storage.start).is_some())
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.copy_from_device(address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        self.copy_each(ranges, take);
    }

    fn read_parts(&self, loads: &[Vec<DeviceRange>], take: &mut TakeParts<'_>) -> usize {
        self.read_directly(loads, take)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.copy_to_device(address, from)
    }

    fn executions(&self) -> Option<&dyn Executions> {
        self.model.as_ref().map(|model| model as &dyn Executions)
    }
}
