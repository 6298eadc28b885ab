//! A code object that is not loaded, seen as if it were: the device is its ELF.
//!
//! What a drain does with memory of a GPU it does with this, and finds what a load has before any
//! kernel has run: all counters zero, or "not reached".

use std::io::Cursor;

use crate::codeobject::{CodeObject, CodeObjectError, Identity};
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, Executable, Image, LoadedCodeObject, Symbol,
};

/// The one executable there is.
const EXECUTABLE: Executable = Executable(1);

/// A code object at rest.
#[derive(Debug)]
pub struct AtRest {
    agent: Agent,
    uri: String,
    identity: Identity,
    elf: Vec<u8>,
    memory: Vec<u8>,
}

impl AtRest {
    /// The code object with the bytes `elf`, from the place `uri`, as `agent` would have it loaded
    /// at address 0.
    ///
    /// # Errors
    /// Fails where `elf` is not a code object that can be loaded.
    pub fn new(agent: Agent, uri: String, elf: Vec<u8>) -> Result<AtRest, CodeObjectError> {
        let memory = CodeObject::parse(elf.as_slice())?.memory()?;
        Ok(AtRest {
            agent,
            uri,
            identity: Identity::of(&elf)?,
            elf,
            memory,
        })
    }

    /// The agent that would have it loaded.
    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Its identity.
    pub(crate) fn identity(&self) -> &Identity {
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

    fn symbol(
        &self,
        _executable: Executable,
        _agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        // It was parsed before, and what is damaged of it by now has no symbols.
        let elf = CodeObject::parse(self.elf.as_slice()).ok();
        let found = elf.and_then(|elf| elf.variable(name.as_bytes()).ok()?);
        Ok(found.map(|range| Symbol {
            address: range.address,
            size: range.size,
        }))
    }

    fn image(&self, _code_object: &LoadedCodeObject) -> Result<Box<dyn Image>, DeviceError> {
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

    /// Refused: nobody counts there.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::NotAllocated {
            range: DeviceRange {
                start: address,
                len: from.len() as u64,
            },
            found: DeviceRange { start: 0, len: 0 },
        })
    }
}
