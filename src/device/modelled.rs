//! The device interface on a modelled GPU that the program drives without a runtime.
//!
//! No loader knows the code then. The model finds the ELF of each kernel in the program's memory, and counts executions
//! by the addresses of the ELF, so there is no device memory to read.

use std::ffi::c_void;
use std::io::Cursor;
use std::sync::OnceLock;

use crate::device::hsa::executions::ModelledGpu;
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, Executions, LoadedCodeObject,
    Symbol,
};
use crate::format::codeobject::CodeObject;

/// The bit of the handles of executables and agents. CUDA's have a higher one, and HSA's are addresses in the process.
const MODELLED_HANDLE: u64 = 1 << 62;
/// The bit of the addresses of the code (`PLACED` in `tools/modelgpu/kfd/src/placed.rs`).
const MODELLED_ADDRESS: u64 = 1 << 61;
/// A code object has the addresses from a multiple of 2 to the power of this on.
const OBJECT_BITS: u32 = 32;

/// `rocov_modelgpu_code_objects`: calls `visit` with each code object.
type ListFn = unsafe extern "C" fn(visit: VisitFn, context: *mut c_void);
/// Receives a code object: its number, the number of its GPU, the name of the target and the bytes of the ELF.
type VisitFn = unsafe extern "C" fn(
    context: *mut c_void,
    number: u64,
    gpu: u32,
    target: *const u8,
    target_len: usize,
    elf: *const u8,
    elf_len: usize,
);

/// Returns whether `handle`, of an executable or an agent, is one of this device.
#[must_use]
pub(crate) fn is_modelled(handle: u64) -> bool {
    handle & MODELLED_HANDLE != 0
}

/// Returns whether the device address is one of this device.
#[must_use]
pub(crate) fn is_modelled_address(address: u64) -> bool {
    address & MODELLED_ADDRESS != 0
}

/// Kernels of a modelled GPU that no runtime has loaded.
#[derive(Debug)]
pub struct ModelledDevice {
    counts: ModelledGpu,
    code: Vec<Placed>,
}

/// A code object.
#[derive(Debug)]
struct Placed {
    number: u64,
    gpu: u32,
    target: String,
    elf: &'static [u8],
    /// [`Placed::memory`], from its first use on.
    memory: OnceLock<Vec<u8>>,
}

impl ModelledDevice {
    /// Finds the kernels that ran so far. `None` if there are none, or if the modelled GPU counts nothing.
    #[must_use]
    pub fn attach() -> Option<Self> {
        // SAFETY: a C string; the default search order only reads addresses.
        let list =
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"rocov_modelgpu_code_objects".as_ptr()) };
        if list.is_null() {
            return None;
        }
        let counts = ModelledGpu::traced()?;
        // SAFETY: tools/modelgpu/kfd/src/interpose/trace.rs defines this function with this type.
        let list = unsafe { std::mem::transmute::<*mut c_void, ListFn>(list) };
        let mut code: Vec<Placed> = Vec::new();
        // SAFETY: `visit` accepts a pointer to this vector.
        unsafe { list(visit, (&raw mut code).cast()) };
        (!code.is_empty()).then_some(Self { counts, code })
    }

    fn find(&self, number: u64) -> Option<&Placed> {
        self.code.iter().find(|code| code.number == number)
    }
}

/// Adds a code object to the vector in `context`.
///
/// # Safety
/// `context` points to the vector. The bytes exist, and those of the ELF stay.
unsafe extern "C" fn visit(
    context: *mut c_void,
    number: u64,
    gpu: u32,
    target: *const u8,
    target_len: usize,
    elf: *const u8,
    elf_len: usize,
) {
    // SAFETY: the caller's promise.
    let code = unsafe { &mut *context.cast::<Vec<Placed>>() };
    // SAFETY: the caller's promise.
    let target = unsafe { std::slice::from_raw_parts(target, target_len) };
    // SAFETY: the caller's promise.
    let elf = unsafe { std::slice::from_raw_parts(elf, elf_len) };
    code.push(Placed {
        number,
        gpu,
        target: String::from_utf8_lossy(target).into_owned(),
        elf,
        memory: OnceLock::new(),
    });
}

fn agent_of(gpu: u32) -> u64 {
    MODELLED_HANDLE | u64::from(gpu)
}

impl Placed {
    fn start(&self) -> u64 {
        MODELLED_ADDRESS | self.number << OBJECT_BITS
    }

    fn segment(&self) -> DeviceRange {
        DeviceRange {
            start: self.start(),
            len: self.memory().len() as u64,
        }
    }

    /// The memory that a loader would fill; empty if the ELF is damaged.
    fn memory(&self) -> &[u8] {
        self.memory.get_or_init(|| {
            let elf = CodeObject::parse(self.elf).ok();
            let memory = elf.and_then(|elf| elf.memory().ok());
            memory.unwrap_or_default()
        })
    }
}

impl Device for ModelledDevice {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let mut agents: Vec<Agent> = Vec::new();
        for code in &self.code {
            let handle = agent_of(code.gpu);
            if agents.iter().all(|agent| agent.handle != handle) {
                agents.push(Agent {
                    handle,
                    index: code.gpu as usize,
                    isa: Some(format!("amdgcn-amd-amdhsa--{}", code.target)),
                    name: code.target.clone(),
                    uuid: None,
                    // The first node is the host's.
                    node: Some(code.gpu + 1),
                });
            }
        }
        Ok(agents)
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        let numbers = self.code.iter();
        Ok(numbers
            .map(|code| Executable(MODELLED_HANDLE | code.number))
            .collect())
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let code = self.find(executable.0 & !MODELLED_HANDLE);
        let code_object = code.map(|code| LoadedCodeObject {
            executable,
            agent: agent_of(code.gpu),
            uri: format!("modelgpu://kernel/{}", code.number),
            segment: code.segment(),
            load_delta: code.start(),
            storage: None,
        });
        Ok(code_object.into_iter().collect())
    }

    /// Finds nothing: code with counters of its own needs a loader.
    fn symbol(
        &self,
        _executable: Executable,
        _agent: u64,
        _name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        Ok(None)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        match self.find(code_object.executable.0 & !MODELLED_HANDLE) {
            Some(code) => Ok(Box::new(Cursor::new(code.elf))),
            None => Err(DeviceError::Image {
                uri: code_object.uri.clone(),
                source: std::io::ErrorKind::NotFound.into(),
            }),
        }
    }

    fn has_lasting_image(&self, _code_object: &LoadedCodeObject) -> bool {
        true
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let range = DeviceRange {
            start: address,
            len: into.len() as u64,
        };
        let code = self.find((address & !MODELLED_ADDRESS) >> OBJECT_BITS);
        let found = code.map(Placed::segment);
        let found = found.unwrap_or(DeviceRange { start: 0, len: 0 });
        if let Some(code) = code
            && found.contains(&range)
        {
            let at = (address - found.start) as usize;
            into.copy_from_slice(&code.memory()[at..at + into.len()]);
            return Ok(());
        }
        Err(DeviceError::NotAllocated { range, found })
    }

    /// Fails always: nothing counts there.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::unallocated(DeviceRange {
            start: address,
            len: from.len() as u64,
        }))
    }

    fn executions(&self) -> Option<&dyn Executions> {
        Some(&self.counts)
    }
}
