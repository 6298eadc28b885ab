//! The instrumented modules of the CUDA driver, as CUPTI has reported them.
//!
//! CUPTI hands over the ELF of each module that is loaded into a context, with a number, but not its handle. The handle
//! comes from the call that loads it: `cuModuleLoad*` and `cuLibraryGetModule` return it. If the driver loads a module
//! in another call (a launch, or the making of a context with CUDA_MODULE_LOADING=EAGER), only a library of the program
//! can have it, and [`crate::device::cuda::CudaDevice`] asks the libraries for it when it needs it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::device::cuda::captures::Captures;
use crate::device::cuda::driver::Driver;
use crate::device::{DeviceError, DeviceRange, Executable};
use crate::format::codeobject::cuda::{LaidOut, is_instrumented, laid_out};
use crate::format::codeobject::{CodeObjectError, Identity};

/// The bit of the handles of executables and agents that are CUDA's. Those of HSA are addresses in the process.
const CUDA_HANDLE: u64 = 1 << 63;
/// The bit of the device addresses that are rocov's own. The driver places each variable of a module by itself, so a
/// laid-out module has addresses that no GPU has.
const CUDA_ADDRESS: u64 = 1 << 62;
/// A module has the addresses from a multiple of 2 to the power of this on.
const MODULE_BITS: u32 = 32;

/// Returns whether `handle`, of an executable or an agent, is CUDA's.
#[must_use]
pub fn is_cuda(handle: u64) -> bool {
    handle & CUDA_HANDLE != 0
}

/// Returns whether the device address is one of a laid-out module.
#[must_use]
pub(crate) fn is_cuda_address(address: u64) -> bool {
    address & CUDA_ADDRESS != 0
}

/// The handle of the GPU with this number.
pub(super) fn agent_of(ordinal: i32) -> u64 {
    CUDA_HANDLE | u64::from(ordinal.unsigned_abs())
}

/// The number of the module at `address`, and the place in its memory.
pub(super) fn place_of(address: u64) -> (u64, u64) {
    let address = address & !CUDA_ADDRESS;
    (address >> MODULE_BITS, address & ((1 << MODULE_BITS) - 1))
}

/// A module that CUPTI has reported.
#[derive(Clone, Debug)]
pub struct LoadedCubin<'a> {
    /// The handle of the context (`CUcontext`).
    pub context: u64,
    /// The number of the context's GPU.
    pub ordinal: i32,
    /// CUPTI's number of the module in its context.
    pub id: u32,
    /// The ELF.
    pub cubin: &'a [u8],
    /// True if a call of the program loads it, which has not returned. [`Modules::load_returns`] ends that.
    pub is_called: bool,
    /// The handle of the library that it belongs to (`CUlibrary`), if that is known.
    pub library: Option<u64>,
}

/// An instrumented module.
#[derive(Clone, Debug)]
pub(super) struct Module {
    pub(super) context: u64,
    pub(super) ordinal: i32,
    pub(super) id: u32,
    /// True until the call that loads it returns its handle.
    pub(super) is_being_loaded: bool,
    /// Its handle (`CUmodule`), once it is known.
    pub(super) handle: Option<u64>,
    pub(super) library: Option<u64>,
    pub(super) laid_out: Arc<LaidOut>,
    /// The identity of the cubin, by its contents.
    pub(super) cubin: Identity,
    /// The PTX that rocov has made its cubin from.
    pub(super) source: Option<Arc<str>>,
    /// The device address of each counted variable, once the driver was asked.
    pub(super) addresses: Option<Arc<[u64]>>,
}

impl Module {
    /// Its memory.
    pub(super) fn segment(&self, number: u64) -> DeviceRange {
        DeviceRange {
            start: CUDA_ADDRESS | number << MODULE_BITS,
            len: self.laid_out.size,
        }
    }
}

/// The modules of a process that count, and its libraries.
#[derive(Debug, Default)]
pub struct Modules {
    inner: Mutex<Inner>,
    captures: Captures,
    /// The driver that has loaded them. It has so many functions that a search for all of them takes as long as the rest of
    /// a load.
    driver: OnceLock<Driver>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The number of the last module.
    last: u64,
    modules: BTreeMap<u64, Module>,
    /// The libraries that are loaded, in their order, each with the file that it comes from.
    libraries: Vec<(u64, Option<PathBuf>)>,
    /// The layouts that some module still has, by the contents of the cubin.
    layouts: HashMap<Identity, Weak<LaidOut>>,
    /// The PTX that rocov has made a cubin from, by the contents of the cubin.
    sources: HashMap<Identity, Arc<str>>,
}

