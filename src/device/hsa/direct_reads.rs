//! Reads device memory by the host's own loads, if the host sees it.
//!
//! The first copy from a GPU makes ROCr create a queue and its buffers, which takes the CPU several milliseconds, and
//! each further one some ten microseconds. If the whole memory of the GPU is in the address space of the host
//! (large BAR), ROCr maps it there under the address that the device has. A load across PCIe waits for the device,
//! so this is the way for small ranges only.
//!
//! It needs that the host cannot find old data: the barrier after the kernels writes the caches of the GPU back
//! ([`BARRIER_HEADER`]), and the GPUs of [`COHERENT`] have no cache of their own for the host's reads.
//!
//! [`BARRIER_HEADER`]: crate::device::hsa::abi::BARRIER_HEADER

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::device::hsa::{HsaDevice, abi};
use crate::device::{DeviceRange, Take};
use crate::support::memory::zeroed;
use crate::support::own_memory;

/// The processors whose host data path has no read cache that the kernel's driver would have to invalidate: the
/// versions 4.4.0, 4.4.2 and 4.4.5 of `hdp_v4_0_invalidate_hdp` (Linux, drivers/gpu/drm/amd/amdgpu/hdp_v4_0.c).
const COHERENT: [&str; 3] = ["gfx90a", "gfx942", "gfx950"];

/// The processor time that these reads may take in a drain: less than the creation of a queue.
const BUDGET: Duration = Duration::from_millis(2);
/// The time of a copy by a queue that is there. Reads that take less need no budget.
const COPY: Duration = Duration::from_micros(20);
/// The most ranges that are read with one call of the system.
const MANY: usize = 32;
/// The most bytes that are read with one call of the system, a millisecond of slow loads.
const BYTES: u64 = 64 << 10;

impl HsaDevice {
    /// Reads ranges from the first on, hands each to `take`, and returns their number. The others need a copy.
    pub(super) fn read_directly(&self, ranges: &[DeviceRange], take: &mut Take<'_>) -> usize {
        let mut spent = Duration::ZERO;
        let mut owners = Vec::new();
        let mut bytes = Vec::new();
        let mut done = 0;
        while done < ranges.len() && (spent <= BUDGET || spent <= COPY * done as u32) {
            let start = processor_time();
            let read = self.read_some(&ranges[done..], &mut owners, &mut bytes);
            spent += processor_time().saturating_sub(start);
            let mut rest = bytes.as_slice();
            for range in &ranges[done..done + read] {
                let (own, others) = rest.split_at(range.len as usize);
                take(done, Ok(own));
                rest = others;
                done += 1;
            }
            if read == 0 {
                break;
            }
        }
        done
    }

    /// Reads some of `ranges` from the first on into `bytes`, one after the other, and returns their number. `owners` are
    /// the agents that were asked, with the answers.
    fn read_some(
        &self,
        ranges: &[DeviceRange],
        owners: &mut Vec<(u64, bool)>,
        bytes: &mut Vec<u8>,
    ) -> usize {
        let mut left = BYTES;
        let mut fits = |range: &DeviceRange| {
            left = left.checked_sub(range.len)?;
            Some((range.start, range.len as usize))
        };
        let seen = ranges
            .iter()
            .take(MANY)
            .take_while(|range| self.is_seen(**range, owners));
        let pieces: Vec<_> = seen.map_while(&mut fits).collect();
        let total = pieces.iter().map(|(_, len)| len).sum();
        if bytes.len() < total {
            let Ok(room) = zeroed(total as u64) else {
                return 0;
            };
            *bytes = room;
        }
        let mut read = match total {
            0 => 0,
            _ => own_memory::load(&pieces, &mut bytes[..total]).unwrap_or_default(),
        };
        let whole = pieces.iter().take_while(|(_, len)| {
            let is_whole = *len <= read;
            read = read.saturating_sub(*len);
            is_whole
        });
        whole.count()
    }

    /// Returns whether the host sees a range.
    fn is_seen(&self, range: DeviceRange, owners: &mut Vec<(u64, bool)>) -> bool {
        let owner = self.api.check_allocated(range.start, range.len as usize);
        let Some(owner) = owner
            .ok()
            .filter(|owner| self.copying.check(*owner).is_ok())
        else {
            return false;
        };
        if let Some((_, is_seen)) = owners.iter().find(|(agent, _)| *agent == owner) {
            return *is_seen;
        }
        let is_seen = self.host_sees(owner).unwrap_or_default();
        owners.push((owner, is_seen));
        is_seen
    }

    /// Returns whether the host can read all memory of an agent, and reads what kernels have written. `None` if the
    /// runtime does not answer.
    fn host_sees(&self, agent: u64) -> Option<bool> {
        let pools = self.api.pools().ok()?;
        let name: String = self.api.agent_name(agent).ok()?;
        if !COHERENT.contains(&name.as_str()) {
            return Some(false);
        }
        let cpu = self.api.cpu_agent().ok()?;
        let mut accesses = Vec::new();
        for pool in pools.agent_pools(agent).ok()? {
            accesses.push(pools.access(cpu, pool).ok()?);
        }
        let is_never = |access: &u32| *access == abi::POOL_ACCESS_NEVER;
        Some(!accesses.is_empty() && !accesses.iter().any(is_never))
    }
}

/// The processor time of the calling thread. A load that waits for a device takes processor time.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}
