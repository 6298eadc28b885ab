//! Discovery: the instrumented code objects of an executable, as the loader has them.
//!
//! A load, not an address, is the unit of everything after this: addresses and handles are reused
//! after an unload, so each load gets a generation number when it is first seen.

use std::fmt;

use object::read::{ReadCache, ReadRef};

use crate::codeobject::{CodeObject, ElfRange, Identity, ProfileSections};
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
    /// Its section bounds tables: one, or one for each translation unit, or none.
    pub tables: Vec<Symbol>,
    /// The version word that the compiler emitted itself, where it did.
    pub version: Option<Symbol>,
    /// What its ELF said, where that could still be read.
    pub elf: Option<ElfFacts>,
}

impl fmt::Display for Load {
    /// Names the load in a message: where it came from, its identity where that is known, and
    /// where it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)?;
        if let Some(elf) = &self.elf {
            write!(f, " ({})", elf.identity.as_str())?;
        }
        write!(f, " on {}", self.agent)
    }
}

/// What a drain keeps of a code object's ELF.
#[derive(Clone, Debug)]
pub struct ElfFacts {
    /// The identity.
    pub identity: Identity,
    /// The GNU build id.
    pub build_id: Option<Vec<u8>>,
    /// The profile sections by its section headers.
    pub sections: ProfileSections,
    /// The major version of the clang that compiled it.
    pub clang: Option<u32>,
}

/// What a look at one executable found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Pairs of code object and agent, instrumented or not.
    pub pairs: usize,
    /// Those that were not wanted.
    pub skipped: usize,
    /// The instrumented ones.
    pub loads: Vec<Load>,
    /// What could not be looked at: where it came from and is, and why.
    pub failures: Vec<(String, Error)>,
}

/// Looks at every code object of `executable` whose URI is `wanted`; loads are numbered from
/// `generation`.
///
/// A code object whose ELF cannot be read any more is still drained where it has a table: its
/// sections are on the device, and only its identity has to come from elsewhere.
///
/// # Errors
/// Fails where the executable's code objects cannot be listed.
pub fn discover(
    device: &dyn Device,
    agents: &[Agent],
    executable: Executable,
    generation: u64,
    wanted: impl Fn(&str) -> bool,
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
        if !wanted(&code_object.uri) {
            discovery.skipped += 1;
            continue;
        }
        let number = generation + discovery.loads.len() as u64;
        match instrumented(device, agent, &code_object, number) {
            Ok(Some(load)) => discovery.loads.push(load),
            Ok(None) => {}
            Err(error) => {
                let place = format!("{} on {agent}", code_object.uri);
                discovery.failures.push((place, error));
            }
        }
    }
    Ok(discovery)
}

/// The load of `code_object`, or `None` where it counts nothing.
fn instrumented(
    device: &dyn Device,
    agent: &Agent,
    code_object: &LoadedCodeObject,
    generation: u64,
) -> Result<Option<Load>, Error> {
    let symbol = |name| device.symbol(code_object.executable, agent.handle, name);
    let table = symbol(TABLE_SYMBOL)?;
    // An ELF out of reach, or damaged in what the loader did not need, takes nothing away from
    // what a table says.
    let elf = look(device, code_object).unwrap_or_default();
    let tables: Vec<Symbol> = match (table, &elf) {
        (Some(table), _) => vec![table],
        (None, Some((_, tables))) => tables
            .iter()
            .map(|range| loaded(*range, code_object.load_delta))
            .collect(),
        (None, None) => Vec::new(),
    };
    if tables.is_empty() && elf.is_none() {
        return Ok(None);
    }
    Ok(Some(Load {
        generation,
        executable: code_object.executable,
        agent: agent.clone(),
        uri: code_object.uri.clone(),
        segment: code_object.segment,
        load_delta: code_object.load_delta,
        tables,
        version: symbol(VERSION_SYMBOL)?,
        elf: elf.map(|(facts, _)| facts),
    }))
}

/// Reads the ELF's headers, and all of it where it is instrumented; with it go the tables of
/// translation units. `None` where it is not instrumented.
fn look(
    device: &dyn Device,
    code_object: &LoadedCodeObject,
) -> Result<Option<(ElfFacts, Vec<ElfRange>)>, Error> {
    let image = ReadCache::new(device.image(code_object)?);
    let elf = CodeObject::parse(&image)?;
    let sections = elf.profile_sections();
    if !sections.are_instrumented() {
        return Ok(None);
    }
    let len = (&image).len().map_err(|()| unreadable(code_object))?;
    let bytes = (&image)
        .read_bytes_at(0, len)
        .map_err(|()| unreadable(code_object))?;
    let facts = ElfFacts {
        identity: Identity::of(bytes)?,
        build_id: elf.build_id()?.map(<[u8]>::to_vec),
        sections,
        clang: elf.clang_version(),
    };
    let unit_tables = elf.variables(format!("{TABLE_SYMBOL}_").as_bytes())?;
    Ok(Some((facts, unit_tables)))
}

fn unreadable(code_object: &LoadedCodeObject) -> DeviceError {
    DeviceError::Image {
        uri: code_object.uri.clone(),
        source: std::io::ErrorKind::UnexpectedEof.into(),
    }
}

fn loaded(range: ElfRange, load_delta: u64) -> Symbol {
    Symbol {
        address: range.address.wrapping_add(load_delta),
        size: range.size,
    }
}
