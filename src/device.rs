//! What a drain needs of a device runtime: agents, loaded code objects, symbols, memory.
//!
//! [`crate::hsa::HsaDevice`] implements it on ROCr; tests implement it in memory, with faults by
//! script. Nothing here knows of profiles.

use std::fmt;
use std::io::{Read, Seek};
use std::time::Duration;

use thiserror::Error;

use crate::order::in_order;

/// A GPU agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The runtime's handle (`hsa_agent_t`).
    pub handle: u64,
    /// Place among the GPU agents in the runtime's order, from 0. CPUs are not counted, so the
    /// number is the one that `ROCR_VISIBLE_DEVICES` and HIP use.
    pub index: usize,
    /// The agent's name, such as `gfx90a`.
    pub name: String,
    /// Its instruction set with features, such as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`;
    /// `None` where the runtime does not tell. Likewise below.
    pub isa: Option<String>,
    /// Such as `GPU-4f1d29b0c6e83a57`; `GPU-XX` for a device without.
    pub uuid: Option<String>,
    /// The driver's number of the node, `N` in `/sys/class/kfd/kfd/topology/nodes/N`: CPUs are
    /// counted.
    pub node: Option<u32>,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.index)
    }
}

/// The runtime's handle of an executable: a set of code objects that is loaded and destroyed as
/// one. Handles are reused after a destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Executable(pub u64);

/// A range of device addresses, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
}

impl DeviceRange {
    /// The first address after the range, or `None` where it would pass 2^64.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.start.checked_add(self.len)
    }

    /// The places of those among `ranges` that are not empty, by where they start.
    pub(crate) fn in_order(ranges: &[DeviceRange]) -> Vec<usize> {
        let mut order = in_order(ranges.iter().map(|range| range.start));
        order.retain(|place| ranges[*place].len > 0);
        order
    }

    /// Whether `inner` lies in this range as a whole. An empty range lies wherever its start
    /// does, the end included.
    #[must_use]
    pub fn contains(&self, inner: &DeviceRange) -> bool {
        match (self.end(), inner.end()) {
            (Some(end), Some(inner_end)) => self.start <= inner.start && inner_end <= end,
            _ => false,
        }
    }

    /// Returns whether a byte lies in both ranges.
    #[must_use]
    pub fn overlaps(&self, other: &DeviceRange) -> bool {
        let begins_in = |inner: &DeviceRange, outer: &DeviceRange| {
            inner.start >= outer.start && inner.start - outer.start < outer.len
        };
        self.len > 0 && other.len > 0 && (begins_in(self, other) || begins_in(other, self))
    }
}

impl fmt::Display for DeviceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:#x}..{:#x}",
            self.start,
            self.start.wrapping_add(self.len)
        )
    }
}

/// A code object as it is loaded on one agent.
#[derive(Clone, Debug)]
pub struct LoadedCodeObject {
    /// The executable it belongs to.
    pub executable: Executable,
    /// Handle of the agent it is loaded on.
    pub agent: u64,
    /// Where its ELF came from, such as `file:///app#offset=8192&size=9000` or `memory://...`.
    pub uri: String,
    /// The device memory that it occupies: since code object v2 one segment for all its loadable
    /// program headers.
    pub segment: DeviceRange,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// Host memory that held the ELF when it was loaded. Its owner may have freed it since.
    /// `None` where the runtime was given a file.
    pub storage: Option<DeviceRange>,
}

/// A variable of a loaded code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Device address.
    pub address: u64,
    /// Size in bytes, 0 where the runtime does not know it.
    pub size: u64,
}

