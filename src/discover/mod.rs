//! Discovery: the code objects of an executable, as the loader lists them, and the facts from their ELFs.
//!
//! Everything after this works with loads, not addresses: addresses and handles are reused after an unload.
//! So each load gets a generation number when rocov first sees it.

mod elf_cache;
mod error;
pub mod filter;
pub mod host_files;
pub(crate) mod registry;

pub use elf_cache::{ElfFacts, Elfs, InsertedCounters, is_of_runtime};
pub use error::DiscoverError;
pub use registry::{CodeFile, Loaded, Registry};

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use crate::device::{
    Agent, Device, DeviceError, DeviceRange, ElfBytes, Executable, LoadedCodeObject, Symbol,
};
use crate::discover::filter::file_of;
use crate::discover::host_files::HostFile;
use crate::format::bounds_table::{BoundsTable, TABLE_SYMBOL, VERSION_SYMBOL};
use crate::format::codeobject::ElfRange;
use crate::format::copies_table::COPIES_SYMBOL;

/// One code object with counts, loaded into one executable on one agent.
#[derive(Clone, Debug)]
pub struct Load {
    /// The number of the load, see [`crate::discover::Registry`]. It is never reused in a process.
    pub generation: u64,
    /// The executable that holds it.
    pub executable: Executable,
    /// The agent that it is loaded on.
    pub agent: Arc<Agent>,
    /// The URI of its ELF.
    pub uri: String,
    /// The device memory that it occupies.
    pub segment: DeviceRange,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// Its section bounds tables: one, or one for each translation unit, or none.
    pub tables: Vec<Symbol>,
    /// The version word that the compiler emitted, if it did.
    pub version: Option<Symbol>,
    /// The bounds of its tables of copies, if it has copies and its ELF could not be read.
    pub(crate) copies: Option<Symbol>,
    /// The facts from its ELF, if it could still be read.
    pub elf: Option<Arc<ElfFacts>>,
    /// The host file that it came from, if that is known.
    pub host: Option<Arc<HostFile>>,
    /// The contents of the tables, if a drain has blanked them on the device.
    pub(crate) blanked: Option<Vec<BoundsTable>>,
}

impl Load {
    /// The place of its version word, as far as it is known before a read.
    pub(crate) fn version_word(&self) -> Option<DeviceRange> {
        let own = self.elf.as_ref().and_then(|elf| elf.version);
        let own = || own.map(|range| loaded(range, self.load_delta));
        let Symbol { address, .. } = self.version.or_else(own)?;
        Some(DeviceRange {
            start: address,
            len: 8,
        })
    }

    /// Returns whether its code has counters of its own.
    pub(crate) fn is_instrumented(&self) -> bool {
        self.elf.as_ref().is_none_or(|elf| elf.is_instrumented())
    }

    /// The counters that rocov has put into its machine code.
    pub(crate) fn inserted(&self) -> Option<&InsertedCounters> {
        self.elf.as_ref()?.inserted.as_ref()
    }

    /// The device memory of these counters, before any check.
    pub(crate) fn inserted_range(&self) -> Option<DeviceRange> {
        let range = self.inserted()?.range;
        Some(DeviceRange {
            start: range.address.wrapping_add(self.load_delta),
            len: range.size,
        })
    }

    /// Returns whether its code counts in copies of the counters.
    pub(crate) fn has_copies(&self) -> bool {
        self.copies.is_some() || self.elf.as_ref().is_some_and(|elf| !elf.copies.is_empty())
    }

    /// Its tables and those of its translation units. A table may appear twice.
    pub(crate) fn all_tables(&self) -> impl Iterator<Item = Symbol> {
        let of_units = self.elf.iter().flat_map(|elf| &elf.unit_tables);
        let of_units = of_units.map(|range| loaded(*range, self.load_delta));
        self.tables.iter().copied().chain(of_units)
    }
}

impl fmt::Display for Load {
    /// Names the load in a message: its URI, its identity if that is known, and its agent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)?;
        if let Some(elf) = &self.elf {
            write!(f, " ({})", elf.identity.as_str())?;
        }
        write!(f, " on {}", self.agent)
    }
}

/// A code object on an agent, instrumented or not.
#[derive(Debug)]
pub struct Found {
    /// The loader's data about it.
    pub code_object: LoadedCodeObject,
    /// The agent that it is loaded on.
    pub agent: Arc<Agent>,
    /// The facts from its ELF, if it could be read.
    pub elf: Option<Arc<ElfFacts>>,
    /// The ELF, opened and compared with the loaded code object. `None` if it could not be read, did not have to be, or was
    /// taken.
    pub(crate) image: Option<ElfBytes>,
    /// The tables and the version word for a drain. `None` if there is nothing to drain, or the filter
    /// rejects it.
    pub(crate) counters: Option<Counters>,
}

