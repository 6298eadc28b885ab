//! The interface between a drain and a device runtime: agents, loaded code objects, symbols, memory.
//!
//! [`crate::device::hsa::HsaDevice`] implements it on ROCr. Tests implement it in memory, with scripted
//! faults. Nothing here depends on profiles.

pub mod cuda;
mod elf_bytes;
pub mod elf_file;
mod gpus;
pub mod hsa;
mod modelled;

pub(crate) use elf_bytes::ElfBuffer;
pub use elf_bytes::ElfBytes;
pub use gpus::Gpus;
pub use modelled::ModelledDevice;

use std::borrow::Cow;
use std::fmt;
use std::io::{Read, Seek};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::format::codeobject::Identity;
use crate::support::diagnostic::Remedy;
use crate::support::memory::{NoMemory, zeroed};

/// A GPU agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The runtime's handle (`hsa_agent_t`).
    pub handle: u64,
    /// The number among the GPU agents in the runtime's order, from 0. CPUs are not counted, so this is the
    /// number that `ROCR_VISIBLE_DEVICES` and HIP use.
    pub index: usize,
    /// The agent's name, such as `gfx90a`.
    pub name: String,
    /// Its instruction set with features, such as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`. `None` if the
    /// runtime does not report it.
    pub isa: Option<String>,
    /// Its UUID, such as `GPU-4f1d29b0c6e83a57`, or `GPU-XX` if the device has none. `None` if the runtime
    /// does not report it.
    pub uuid: Option<String>,
    /// The driver's number of the node, `N` in `/sys/class/kfd/kfd/topology/nodes/N`. CPUs are counted.
    /// `None` if the runtime does not report it.
    pub node: Option<u32>,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.index)
    }
}

/// The runtime's handle of an executable: a set of code objects that is loaded and destroyed as one. The
/// runtime reuses handles after a destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Executable(pub u64);

/// A range of device addresses, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub len: u64,
}

impl DeviceRange {
    /// The first address after the range. `None` if it would pass 2^64.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.start.checked_add(self.len)
    }

    /// The indices of the ranges that are not empty, ordered by start address.
    pub(crate) fn in_order(ranges: &[Self]) -> Vec<usize> {
        let places = ranges.iter().enumerate();
        let places = places.filter(|(_, range)| range.len > 0);
        let mut order: Vec<_> = places.map(|(place, range)| (range.start, place)).collect();
        // The sort is of numbers, because each other type that is sorted adds kilobytes to librocov.
        order.sort_unstable();
        order.into_iter().map(|(_, place)| place).collect()
    }

    /// Returns whether all of `inner` lies in this range. An empty range needs only its start in the range or
    /// at its end.
    #[must_use]
    pub fn contains(&self, inner: &Self) -> bool {
        match (self.end(), inner.end()) {
            (Some(end), Some(inner_end)) => self.start <= inner.start && inner_end <= end,
            _ => false,
        }
    }

    /// Returns whether a byte lies in both ranges.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let begins_in = |inner: &Self, outer: &Self| {
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

/// A code object that is loaded on one agent.
#[derive(Clone, Debug)]
pub struct LoadedCodeObject {
    /// The executable that it belongs to.
    pub executable: Executable,
    /// The handle of the agent that it is loaded on.
    pub agent: u64,
    /// The URI of its ELF, such as `file:///app#offset=8192&size=9000` or `memory://...`.
    pub uri: String,
    /// The device memory that it occupies: since code object v2, one segment for all its loadable program
    /// headers.
    pub segment: DeviceRange,
    /// Device address minus ELF address, modulo 2^64.
    pub load_delta: u64,
    /// Host memory that held the ELF when it was loaded. Its owner may have freed it since. `None` if the
    /// runtime got a file.
    pub storage: Option<DeviceRange>,
}

/// A variable of a loaded code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Device address.
    pub address: u64,
    /// The size in bytes. 0 if the runtime does not report it.
    pub size: u64,
}

