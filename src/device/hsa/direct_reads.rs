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
use crate::device::{DeviceRange, TakeParts};
use crate::support::memory::zeroed;
use crate::support::own_memory;

/// The processors whose host data path has no read cache that the kernel's driver would have to invalidate: the
/// versions 4.4.0, 4.4.2 and 4.4.5 of `hdp_v4_0_invalidate_hdp` (Linux, drivers/gpu/drm/amd/amdgpu/hdp_v4_0.c).
const COHERENT: [&str; 3] = ["gfx90a", "gfx942", "gfx950"];

/// The processor time that these reads may take in a drain: less than the creation of a queue.
const BUDGET: Duration = Duration::from_millis(2);
/// The time of a copy by a queue that is there. Reads that take less need no budget.
const COPY: Duration = Duration::from_micros(20);
/// The most parts that are read with one system call: its own limit is 1,024.
const MANY: usize = 256;
/// The most bytes that are read with one system call, a millisecond of slow loads.
const BYTES: u64 = 64 << 10;

impl HsaDevice {
    /// Reads the parts of `loads` from the first on, hands them to `take`, one after the other, and returns the number of
    /// those loads. The others need a copy.
    pub(super) fn read_directly(
        &self,
        loads: &[Vec<DeviceRange>],
        take: &mut TakeParts<'_>,
    ) -> usize {
        let mut spent = Duration::ZERO;
        let mut owners = Vec::new();
        let mut bytes = Vec::new();
        let mut done = 0;
        while done < loads.len() && (spent <= BUDGET || spent <= COPY * done as u32) {
            let start = processor_time();
            let read = self.read_some(&loads[done..], &mut owners, &mut bytes);
            spent += processor_time().saturating_sub(start);
            let mut rest = bytes.as_slice();
            for parts in &loads[done..done + read] {
                let (own, others) = rest.split_at(total(parts) as usize);
                take(done, own);
                rest = others;
                done += 1;
            }
            if read == 0 {
                break;
            }
        }
        done
    }

    /// Reads the parts of some of `loads` from the first on into `bytes`, one after the other, and returns the number of
    /// those loads. `owners` are the agents that were asked, with the answers.
    fn read_some(
        &self,
        loads: &[Vec<DeviceRange>],
        owners: &mut Vec<(u64, bool)>,
        bytes: &mut Vec<u8>,
    ) -> usize {
        let mut pieces: Vec<(u64, usize)> = Vec::new();
        let mut ends = Vec::new();
        let mut sum = 0;
        for parts in loads {
            let after = total(parts).saturating_add(sum);
            let fits = after <= BYTES && pieces.len() + parts.len() <= MANY;
            if !fits || !self.is_seen(parts, owners) {
                break;
            }
            pieces.extend(parts.iter().map(|part| (part.start, part.len as usize)));
            ends.push(after as usize);
            sum = after;
        }
        if sum == 0 {
            return 0;
        }
        if bytes.len() < sum as usize {
            let Ok(room) = zeroed(sum) else {
                return 0;
            };
            *bytes = room;
        }
        let read = own_memory::load(&pieces, &mut bytes[..sum as usize]).unwrap_or_default();
        ends.iter().take_while(|end| **end <= read).count()
    }

    /// Returns whether the host sees the parts of a load, which are in their order.
    fn is_seen(&self, parts: &[DeviceRange], owners: &mut Vec<(u64, bool)>) -> bool {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return false;
        };
        let len = (last.start - first.start).saturating_add(last.len);
        let owner = self.api.check_allocated(first.start, len as usize);
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

/// The number of bytes of the parts of a load.
fn total(parts: &[DeviceRange]) -> u64 {
    let lens = parts.iter().map(|part| part.len);
    lens.fold(0, u64::saturating_add)
}

/// The processor time of the calling thread. A load that waits for a device takes processor time.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}
