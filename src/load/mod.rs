//! Discovery: the code objects of an executable, as the loader has them, and what their ELFs say.
//!
//! A load, not an address, is the unit of everything after this: addresses and handles are reused
//! after an unload, so each load gets a generation number when it is first seen.

mod elf;

pub use elf::{Demangle, ElfFacts, Elfs, Kernels};

use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

use crate::codeobject::ElfRange;
use crate::device::{
    Agent, Device, DeviceError, DeviceRange, Executable, LoadedCodeObject, Symbol,
};
use crate::error::Error;
use crate::host::HostFile;
use crate::sections::{BoundsTable, TABLE_SYMBOL, VERSION_SYMBOL};

/// One instrumented code object, loaded into one executable on one agent.
#[derive(Clone, Debug)]
pub struct Load {
    /// Number of the load, see [`crate::registry::Registry`]; never reused in a process.
    pub generation: u64,
    /// The executable that holds it.
    pub executable: Executable,
    /// The agent that it is loaded on.
    pub agent: Arc<Agent>,
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
    pub elf: Option<Arc<ElfFacts>>,
    /// The file of the host that it came from, if that is known.
    pub host: Option<Arc<HostFile>>,
    /// What the tables held, if they were blanked on the device.
    pub(crate) blanked: Option<Vec<BoundsTable>>,
}

impl Load {
    /// Where its version word is by what is known before anything is read.
    pub(crate) fn version_word(&self) -> Option<DeviceRange> {
        let own = self.elf.as_ref().and_then(|elf| elf.version);
        let own = || own.map(|range| loaded(range, self.load_delta));
        let Symbol { address, .. } = self.version.or_else(own)?;
        Some(DeviceRange {
            start: address,
            len: 8,
        })
    }

    /// Its tables and those of its translation units, which may be the same.
    pub(crate) fn all_tables(&self) -> impl Iterator<Item = Symbol> {
        let of_units = self.elf.iter().flat_map(|elf| &elf.unit_tables);
        let of_units = of_units.map(|range| loaded(*range, self.load_delta));
        self.tables.iter().copied().chain(of_units)
    }
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

/// A code object that was found loaded on an agent, instrumented or not.
#[derive(Clone, Debug)]
pub struct Found {
    /// What the loader says of it.
    pub code_object: LoadedCodeObject,
    /// The agent that it is loaded on.
    pub agent: Arc<Agent>,
    /// What its ELF said, where that could be read.
    pub elf: Option<Arc<ElfFacts>>,
    /// What a drain goes by; `None` where there is nothing to drain, or it is not wanted.
    pub(crate) counters: Option<Counters>,
}

/// Where a drain finds what a code object counts.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    tables: Vec<Symbol>,
    version: Option<Symbol>,
}

impl Found {
    /// Whether it counts anything, wanted or not, as far as is known.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        self.counters.is_some() || self.elf.as_ref().is_some_and(|elf| elf.is_instrumented())
    }

    /// It as load `generation`, from `host`, for the drain; `None` if there is nothing to drain.
    #[must_use]
    pub fn into_load(self, generation: u64, host: Option<Arc<HostFile>>) -> Option<Load> {
        let Counters { tables, version } = self.counters?;
        let LoadedCodeObject {
            executable,
            uri,
            segment,
            load_delta,
            ..
        } = self.code_object;
        Some(Load {
            generation,
            executable,
            agent: self.agent,
            uri,
            segment,
            load_delta,
            tables,
            version,
            elf: self.elf.filter(|elf| elf.is_instrumented()),
            host,
            blanked: None,
        })
    }
}

/// What a look at one executable found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Pairs of code object and agent.
    pub found: Vec<Found>,
    /// How many of them were not wanted for the drain.
    pub skipped: usize,
    /// What could not be looked at: where it came from and is, and why.
    pub failures: Vec<(String, Error)>,
}

/// Looks at every code object of `executable`; those whose URI is `wanted` can be drained.
///
/// A code object whose ELF cannot be read any more is still drained where it has a table: its
/// sections are on the device, and only its identity has to come from elsewhere.
///
/// # Errors
/// Fails where the executable's code objects cannot be listed.
pub fn discover(
    device: &dyn Device,
    agents: &[Arc<Agent>],
    executable: Executable,
    elfs: &mut Elfs,
    wanted: impl Fn(&str) -> bool,
) -> Result<Discovery, DeviceError> {
    let mut discovery = Discovery::default();
    for code_object in device.code_objects(executable)? {
        let Some(agent) = agents
            .iter()
            .find(|agent| agent.handle == code_object.agent)
        else {
            // What counts is not passed over in silence.
            let handle = code_object.agent;
            let table = device.symbol(executable, handle, TABLE_SYMBOL);
            if table.is_ok_and(|table| table.is_some()) {
                let unknown = DeviceError::UnknownAgent { handle };
                discovery.failures.push((code_object.uri, unknown.into()));
            }
            continue;
        };
        // An ELF out of reach, or damaged in what the loader did not need, takes nothing away from
        // what a table says.
        let (elf, shortage) = match elfs.look(device, agent, &code_object) {
            Ok(elf) => (Some(elf), None),
            Err(error) => (None, Some(error).filter(is_shortage)),
        };
        let counters = if wanted(&code_object.uri) {
            let counters = match counters(device, &code_object, elf.as_deref()) {
                Ok(None) => shortage.map_or(Ok(None), Err),
                counters => counters.map_err(Error::from),
            };
            counters.unwrap_or_else(|error| {
                let place = format!("{} on {agent}", code_object.uri);
                discovery.failures.push((place, error));
                None
            })
        } else {
            discovery.skipped += 1;
            None
        };
        discovery.found.push(Found {
            code_object,
            agent: agent.clone(),
            elf,
            counters,
        });
    }
    Ok(discovery)
}

/// Whether an ELF is out of reach because the system is short of files or memory: it may be that of a
/// code object that counts. Where the program has freed it, nobody can tell any more.
fn is_shortage(error: &Error) -> bool {
    let Error::Device(DeviceError::Image { source, .. }) = error else {
        return false;
    };
    matches!(
        Errno::from_io_error(source),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    )
}

/// What there is to drain of `code_object`; `None` where it counts nothing.
fn counters(
    device: &dyn Device,
    code_object: &LoadedCodeObject,
    elf: Option<&ElfFacts>,
) -> Result<Option<Counters>, DeviceError> {
    let elf = elf.filter(|elf| elf.is_instrumented());
    let symbol = |name| {
        let symbol = device.symbol(code_object.executable, code_object.agent, name);
        match elf {
            // What the loader cannot say, the ELF does.
            Some(_) => Ok(symbol.unwrap_or_default()),
            None => symbol,
        }
    };
    let tables: Vec<Symbol> = match (symbol(TABLE_SYMBOL)?, elf) {
        (Some(table), _) => vec![table],
        (None, Some(elf)) => elf
            .unit_tables
            .iter()
            .map(|range| loaded(*range, code_object.load_delta))
            .collect(),
        (None, None) => return Ok(None),
    };
    let version = symbol(VERSION_SYMBOL)?;
    Ok(Some(Counters { tables, version }))
}

fn loaded(range: ElfRange, load_delta: u64) -> Symbol {
    Symbol {
        address: range.address.wrapping_add(load_delta),
        size: range.size,
    }
}
