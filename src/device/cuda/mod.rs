//! The device interface on the CUDA driver.
//!
//! [`abi`] mirrors the C types, and `driver` finds the driver in the process. [`modules`] has the modules that count, as
//! the injection in librocov hears of them. `copies` copies their variables.
//!
//! A cubin has no profile sections, and the driver places each of its variables by itself. So each module gets the
//! memory that [`crate::format::codeobject::cuda`] lays out, at addresses that rocov assigns: what never changes comes
//! from the cubin, and the counters come from the GPU.

pub mod abi;
pub mod captures;
mod copies;
pub mod cupti_files;
mod driver;
pub mod exchange;
pub mod modules;

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use crate::device::cuda::driver::{Driver, Entered, is_gone};
use crate::device::cuda::modules::{Module, Modules, Wanted, agent_of, place_of};
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, LoadedCodeObject, Symbol, Take,
};
use crate::format::bounds_table::VERSION_SYMBOL;
use crate::format::codeobject::Identity;
use crate::format::codeobject::cuda::LaidOut;
use crate::support::backoff::Pauses;

pub use crate::device::cuda::driver::CUDA_LIBRARY;

/// The pauses of a wait for kernels.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The handle of a module, and the device addresses of its counted variables.
type Placed = (u64, Arc<[u64]>);

/// The process's running CUDA driver.
#[derive(Debug)]
pub struct CudaDevice {
    modules: Arc<Modules>,
}

/// The ELF of a module, which it shares with the modules of equal cubins.
#[derive(Debug)]
struct LaidOutElf(Arc<LaidOut>);

impl AsRef<[u8]> for LaidOutElf {
    fn as_ref(&self) -> &[u8] {
        &self.0.elf
    }
}

impl CudaDevice {
    /// Attaches to the CUDA driver of this process, which has loaded `modules`. `None` if no driver is loaded, or if it is
    /// taken down.
    ///
    /// # Errors
    /// Fails if the loaded driver lacks a function that the drain needs.
    pub fn attach(modules: &Arc<Modules>) -> Result<Option<Self>, DeviceError> {
        let driver = modules.driver()?;
        let is_running = driver.is_some_and(Driver::is_running);
        Ok(is_running.then(|| Self {
            modules: modules.clone(),
        }))
    }

    fn driver(&self) -> &Driver {
        let driver = self.modules.driver().ok().flatten();
        driver.expect("it was there when this was made, and stays")
    }

    /// The version of CUDA that the driver is for, such as 13000 for 13.0. 0 if it does not say.
    #[must_use]
    pub fn version(&self) -> i32 {
        self.driver().version()
    }