/// The symbols that lead a drain to the counters of a code object.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    tables: Vec<Symbol>,
    version: Option<Symbol>,
    copies: Option<Symbol>,
}

impl Found {
    /// Returns whether its executions are counted, as far as is known, even if the filter rejects it.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        self.counters.is_some() || self.elf.as_ref().is_some_and(|elf| elf.is_counted())
    }

    /// Turns it into load `generation` from `host`. `None` if there is nothing to drain.
    #[must_use]
    pub fn into_load(self, generation: u64, host: Option<Arc<HostFile>>) -> Option<Load> {
        let Counters {
            tables,
            version,
            copies,
        } = self.counters?;
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
            copies,
            elf: self.elf.filter(|elf| elf.is_counted()),
            host,
            blanked: None,
        })
    }
}

/// The results for one executable.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Pairs of code object and agent.
    pub found: Vec<Found>,
    /// The number of them that the filter rejected.
    pub skipped: usize,
    /// The code objects that could not be examined: a name for messages, and the error.
    pub failures: Vec<(String, DiscoverError)>,
}

/// The code that is loading an executable.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    /// Its file, if that is known.
    pub file: Option<PathBuf>,
    /// True if it has HIP load the executable. HIP keeps an ELF that it got in memory until the load has ended.
    pub is_hip: bool,
}

/// Examines every code object of `executable`, which `loader` is loading. A drain includes only those whose URI is `wanted`.
///
/// If the ELF of a code object can no longer be read but there is a table, a drain still includes it: its
/// sections are on the device, and only its identity must come from elsewhere.
///
/// # Errors
/// Fails if the code objects of the executable cannot be listed.
pub fn discover(
    device: &dyn Device,
    agents: &[Arc<Agent>],
    executable: Executable,
    elfs: &mut Elfs,
    loader: &Loader,
    wanted: impl Fn(&str) -> bool,
) -> Result<Discovery, DeviceError> {
    let mut discovery = Discovery::default();
    for code_object in device.code_objects(executable)? {
        let Some(agent) = agents
            .iter()
            .find(|agent| agent.handle == code_object.agent)
        else {
            // Do not skip counters silently.
            let handle = code_object.agent;
            let table = device.symbol(executable, handle, TABLE_SYMBOL);
            if table.is_ok_and(|table| table.is_some()) {
                let unknown = DeviceError::UnknownAgent { handle };
                discovery.failures.push((code_object.uri, unknown.into()));
            }
            continue;
        };
        // ROCr reads the file of a URI into memory that it may already have freed.
        let is_held = file_of(&code_object.uri).is_none() && loader.is_hip;
        // If the ELF cannot be read, or is damaged in a part that the loader did not need, the table is still
        // valid.
        let (elf, image, loss) = match elfs.look(device, agent, &code_object, is_held) {
            Ok((elf, image)) => (Some(elf), image, None),
            Err(error) => (None, None, Some(error).filter(hides_counters)),
        };
        let counters = if wanted(&code_object.uri) {
            let counters = match counters(device, &code_object, elf.as_deref()) {
                Ok(None) => loss.map_or(Ok(None), Err),
                counters => counters.map_err(DiscoverError::from),
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
            image,
            counters,
        });
    }
    Ok(discovery)
}

/// Returns whether a code object has counters, or may have some, but nobody can find them: another release wrote their map, or
/// the system is short of files or memory and cannot read the ELF. If the program has freed the ELF, nobody can find out any
/// more.
fn hides_counters(error: &DiscoverError) -> bool {
    let source = match error {
        DiscoverError::Map(_) => return true,
        DiscoverError::Device(DeviceError::Image { source, .. }) => source,
        _ => return false,
    };
    matches!(
        Errno::from_io_error(source),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    )
}

/// The symbols for a drain of `code_object`. `None` if it has no counts.
fn counters(
    device: &dyn Device,
    code_object: &LoadedCodeObject,
    elf: Option<&ElfFacts>,
) -> Result<Option<Counters>, DeviceError> {
    if elf.is_some_and(|elf| elf.trace.is_some() && !elf.is_instrumented()) {
        return Ok(Some(Counters {
            tables: Vec::new(),
            version: None,
            copies: None,
        }));
    }
    let elf = elf.filter(|elf| elf.is_instrumented());
    let symbol = |name| {
        let symbol = device.symbol(code_object.executable, code_object.agent, name);
        match elf {
            // If the loader fails to answer, the ELF does.
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
    let copies = match elf {
        Some(_) => None,
        None => symbol(COPIES_SYMBOL)?,
    };
    Ok(Some(Counters {
        tables,
        version,
        copies,
    }))
}

fn loaded(range: ElfRange, load_delta: u64) -> Symbol {
    Symbol {
        address: range.address.wrapping_add(load_delta),
        size: range.size,
    }
}