/// The reason why the device runtime could not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A call into the runtime failed.
    #[error("{call} failed with status {status:#x}")]
    Call {
        /// The runtime's function.
        call: &'static str,
        /// The returned status (`hsa_status_t`).
        status: u32,
    },
    /// The runtime lacks a function that the drain needs.
    #[error("{library} has no {symbol}: {reason}")]
    MissingFunction {
        /// The runtime library.
        library: &'static str,
        /// The function.
        symbol: &'static str,
        /// The dynamic linker's message.
        reason: String,
    },
    /// The runtime has no CPU agent to copy to.
    #[error("the HSA runtime lists no CPU agent")]
    NoCpu,
    /// An instrumented code object is loaded on an agent that is not among the GPUs.
    #[error("the HSA runtime lists no GPU agent {handle:#x}")]
    UnknownAgent {
        /// The agent's handle.
        handle: u64,
    },
    /// There is no host memory for a copy or for its result.
    #[error("out of memory: {bytes} bytes are needed")]
    NoMemory {
        /// The requested size in bytes.
        bytes: u64,
    },
    /// A copy from or to an agent did not end in time. rocov does not use the agent for copies from then on.
    #[error("a copy from or to GPU agent {agent:#x} has not ended after {} seconds", waited.as_secs())]
    Stuck {
        /// The agent's handle.
        agent: u64,
        /// The time without any progress.
        waited: Duration,
    },
    /// A range is not inside one allocation of the runtime. Copying it would be a wild read.
    #[error("{range} is not inside one device allocation (found {found})")]
    NotAllocated {
        /// The range to copy.
        range: DeviceRange,
        /// The allocation at its start.
        found: DeviceRange,
    },
    /// The CUDA driver has loaded a module by itself, and no library of the program has it.
    #[error("no library in the program contains the CUDA module {id}")]
    UnknownModule {
        /// CUPTI's number of the module.
        id: u32,
    },
    /// A kernel has failed. The CUDA driver answers no call for its context from then on.
    #[error(
        "a kernel or its GPU has failed with CUDA error {status}, so its context can no longer be read"
    )]
    Faulted {
        /// The driver's error (`CUresult`).
        status: i32,
    },
    /// The runtime of a load has ended.
    #[error("{runtime} is no longer running")]
    NotRunning {
        /// The runtime.
        runtime: &'static str,
    },
    /// The ELF of a code object cannot be opened.
    #[error("the ELF of {uri} cannot be read: {source}")]
    Image {
        /// The code object's URI.
        uri: String,
        /// The error from the read.
        source: std::io::Error,
    },
}

impl DeviceError {
    /// The error of a range at whose start there is no allocation.
    pub(crate) fn unallocated(range: DeviceRange) -> Self {
        Self::NotAllocated {
            range,
            found: DeviceRange { start: 0, len: 0 },
        }
    }
}

impl Remedy for DeviceError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Faulted { .. } => "run the program under compute-sanitizer to find the kernel",
            Self::MissingFunction { .. } => "update the runtime that it belongs to",
            Self::NoCpu | Self::UnknownAgent { .. } => "report it",
            Self::NoMemory { .. } => "run the program with more memory",
            _ => "run the program again",
        })
    }
}

impl From<NoMemory> for DeviceError {
    fn from(NoMemory { bytes }: NoMemory) -> Self {
        Self::NoMemory { bytes }
    }
}

/// Bytes of an ELF that are read on demand: a drain reads only parts of most code objects.
pub trait ElfImage: Read + Seek + fmt::Debug {}

impl<T: Read + Seek + fmt::Debug> ElfImage for T {}

/// The receiver of copies: it gets the index of each range and its bytes.
pub type Take<'a> = dyn FnMut(usize, Result<&[u8], DeviceError>) + 'a;

/// The receiver of parts: it gets the index of each load, and the bytes of its parts, one behind the other.
pub type TakeParts<'a> = dyn FnMut(usize, &[u8]) + 'a;

