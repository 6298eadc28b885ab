//! A code object that is not loaded, as a device: its memory comes from its ELF.
//!
//! A drain reads it like the memory of a GPU. It finds the state of a load before any kernel has run: all
//! counters are zero, or "not reached".

use std::io::Cursor;
use std::sync::Arc;

use thiserror::Error;

use crate::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, Executions, LoadedCodeObject,
    Symbol,
};
use crate::format::codeobject::cuda::{laid_out, without_code};
use crate::format::codeobject::{CodeObject, CodeObjectError, Identity};
use crate::format::profraw::Version;
use crate::format::ptx::Module;
use crate::instrument::ptx::PtxOptions;

/// The only executable.
const EXECUTABLE: Executable = Executable(1);

/// A code object that is not loaded.
#[derive(Debug)]
pub struct AtRest {
    agent: Agent,
    uri: String,
    identity: Identity,
    elf: Vec<u8>,
    memory: Vec<u8>,
    /// The PTX, if the code was never compiled.
    source: Option<Arc<str>>,
    executions: Option<NoExecutions>,
}

/// The reason why PTX has no counters.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NeverCompiledError {
    /// No ELF can be made of it.
    #[error(transparent)]
    Elf(#[from] CodeObjectError),
    /// The text has no function with a body.
    #[error("the PTX has no functions")]
    Empty,
}

/// The counts of a device that has executed nothing.
#[derive(Debug)]
struct NoExecutions;

impl Executions for NoExecutions {
    fn count(&self, _start: u64, _counters: &mut [u64]) {}

    fn forget(&self, _range: DeviceRange) {}
}

impl AtRest {
    /// The code object with the bytes `elf`, from `uri`, as if `agent` had it loaded at address 0.
    ///
    /// # Errors
    /// Fails if `elf` is not a code object that can be loaded.
    pub fn new(agent: Agent, uri: String, elf: Vec<u8>) -> Result<Self, CodeObjectError> {
        let elf = match laid_out(&elf) {
            Ok(Some(cubin)) => cubin.elf,
            Ok(None) | Err(_) => elf,
        };
        let memory = CodeObject::parse(elf.as_slice())?.memory()?;
        Ok(Self {
            agent,
            uri,
            identity: Identity::from_image(&elf)?,
            elf,
            memory,
            executions: None,
            source: None,
        })
    }

    /// PTX that no driver has compiled, from `uri`, as if `agent` had it loaded with counters of its blocks.
    ///
    /// # Errors
    /// Fails if no function of the module has a body.
    pub fn from_ptx(
        agent: Agent,
        uri: String,
        module: &Module<'_>,
    ) -> Result<Self, NeverCompiledError> {
        let records = module.records();
        if records.is_empty() {
            return Err(NeverCompiledError::Empty);
        }
        let version = Version::from_word(PtxOptions::default().version);
        let version = version.expect("rocov writes profiles of this version");
        let architecture = module.architecture().unwrap_or_default();
        let (data, names) = (records.data(&version, 0), records.names());
        let elf = without_code(
            architecture,
            &version,
            &data,
            &names,
            records.counters_len(),
        )?;
        Ok(Self {
            source: Some(module.text.into()),
            ..Self::new(agent, uri, elf)?
        })
    }

    /// The code object on a device that counts what it executes.
    #[must_use]
    pub fn traced(self) -> Self {
        Self {
            executions: Some(NoExecutions),
            ..self
        }
    }

    /// The agent that would have it loaded.
    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Its identity.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The bytes in `range`, which must lie in the code object.
    fn at(&self, range: DeviceRange) -> Result<&[u8], DeviceError> {
        let all = self.segment();
        let is_inside = all.contains(&range);
        let start = range.start as usize;
        let bytes = is_inside.then(|| &self.memory[start..start + range.len as usize]);
        bytes.ok_or(DeviceError::NotAllocated { range, found: all })
    }

    fn segment(&self) -> DeviceRange {
        DeviceRange {
            start: 0,
            len: self.memory.len() as u64,
        }
    }
}

impl Device for AtRest {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        Ok(vec![self.agent.clone()])
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        Ok(vec![EXECUTABLE])
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        Ok(vec![LoadedCodeObject {
            executable,
            agent: self.agent.handle,
            uri: self.uri.clone(),
            segment: self.segment(),
            load_delta: 0,
            storage: None,
        }])
    }

    fn source(&self, _code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        self.source.clone()
    }

    fn symbol(
        &self,
        _executable: Executable,
        _agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        // The ELF was parsed before. If it is damaged by now, it has no symbols.
        let elf = CodeObject::parse(self.elf.as_slice()).ok();
        let found = elf.and_then(|elf| elf.variable(name.as_bytes()).ok()?);
        Ok(found.map(|range| Symbol {
            address: range.address,
            size: range.size,
        }))
    }

    fn image(&self, _code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        Ok(Box::new(Cursor::new(self.elf.clone())))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let range = DeviceRange {
            start: address,
            len: into.len() as u64,
        };
        into.copy_from_slice(self.at(range)?);
        Ok(())
    }

    /// Fails always: nothing counts there.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::unallocated(DeviceRange {
            start: address,
            len: from.len() as u64,
        }))
    }

    fn executions(&self) -> Option<&dyn Executions> {
        let executions = self.executions.as_ref();
        executions.map(|execution| execution as &dyn Executions)
    }
}