/// Why the device runtime could not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A call of the runtime failed.
    #[error("{call} failed with status {status:#x}")]
    Call {
        /// The runtime's function.
        call: &'static str,
        /// The status it returned (`hsa_status_t`).
        status: u32,
    },
    /// The runtime lacks a function that the drain needs.
    #[error("{library} has no {symbol}: {reason}")]
    MissingFunction {
        /// The runtime library.
        library: &'static str,
        /// The function.
        symbol: &'static str,
        /// What the dynamic linker said.
        reason: String,
    },
    /// The runtime has no CPU agent to copy to.
    #[error("the HSA runtime lists no CPU agent")]
    NoCpu,
    /// A code object that counts is loaded on an agent that is not among the GPUs.
    #[error("the HSA runtime lists no GPU agent {handle:#x}")]
    UnknownAgent {
        /// The agent's handle.
        handle: u64,
    },
    /// There is no host memory for what is to be copied, or for what is to be made of it.
    #[error("no memory: {bytes} bytes are needed")]
    NoMemory {
        /// How much was asked for, in bytes.
        bytes: u64,
    },
    /// Copies from or to an agent do not come to an end. It is left alone from then on.
    #[error("a copy from or to GPU agent {agent:#x} has not ended in {} seconds", waited.as_secs())]
    Stuck {
        /// The agent's handle.
        agent: u64,
        /// How long was waited, without anything having come.
        waited: Duration,
    },
    /// A range is not inside one allocation of the runtime; copying it would be a wild read.
    #[error("{range} is not inside one device allocation (found {found})")]
    NotAllocated {
        /// The range that was to be read.
        range: DeviceRange,
        /// The allocation at its start.
        found: DeviceRange,
    },
    /// What should hold a code object cannot be opened.
    #[error("the ELF of {uri} cannot be read: {source}")]
    Image {
        /// The code object's URI.
        uri: String,
        /// What reading it said.
        source: std::io::Error,
    },
}

/// Host memory for `len` bytes. How many they are a device says, and whether there is room for them
/// must not decide whether the program lives.
pub(crate) fn room(len: u64) -> Result<Vec<u8>, DeviceError> {
    let no_memory = || DeviceError::NoMemory { bytes: len };
    let size = usize::try_from(len).map_err(|_| no_memory())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| no_memory())?;
    Ok(bytes)
}

/// The same, filled with zeros.
pub(crate) fn zeroed(len: u64) -> Result<Vec<u8>, DeviceError> {
    let mut bytes = room(len)?;
    bytes.resize(len as usize, 0);
    Ok(bytes)
}

/// Bytes of an ELF that are read as needed: most code objects are only looked at.
pub trait Image: Read + Seek {}

impl<T: Read + Seek> Image for T {}

/// What takes copies: the place of each among the ranges, and its bytes.
pub type Take<'a> = dyn FnMut(usize, Result<&[u8], DeviceError>) + 'a;

/// A device runtime with code objects loaded.
pub trait Device {
    /// The GPU agents, in the runtime's order.
    ///
    /// # Errors
    /// Fails where the runtime does.
    fn agents(&self) -> Result<Vec<Agent>, DeviceError>;

    /// The executables that are alive now.
    ///
    /// # Errors
    /// Fails where the runtime does.
    fn executables(&self) -> Result<Vec<Executable>, DeviceError>;

    /// The code objects loaded into `executable`, on all agents.
    ///
    /// # Errors
    /// Fails where the runtime does, as for an executable that is gone.
    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError>;

    /// The variable `name` of `executable` on the agent with handle `agent`; `None` where it has
    /// none. Costs the same however many symbols there are.
    ///
    /// # Errors
    /// Fails where the runtime does.
    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError>;

    /// The ELF behind a loaded code object, as it was handed to the runtime. Reading it may fail
    /// where its owner has freed it.
    ///
    /// # Errors
    /// Fails where it is out of reach.
    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn Image>, DeviceError>;

    /// Copies `into.len()` bytes of device memory from `address`.
    ///
    /// # Errors
    /// Fails where the range is not allocated, or the copy fails. `into` then holds anything.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies `ranges` of device memory, and hands each to `take` with its place among them, in their
    /// order. Others may be under way meanwhile. An empty range is not copied.
    ///
    /// What fails, fails for that range alone, as [`Device::read`] does.
    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        for (place, range) in ranges.iter().enumerate() {
            let mut bytes = Vec::new();
            let read = match range.len {
                0 => Ok(()),
                len => zeroed(len).and_then(|room| {
                    bytes = room;
                    self.read(range.start, &mut bytes)
                }),
            };
            take(place, read.map(|()| bytes.as_slice()));
        }
    }

    /// Copies `from` to device memory at `address`.
    ///
    /// # Errors
    /// Fails where the range is not allocated, or the copy fails.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError>;
}
