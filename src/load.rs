//! Discovery: the instrumented code objects of an executable, as the loader has them.
//!
//! A load, not an address, is the unit of everything after this: addresses and handles are reused
//! after an unload, so each load gets a generation number when it is first seen.

use crate::codeobject::{CodeObject, Identity};
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, Executable, LoadedCodeObject, Symbol,
};
use crate::error::Error;
use crate::sections::{TABLE_SYMBOL, VERSION_SYMBOL};

/// One instrumented code object, loaded into one executable on one agent.
#[derive(Clone, Debug)]
pub struct Load {
    /// Number of the load, from 1 in the order of discovery; never reused in a process.
    pub generation: u64,
    /// The executable that holds it.
    pub executable: Executable,
    /// The agent that it is loaded on.
    pub agent: Agent,
    /// Where its ELF came from.
    pub uri: String,
    /// The device memory that it occupies.
    pub segment: DeviceRange,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// The section bounds table.
    pub table: Symbol,
    /// The version word that the compiler emitted itself, where it did.
    pub version: Option<Symbol>,
    /// What its ELF said, where that could still be read.
    pub elf: Option<ElfFacts>,
}

/// What a drain keeps of a code object's ELF.
#[derive(Clone, Debug)]
pub struct ElfFacts {
    /// The identity.
    pub identity: Identity,
    /// The GNU build id.
    pub build_id: Option<Vec<u8>>,
}

/// What a look at one executable found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Pairs of code object and agent, instrumented or not.
    pub pairs: usize,
    /// The instrumented ones.
    pub loads: Vec<Load>,
    /// What could not be looked at: URI of the code object, and why.
    pub failures: Vec<(String, Error)>,
}

/// Looks at every code object of `executable`; loads are numbered from `generation`.
///
/// A code object whose ELF cannot be read any more is still drained: its sections are on the
/// device, and only its identity has to come from elsewhere.
///
/// # Errors
/// Fails where the executable's code objects cannot be listed.
pub fn discover(
    device: &dyn Device,
    agents: &[Agent],
    executable: Executable,
    generation: u64,
) -> Result<Discovery, DeviceError> {
    let mut discovery = Discovery::default();
    for code_object in device.code_objects(executable)? {
        let Some(agent) = agents
            .iter()
            .find(|agent| agent.handle == code_object.agent)
        else {
            continue;
        };
        discovery.pairs += 1;
        let number = generation + discovery.loads.len() as u64;
        match instrumented(device, agent, &code_object, number) {
            Ok(Some(load)) => discovery.loads.push(load),
            Ok(None) => {}
            Err(error) => discovery.failures.push((code_object.uri, error.into())),
        }
    }
    Ok(discovery)
}

/// The load of `code_object`, or `None` where it has no section bounds table.
fn instrumented(
    device: &dyn Device,
    agent: &Agent,
    code_object: &LoadedCodeObject,
    generation: u64,
) -> Result<Option<Load>, DeviceError> {
    let symbol = |name| device.symbol(code_object.executable, agent.handle, name);
    let Some(table) = symbol(TABLE_SYMBOL)? else {
        return Ok(None);
    };
    Ok(Some(Load {
        generation,
        executable: code_object.executable,
        agent: agent.clone(),
        uri: code_object.uri.clone(),
        segment: code_object.segment,
        load_delta: code_object.load_delta,
        table,
        version: symbol(VERSION_SYMBOL)?,
        elf: elf_facts(device, code_object),
    }))
}

fn elf_facts(device: &dyn Device, code_object: &LoadedCodeObject) -> Option<ElfFacts> {
    let image = device.image(code_object.storage?).ok()?;
    Some(ElfFacts {
        identity: Identity::of(&image).ok()?,
        build_id: CodeObject::parse(&image)
            .ok()?
            .build_id()
            .ok()?
            .map(<[u8]>::to_vec),
    })
}
