//! The device interface on ROCr, AMD's HSA runtime.
//!
//! All unsafe code of the library is here: [`abi`] mirrors the C types, [`load`] finds the
//! runtime in the process, [`loader`] asks it what is loaded, [`image`] reads the ELFs behind it,
//! [`memory`] copies, [`window`] many ranges at a time, on a [`lane`] for each agent and as long as
//! [`copying`] says; [`queue`] waits for kernels.
//!
//! Nothing here starts HSA: a process that never used a GPU is left as it was.

pub mod abi;
mod copying;
mod image;
mod lane;
mod load;
mod loader;
mod memory;
mod queue;
mod window;

use std::sync::{Arc, OnceLock};

pub use copying::Copying;
use load::Api;
pub use load::{HSA_LIBRARY, is_loaded};
pub use queue::Queues;
use window::Copies;

use crate::device::{
    Agent, Device, DeviceError, DeviceRange, Executable, Image, LoadedCodeObject, Symbol, Take,
};

/// Whether an HSA runtime is loaded and running. A forked child inherits the answer, though not
/// the runtime.
#[must_use]
pub fn is_running() -> bool {
    matches!(Api::find(), Ok(Some(api)) if api.is_running())
}

/// The process's running HSA runtime.
#[derive(Debug)]
pub struct HsaDevice {
    api: Api,
    copying: Arc<Copying>,
    copies: OnceLock<Copies>,
}

impl HsaDevice {
    /// Attaches to the HSA runtime of this process; `None` where none is loaded, or where it is
    /// not running (never started, or shut down). `copying` is the same each time.
    ///
    /// # Errors
    /// Fails where a runtime is loaded that lacks a function the drain needs.
    pub fn attach(copying: &Arc<Copying>) -> Result<Option<HsaDevice>, DeviceError> {
        let Some(api) = Api::find()? else {
            return Ok(None);
        };
        let copying = copying.clone();
        Ok(api.is_running().then(|| HsaDevice {
            api,
            copying,
            copies: OnceLock::new(),
        }))
    }

    /// What copies take, which is looked up once; where that fails, it is looked up again.
    fn copies(&self) -> Result<&Copies, DeviceError> {
        if let Some(copies) = self.copies.get() {
            return Ok(copies);
        }
        let found = Copies {
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
        self.api.loaded_code_objects(executable)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        self.api.variable(executable, agent, name)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn Image>, DeviceError> {
        let loaded = |address| self.api.host_address(address);
        image::open(code_object, loaded).map_err(|source| DeviceError::Image {
            uri: code_object.uri.clone(),
            source,
        })
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.copy_from_device(address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        self.copy_each(ranges, take);
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.copy_to_device(address, from)
    }
}