/// Counts of the instructions that a device has executed, by their addresses.
pub trait Executions {
    /// Writes two counters for each word of 4 bytes from device address `start` on: the waves that executed the
    /// instruction there, and their active lanes.
    fn count(&self, start: u64, counters: &mut [u64]);

    /// Forgets the counts of a range.
    fn forget(&self, range: DeviceRange);
}

/// A device runtime with loaded code objects.
pub trait Device {
    /// The GPU agents, in the runtime's order.
    ///
    /// # Errors
    /// Fails if the runtime does.
    fn agents(&self) -> Result<Vec<Agent>, DeviceError>;

    /// The executables that are alive now.
    ///
    /// # Errors
    /// Fails if the runtime does.
    fn executables(&self) -> Result<Vec<Executable>, DeviceError>;

    /// The code objects loaded into `executable`, on all agents.
    ///
    /// # Errors
    /// Fails if the runtime does, for example if the executable is gone.
    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError>;

    /// The PTX that rocov has made the code object from, as it was without counters. `None` if its compiler made it.
    fn source(&self, _code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        None
    }

    /// The variable `name` of `executable` on the agent with handle `agent`. `None` if it has no such
    /// variable. The cost does not depend on the number of symbols.
    ///
    /// # Errors
    /// Fails if the runtime does.
    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError>;

    /// The ELF of a loaded code object, as the runtime got it. A read from it may fail if its owner has freed
    /// it.
    ///
    /// # Errors
    /// Fails if the ELF cannot be opened.
    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError>;

    /// The ELF of a code object that is being loaded, as [`Device::image`] returns it. The owner of its storage keeps that
    /// as it is until the load has ended, so that it need not be compared with what was loaded.
    ///
    /// # Errors
    /// Fails if the ELF cannot be opened.
    fn held_image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.image(code_object)
    }

    /// The identity of what the runtime was given, by its contents, if that is known: equal ones have equal ELFs, of which
    /// only the first need be read.
    fn contents(&self, _code_object: &LoadedCodeObject) -> Option<Identity> {
        None
    }

    /// Returns whether [`Device::image`] finds the ELF as long as the executable is there. Otherwise it must be read when
    /// the code object is loaded.
    fn has_lasting_image(&self, _code_object: &LoadedCodeObject) -> bool {
        false
    }

    /// Copies `into.len()` bytes of device memory from `address`.
    ///
    /// # Errors
    /// Fails if the range is not allocated or the copy fails. The contents of `into` are undefined then.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies `ranges` of device memory and hands each to `take` with its index, in their order. Other copies
    /// may be under way meanwhile. An empty range is not copied.
    ///
    /// A failure concerns only its range. It is one of [`Device::read`].
    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        one_by_one(ranges, take, |address, into| self.read(address, into));
    }

    /// Reads the parts of `loads` by loads of the processor, from the first load on, as long as this takes less time than
    /// copies, and hands the parts of each load to `take`. The parts of a load do not overlap, and are in their order.
    /// Returns the number of those loads. The others need [`Device::read_each`].
    fn read_parts(&self, _loads: &[Vec<DeviceRange>], _take: &mut TakeParts<'_>) -> usize {
        0
    }

    /// Copies `from` to device memory at `address`.
    ///
    /// # Errors
    /// Fails if the range is not allocated or the copy fails.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError>;

    /// The counts of executed instructions, if the device has any: a modelled GPU counts on demand.
    fn executions(&self) -> Option<&dyn Executions> {
        None
    }
}

/// Copies ranges one after the other by `read`.
fn one_by_one(
    ranges: &[DeviceRange],
    take: &mut Take<'_>,
    read: impl Fn(u64, &mut [u8]) -> Result<(), DeviceError>,
) {
    for (place, range) in ranges.iter().enumerate() {
        let mut bytes = Vec::new();
        let copied = match range.len {
            0 => Ok(()),
            len => zeroed(len).map_err(DeviceError::from).and_then(|room| {
                bytes = room;
                read(range.start, &mut bytes)
            }),
        };
        take(place, copied.map(|()| bytes.as_slice()));
    }
}