    /// Waits until these GPUs have done the work that they have now, no longer than `patience`. Only contexts with
    /// modules that count matter, and none in which the program captures a graph: waiting would spoil the capture.
    /// Returns whether the work is done, as far as it has waited.
    ///
    /// # Errors
    /// Fails if the driver does.
    pub fn wait(&self, agents: &[u64], patience: Duration) -> Result<bool, DeviceError> {
        let mut pauses = Pauses::new(patience, FIRST_PAUSE, LONGEST_PAUSE);
        for context in self.modules.contexts(|agent| agents.contains(&agent)) {
            let entered = self.driver().enter(context)?;
            let Some(work) = entered.work_so_far(context, self.modules.captures())? else {
                continue;
            };
            while !work.is_done()? {
                if !pauses.take() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Asks the libraries of the program for the handles of modules that came in unseen, and returns the executables of
    /// `library`. It may load the library's module into a context that has other modules.
    pub fn modules_of(&self, library: u64) -> Vec<Executable> {
        for executable in self.modules.find(&Wanted::All) {
            if let Some((number, module)) = self.modules.module(executable)
                && module.handle.is_none()
                && !module.is_being_loaded
                && let Ok(entered) = self.driver().enter(module.context)
            {
                // If no library has it, its own drain reports that.
                let _ = self.resolve(&entered, number, &module);
            }
        }
        self.modules.find(&Wanted::Library(library))
    }

    /// The handle of a module, and the device addresses of its counted variables.
    fn resolve(
        &self,
        entered: &Entered<'_>,
        number: u64,
        module: &Module,
    ) -> Result<Placed, DeviceError> {
        if let (Some(handle), Some(addresses)) = (module.handle, &module.addresses) {
            return Ok((handle, addresses.clone()));
        }
        let found = match module.handle {
            Some(handle) => addresses_in(entered, handle, module)?.map(|found| (handle, found)),
            None => self.search(entered, number, module)?,
        };
        // Another thread, which unloads the library, may have found it meanwhile.
        let found = found.or_else(|| self.modules.placed(number));
        let (handle, addresses) = found.ok_or(DeviceError::UnknownModule { id: module.id })?;
        self.modules.found(number, handle, addresses.clone());
        Ok((handle, addresses))
    }

    /// Searches the libraries of the program for a module that the driver has loaded by itself.
    fn search(
        &self,
        entered: &Entered<'_>,
        number: u64,
        module: &Module,
    ) -> Result<Option<Placed>, DeviceError> {
        let own = module.library;
        let others = || self.modules.libraries_without_module(module.context);
        for library in own.map_or_else(others, |library| vec![library]) {
            // If the library has no module here yet, the driver loads one, and CUPTI has reported it, with its handle, when
            // the call returns. Then it is not the one that is searched, even if both have one cubin.
            let Ok(handle) = entered.module_of(library) else {
                continue;
            };
            if self.modules.is_of_another(handle, number) {
                continue;
            }
            if let Some(addresses) = addresses_in(entered, handle, module)? {
                self.modules.belongs_to(number, library);
                return Ok(Some((handle, addresses)));
            }
        }
        Ok(None)
    }
}

/// The device addresses of the counted variables of `module`, if `handle` is a module with just these.
fn addresses_in(
    entered: &Entered<'_>,
    handle: u64,
    module: &Module,
) -> Result<Option<Arc<[u64]>>, DeviceError> {
    let mut addresses = Vec::with_capacity(module.laid_out.counted.len());
    for variable in &module.laid_out.counted {
        match entered.global(handle, &variable.name)? {
            Some((address, size)) if size == variable.size => addresses.push(address),
            _ => return Ok(None),
        }
    }
    Ok(Some(addresses.into()))
}

impl Device for CudaDevice {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let mut agents = Vec::new();
        for ordinal in 0..self.driver().devices()? {
            let (major, minor) = self.driver().capability(ordinal)?;
            let name = format!("sm_{major}{minor}");
            agents.push(Agent {
                handle: agent_of(ordinal),
                index: ordinal as usize,
                isa: Some(format!("nvptx64-nvidia-cuda--{name}")),
                name,
                uuid: self.driver().uuid(ordinal).map(uuid_text),
                node: None,
            });
        }
        Ok(agents)
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        let mut loaded = self.modules.find(&Wanted::All);
        loaded.retain(|executable| !self.modules.is_being_loaded(*executable));
        Ok(loaded)
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let found = self.modules.module(executable);
        let code_object = found.map(|(number, module)| {
            let segment = module.segment(number);
            LoadedCodeObject {
                executable,
                agent: agent_of(module.ordinal),
                uri: format!("cuda://module/{}", module.id),
                segment,
                load_delta: segment.start,
                storage: None,
            }
        });
        Ok(code_object.into_iter().collect())
    }

    fn symbol(
        &self,
        executable: Executable,
        _agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        let module = self.modules.module(executable);
        let version = module.filter(|_| name == VERSION_SYMBOL);
        Ok(version.map(|(number, module)| Symbol {
            address: module.segment(number).start + module.laid_out.version,
            size: 8,
        }))
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        let module = self.modules.module(code_object.executable);
        let elf = module.map(|(_, module)| LaidOutElf(module.laid_out));
        match elf {
            Some(elf) => Ok(Box::new(Cursor::new(elf))),
            None => Err(DeviceError::Image {
                uri: code_object.uri.clone(),
                source: std::io::ErrorKind::NotFound.into(),
            }),
        }
    }

    fn contents(&self, code_object: &LoadedCodeObject) -> Option<Identity> {
        let (_, module) = self.modules.module(code_object.executable)?;
        Some(module.cubin)
    }

    fn source(&self, code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        let (_, module) = self.modules.module(code_object.executable)?;
        module.source
    }

    fn has_lasting_image(&self, _code_object: &LoadedCodeObject) -> bool {
        true
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let range = DeviceRange {
            start: address,
            len: into.len() as u64,
        };
        let mut result = Ok(());
        self.read_each(&[range], &mut |_, read| {
            result = read.map(|bytes| into[..bytes.len()].copy_from_slice(bytes));
        });
        result
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        self.copy_each(ranges, take);
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.copy_to(address, from)
    }
}

/// A UUID as `nvidia-smi -L` prints it: `GPU-` and groups of 8, 4, 4, 4 and 12 digits.
fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = "GPU".to_owned();
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The module at a device address, its number, and the place in its memory.
fn module_at(modules: &Modules, range: DeviceRange) -> Result<(u64, Module, u64), DeviceError> {
    let (number, at) = place_of(range.start);
    let missing = || DeviceError::unallocated(range);
    let module = modules.numbered(number).ok_or_else(missing)?;
    let segment = module.segment(number);
    if !segment.contains(&range) {
        return Err(DeviceError::NotAllocated {
            range,
            found: segment,
        });
    }
    Ok((number, module, at))
}

/// Returns whether a failure is of the driver's state, so that a drain reports it for each module that loses counts: a
/// kernel has failed, or the driver is taken down because the process ends.
#[must_use]
pub fn is_known_at_drain(error: &DeviceError) -> bool {
    is_gone(error) || matches!(error, DeviceError::Faulted { .. })
}
