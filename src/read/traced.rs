//! Adds the instructions that a device has executed to the sections of a load: as the device counts them, or counters that
//! rocov has put into the code.

use std::borrow::Cow;

use thiserror::Error;

use crate::device::Executions;
use crate::discover::Load;
use crate::format::blocks::{TraceRecords, trace};
use crate::format::profraw::Version;
use crate::format::sections::PerSection;
use crate::instrument::amdgcn::MapError;
use crate::read::inserted::InsertedCounts;
use crate::read::snapshot::KnownSnapshot;
use crate::support::diagnostic::Remedy;
use crate::support::memory::{NoMemory, room};
use crate::validate::CheckedRecords;

/// The clang whose raw profiles a code object without counters gets, if its ELF names none that is known.
const USUAL_CLANG: u32 = 22;

/// The reason why executed instructions are not in a profile.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The symbols of the functions are damaged.
    #[error("its functions cannot be found: {reason}")]
    Functions {
        /// The damage.
        reason: String,
    },
    /// The code object counts in single bytes, and a profile has counters of one size.
    #[error("its counters have one byte each")]
    SingleByte,
    /// The map of inserted counters is damaged.
    #[error(transparent)]
    Map(MapError),
    /// There is no memory for the counts.
    #[error("out of memory: {bytes} bytes are needed")]
    NoMemory {
        /// The size in bytes.
        bytes: u64,
    },
}

impl Remedy for TraceError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Functions { .. } => "build it again",
            Self::SingleByte => "compile it with counters of 8 bytes, or without counters",
            Self::Map(error) => return error.remedy(),
            Self::NoMemory { .. } => "limit the run to smaller code objects with ROCOV_ONLY",
        })
    }
}

/// The source of counts of executed instructions.
pub(crate) enum ExecutionCounts<'a> {
    /// The device counts them.
    Device(&'a dyn Executions),
    /// Counters that rocov has put into the code count them, also if the device does: its counts are those of the code
    /// with the counters.
    Inserted(InsertedCounts<'a>),
}

impl ExecutionCounts<'_> {
    /// Writes two counters for each word of 4 bytes from device address `start` on.
    fn count(&self, start: u64, counters: &mut [u64]) -> Result<(), TraceError> {
        match self {
            Self::Device(device) => {
                device.count(start, counters);
                Ok(())
            }
            Self::Inserted(inserted) => inserted.count(start, counters).map_err(TraceError::Map),
        }
    }
}

impl KnownSnapshot<'_> {
    /// The sections of a load without counters.
    pub(crate) fn without_counters(load: &Load) -> Self {
        let clang = load.elf.as_ref().and_then(|elf| elf.clang);
        let version = clang.and_then(Version::from_clang);
        let usual = || Version::from_clang(USUAL_CLANG).expect("a known clang");
        Self {
            version: version.unwrap_or_else(usual),
            records: CheckedRecords::default(),
            sections: PerSection::from_fn(|_| Cow::Borrowed(&[][..])),
            copies: 0,
            names_address: 0,
        }
    }

    /// Adds the executed instructions of `load`, if they are counted.
    pub(crate) fn add_trace(
        &mut self,
        load: &Load,
        source: Option<&ExecutionCounts<'_>>,
    ) -> Result<(), TraceError> {
        let trace = load.elf.as_ref().and_then(|elf| elf.trace.as_ref());
        let (Some(source), Some(trace)) = (source, trace) else {
            return Ok(());
        };
        let trace = trace.as_ref().map_err(|reason| TraceError::Functions {
            reason: reason.clone(),
        })?;
        if self.version.is_single_byte() {
            return Err(TraceError::SingleByte);
        }
        let counters = executed(load, source, trace)?;
        let sections = &mut self.sections;
        let first = sections.counters.len() as u64;
        // Every record of a profile has uniform counters, or none has.
        if !sections.uniform.is_empty() {
            let all = sections.uniform.len() + counters.len();
            sections.uniform.to_mut().resize(all, 0);
        }
        sections.counters.to_mut().extend(counters);
        sections.names.to_mut().extend(trace.records.names());
        let records = trace.records.data(&self.version, first);
        self.records.bytes.extend(records);
        Ok(())
    }
}

/// The counters of all functions, in the order of their records.
fn executed(
    load: &Load,
    source: &ExecutionCounts<'_>,
    trace: &TraceRecords,
) -> Result<Vec<u8>, TraceError> {
    let sizes = trace
        .functions
        .iter()
        .map(|(_, size)| trace::counters(*size));
    let bytes = 8 * sizes.sum::<u64>();
    // With the copies that later steps make.
    room(4 * bytes).map_err(|NoMemory { bytes }| TraceError::NoMemory { bytes })?;
    let mut counters = Vec::with_capacity(bytes as usize);
    for (address, size) in &trace.functions {
        let mut counts = vec![0; trace::counters(*size) as usize];
        source.count(address.wrapping_add(load.load_delta), &mut counts)?;
        counters.extend(counts.into_iter().flat_map(u64::to_le_bytes));
    }
    Ok(counters)
}
