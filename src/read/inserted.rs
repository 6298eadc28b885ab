//! The values of counters that rocov has put into machine code.

use crate::device::{Device, DeviceRange};
use crate::discover::Load;
use crate::instrument::amdgcn::{CounterMap, MapError};
use crate::read::copied_memory::CopiedMemory;
use crate::read::error::ReadError;
use crate::support::memory::zeroed;
use crate::validate::SectionRanges;

/// The copied values of the inserted counters of a load.
#[derive(Debug)]
pub(crate) struct InsertedCounts<'a> {
    map: CounterMap<'a>,
    values: Vec<u64>,
    load_delta: u64,
}

impl<'a> InsertedCounts<'a> {
    /// Copies the counters of `load`. `None` if rocov has put none into it.
    pub(crate) fn take(
        memory: &mut CopiedMemory<'_>,
        load: &'a Load,
    ) -> Result<Option<Self>, ReadError> {
        let (Some(inserted), Some(range)) = (load.inserted(), load.inserted_range()) else {
            return Ok(None);
        };
        let [bytes] = memory.get([checked(range, load)?])?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(Some(Self {
            map: inserted.map()?,
            values: words.iter().copied().map(u64::from_le_bytes).collect(),
            load_delta: load.load_delta,
        }))
    }

    /// Writes two counters for each word of 4 bytes from device address `start` on, as
    /// [`Executions::count`](crate::device::Executions::count).
    pub(super) fn count(&self, start: u64, counters: &mut [u64]) -> Result<(), MapError> {
        let executed = self.map.executed(&self.values);
        executed.count(start.wrapping_sub(self.load_delta), counters)
    }
}

/// The memory of the inserted counters of `load`, which must be inside of the code object.
fn checked(range: DeviceRange, load: &Load) -> Result<DeviceRange, ReadError> {
    let bounds = (range.start, range.start.saturating_add(range.len));
    Ok(SectionRanges::check_counters(bounds, load.segment)?)
}

/// Overwrites the inserted counters of `load` with zeros.
pub(super) fn zero(device: &dyn Device, load: &Load) -> Result<(), ReadError> {
    if let Some(range) = load.inserted_range() {
        let range = checked(range, load)?;
        device.write(range.start, &zeroed(range.len)?)?;
    }
    Ok(())
}