impl Modules {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The captures of graphs in the process.
    #[must_use]
    pub fn captures(&self) -> &Captures {
        &self.captures
    }

    /// Notes a module. Returns it as an executable; `None` if it does not count.
    ///
    /// # Errors
    /// Fails if the ELF is damaged.
    pub fn loaded(&self, loaded: &LoadedCubin<'_>) -> Result<Option<Executable>, CodeObjectError> {
        if !is_instrumented(loaded.cubin)? {
            return Ok(None);
        }
        let cubin = Identity::from_bytes(loaded.cubin);
        let Some(laid_out) = self.layout(loaded.cubin, &cubin)? else {
            return Ok(None);
        };
        let mut inner = self.inner();
        let source = inner.sources.get(&cubin).cloned();
        inner.last += 1;
        let number = inner.last;
        inner.modules.insert(
            number,
            Module {
                context: loaded.context,
                ordinal: loaded.ordinal,
                id: loaded.id,
                is_being_loaded: loaded.is_called,
                handle: None,
                library: loaded.library,
                laid_out,
                cubin,
                source,
                addresses: None,
            },
        );
        Ok(Some(Executable(CUDA_HANDLE | number)))
    }

    /// Notes that rocov has made a cubin from this PTX.
    pub fn note_source(&self, cubin: &[u8], ptx: &str) {
        let identity = Identity::from_bytes(cubin);
        let mut inner = self.inner();
        inner.sources.entry(identity).or_insert_with(|| ptx.into());
    }

    /// The layout of a cubin with these contents. Modules of equal cubins share it.
    fn layout(
        &self,
        cubin: &[u8],
        identity: &Identity,
    ) -> Result<Option<Arc<LaidOut>>, CodeObjectError> {
        let known = self.inner().layouts.get(identity).and_then(Weak::upgrade);
        if known.is_some() {
            return Ok(known);
        }
        let made = laid_out(cubin)?.map(Arc::new);
        if let Some(made) = &made {
            let mut inner = self.inner();
            inner.layouts.insert(identity.clone(), Arc::downgrade(made));
        }
        Ok(made)
    }

    /// Notes the handle of the module with this number in `context`.
    pub fn note_handle(&self, context: u64, id: u32, handle: u64) {
        let mut inner = self.inner();
        // It is the latest, as a rule.
        let mut modules = inner.modules.values_mut().rev();
        if let Some(module) = modules.find(|module| module.context == context && module.id == id) {
            module.handle = Some(handle);
        }
    }

    /// Notes that the call has returned that has loaded the module with this number in `context`.
    pub fn load_returns(&self, context: u64, id: u32) {
        let mut inner = self.inner();
        // It is the latest, as a rule.
        let mut modules = inner.modules.values_mut().rev();
        if let Some(module) = modules.find(|module| module.context == context && module.id == id) {
            module.is_being_loaded = false;
        }
    }

    /// Returns whether a call loads the module of this executable, and has not returned.
    #[must_use]
    pub fn is_being_loaded(&self, executable: Executable) -> bool {
        let module = self.module(executable);
        module.is_some_and(|(_, module)| module.is_being_loaded)
    }

    /// The driver. `None` if none is loaded.
    ///
    /// # Errors
    /// Fails if the loaded driver lacks a function that the drain needs.
    pub(super) fn driver(&self) -> Result<Option<&Driver>, DeviceError> {
        if let Some(driver) = self.driver.get() {
            return Ok(Some(driver));
        }
        let found = Driver::find()?;
        Ok(found.map(|driver| self.driver.get_or_init(|| driver)))
    }

    /// Notes a library that comes from the file `origin`.
    pub fn library_loaded(&self, library: u64, origin: Option<PathBuf>) {
        self.inner().libraries.push((library, origin));
    }

    /// Forgets a library.
    pub fn library_gone(&self, library: u64) {
        self.inner()
            .libraries
            .retain(|(known, _)| *known != library);
    }

