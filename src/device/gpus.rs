//! All GPUs of a process: those of HSA, those of CUDA and modelled ones without a runtime, as one device.

use std::sync::Arc;

use crate::device::cuda::CudaDevice;
use crate::device::cuda::modules::{Modules, is_cuda, is_cuda_address};
use crate::device::hsa::{Copying, HsaDevice, Runtime};
use crate::device::modelled::{ModelledDevice, is_modelled, is_modelled_address};
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, Executions, LoadedCodeObject,
    Symbol, Take, TakeParts,
};
use crate::format::codeobject::Identity;

/// The running device runtimes of the process. There is at least one.
#[derive(Debug)]
pub struct Gpus {
    hsa: Option<HsaDevice>,
    cuda: Option<CudaDevice>,
    modelled: Option<ModelledDevice>,
}

impl Gpus {
    /// Attaches to the runtimes of this process. CUDA's has loaded `modules`; without any, nobody asks it. `None` if no
    /// runtime is running. Pass one `runtime` (HSA's), one `copying` and one `modules` for all devices of a process.
    ///
    /// # Errors
    /// Fails if a loaded runtime lacks a function that the drain needs.
    pub fn attach(
        runtime: &Runtime,
        copying: &Arc<Copying>,
        modules: &Arc<Modules>,
    ) -> Result<Option<Self>, DeviceError> {
        let hsa = HsaDevice::attach(runtime, copying)?;
        let cuda = match modules.is_empty() {
            true => None,
            false => CudaDevice::attach(modules)?,
        };
        let modelled = ModelledDevice::attach();
        let any = hsa.is_some() || cuda.is_some() || modelled.is_some();
        Ok(any.then_some(Self {
            hsa,
            cuda,
            modelled,
        }))
    }

    /// The HSA runtime, if it is running.
    #[must_use]
    pub fn hsa(&self) -> Option<&HsaDevice> {
        self.hsa.as_ref()
    }

    /// The CUDA driver, if it is running and has modules that count.
    #[must_use]
    pub fn cuda(&self) -> Option<&CudaDevice> {
        self.cuda.as_ref()
    }

    /// The kernels of a modelled GPU that no runtime has loaded, if there are any.
    #[must_use]
    pub fn modelled(&self) -> Option<&ModelledDevice> {
        self.modelled.as_ref()
    }

    /// The runtimes that are there.
    fn all(&self) -> impl Iterator<Item = &dyn Device> {
        let hsa = self.hsa.as_ref().map(|device| device as &dyn Device);
        let cuda = self.cuda.as_ref().map(|device| device as &dyn Device);
        let modelled = self.modelled.as_ref().map(|device| device as &dyn Device);
        hsa.into_iter().chain(cuda).chain(modelled)
    }

    /// The runtime of an executable or an agent with this handle.
    fn by_handle(&self, handle: u64) -> Result<&dyn Device, DeviceError> {
        self.one(Kind::new(is_cuda(handle), is_modelled(handle)))
    }

    /// The runtime of a device address.
    fn by_address(&self, address: u64) -> Result<&dyn Device, DeviceError> {
        self.one(Kind::of_address(address))
    }

    fn one(&self, kind: Kind) -> Result<&dyn Device, DeviceError> {
        let (found, runtime): (Option<&dyn Device>, _) = match kind {
            Kind::Cuda => (
                self.cuda.as_ref().map(|device| device as _),
                "the CUDA driver",
            ),
            Kind::Modelled => (
                self.modelled.as_ref().map(|device| device as _),
                "the modelled GPU",
            ),
            Kind::Hsa => (
                self.hsa.as_ref().map(|device| device as _),
                "the HSA runtime",
            ),
        };
        found.ok_or(DeviceError::NotRunning { runtime })
    }
}

/// The kind of a runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hsa,
    Cuda,
    Modelled,
}

impl Kind {
    fn new(is_cuda: bool, is_modelled: bool) -> Self {
        match (is_cuda, is_modelled) {
            (true, _) => Self::Cuda,
            (false, true) => Self::Modelled,
            (false, false) => Self::Hsa,
        }
    }

    /// The kind of the runtime of a device address.
    fn of_address(address: u64) -> Self {
        Self::new(is_cuda_address(address), is_modelled_address(address))
    }
}

impl Device for Gpus {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let mut agents = Vec::new();
        for device in self.all() {
            agents.extend(device.agents()?);
        }
        Ok(agents)
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        let mut executables = Vec::new();
        for device in self.all() {
            executables.extend(device.executables()?);
        }
        Ok(executables)
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        self.by_handle(executable.0)?.code_objects(executable)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        self.by_handle(executable.0)?
            .symbol(executable, agent, name)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.by_handle(code_object.executable.0)?.image(code_object)
    }

    fn held_image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.by_handle(code_object.executable.0)?
            .held_image(code_object)
    }

    fn contents(&self, code_object: &LoadedCodeObject) -> Option<Identity> {
        let device = self.by_handle(code_object.executable.0).ok()?;
        device.contents(code_object)
    }

    fn source(&self, code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        let device = self.by_handle(code_object.executable.0).ok()?;
        device.source(code_object)
    }

    fn has_lasting_image(&self, code_object: &LoadedCodeObject) -> bool {
        let device = self.by_handle(code_object.executable.0);
        device.is_ok_and(|device| device.has_lasting_image(code_object))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.by_address(address)?.read(address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        // Loads of one runtime follow each other, unless a program uses both.
        let mut first = 0;
        for run in
            ranges.chunk_by(|one, next| Kind::of_address(one.start) == Kind::of_address(next.start))
        {
            match self.by_address(run[0].start) {
                Ok(device) => device.read_each(run, &mut |place, read| take(first + place, read)),
                Err(error) => take(first, Err(error)),
            }
            for (place, range) in run.iter().enumerate().skip(1) {
                if let Err(error) = self.by_address(range.start) {
                    take(first + place, Err(error));
                }
            }
            first += run.len();
        }
    }

    fn read_parts(&self, loads: &[Vec<DeviceRange>], take: &mut TakeParts<'_>) -> usize {
        let Some(hsa) = &self.hsa else {
            return 0;
        };
        // Loads of one runtime follow each other, unless a program uses both.
        let is_other = |parts: &Vec<DeviceRange>| {
            let first = parts.first();
            first.is_some_and(|part| Kind::of_address(part.start) != Kind::Hsa)
        };
        let before = loads.iter().position(is_other).unwrap_or(loads.len());
        hsa.read_parts(&loads[..before], take)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.by_address(address)?.write(address, from)
    }

    fn executions(&self) -> Option<&dyn Executions> {
        let hsa = self.hsa.as_ref().and_then(|device| device.executions());
        hsa.or_else(|| self.modelled.as_ref()?.executions())
    }
}