    /// The file that a library comes from.
    #[must_use]
    pub fn origin_of(&self, library: u64) -> Option<PathBuf> {
        let inner = self.inner();
        let found = inner.libraries.iter().find(|(known, _)| *known == library);
        found.and_then(|(_, origin)| origin.clone())
    }

    /// The executables of the modules that `wanted` takes: of a handle, a library, a context, or a number in a context.
    #[must_use]
    pub fn find(&self, wanted: &Wanted) -> Vec<Executable> {
        let inner = self.inner();
        let found = inner.modules.iter().filter(|(_, module)| match *wanted {
            Wanted::All => true,
            Wanted::Handle(handle) => module.handle == Some(handle),
            Wanted::Library(library) => module.library == Some(library),
            Wanted::Context(context) => module.context == context,
            Wanted::ContextsOf(ordinal) => module.ordinal == ordinal,
            Wanted::Numbered(context, id) => module.context == context && module.id == id,
        });
        found
            .map(|(number, _)| Executable(CUDA_HANDLE | number))
            .collect()
    }

    /// Forgets a module.
    pub fn gone(&self, executable: Executable) {
        self.inner().modules.remove(&(executable.0 & !CUDA_HANDLE));
    }

    /// Returns whether there is no instrumented module.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner().modules.is_empty()
    }

    /// The module of an executable, and its number.
    pub(super) fn module(&self, executable: Executable) -> Option<(u64, Module)> {
        let number = executable.0 & !CUDA_HANDLE;
        self.numbered(number).map(|module| (number, module))
    }

    /// The module with this number.
    pub(super) fn numbered(&self, number: u64) -> Option<Module> {
        self.inner().modules.get(&number).cloned()
    }

    /// The handle and the addresses of the module with this number, once both are known.
    pub(super) fn placed(&self, number: u64) -> Option<(u64, Arc<[u64]>)> {
        let module = self.numbered(number)?;
        Some((module.handle?, module.addresses?))
    }

    /// Remembers the handle and the addresses of the module with this number.
    pub(super) fn found(&self, number: u64, handle: u64, addresses: Arc<[u64]>) {
        if let Some(module) = self.inner().modules.get_mut(&number) {
            module.handle = Some(handle);
            module.addresses = Some(addresses);
        }
    }

    /// Notes that the module with this number belongs to `library`.
    pub(super) fn belongs_to(&self, number: u64, library: u64) {
        if let Some(module) = self.inner().modules.get_mut(&number) {
            module.library = Some(library);
        }
    }

    /// Returns whether `handle` is known as that of another module than the one with this number.
    pub(super) fn is_of_another(&self, handle: u64, number: u64) -> bool {
        let inner = self.inner();
        let mut modules = inner.modules.iter();
        modules.any(|(other, module)| *other != number && module.handle == Some(handle))
    }

    /// The libraries of which no module is known in `context`, the first loaded first.
    pub(super) fn libraries_without_module(&self, context: u64) -> Vec<u64> {
        let inner = self.inner();
        let has_module = |library: u64| {
            let mut modules = inner.modules.values();
            modules.any(|module| module.context == context && module.library == Some(library))
        };
        let libraries = inner.libraries.iter().map(|(library, _)| *library);
        libraries.filter(|library| !has_module(*library)).collect()
    }

    /// The contexts with modules on the GPUs that `is_wanted` takes, by their agents.
    pub(super) fn contexts(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<u64> {
        let inner = self.inner();
        let modules = inner.modules.values();
        let wanted = modules.filter(|cubin| is_wanted(agent_of(cubin.ordinal)));
        let mut contexts: Vec<u64> = wanted.map(|module| module.context).collect();
        contexts.sort_unstable();
        contexts.dedup();
        contexts
    }
}

/// A choice of modules.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// All modules.
    All,
    /// The module with this handle (`CUmodule`).
    Handle(u64),
    /// The modules of a library (`CUlibrary`), one for each context.
    Library(u64),
    /// The modules in a context (`CUcontext`).
    Context(u64),
    /// The modules on the GPU with this number.
    ContextsOf(i32),
    /// The module with CUPTI's number in a context.
    Numbered(u64, u32),
}
