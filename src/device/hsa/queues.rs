//! The program's queues, and the wait for the packets in them.
//!
//! HSA requires that nobody destroys an executable while its kernels run. HIP 5 breaks this rule if the
//! program unloads a module without a synchronisation. The kernel then continues to count, in memory that is
//! about to be freed. To collect all counts, rocov puts a barrier packet into every queue of the agent, as
//! any program may do. The barrier's signal shows when everything before it is done.
//!
//! HIP's own `hipDeviceSynchronize` waits too, but without a limit: a program with a kernel that runs until
//! the host stops it would hang. It also interferes with stream capture, the current device and HIP's last
//! error.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::device::DeviceError;
use crate::device::hsa::abi::BarrierPacket;
use crate::device::hsa::runtime::QueueApi;
use crate::device::hsa::{HsaDevice, abi};
use crate::support::backoff::Pauses;

/// The queues of a process that accept packets from any thread.
#[derive(Debug, Default)]
pub struct Queues {
    queues: Vec<Queue>,
    /// The agents that have or had a queue here.
    agents: Vec<u64>,
    /// The agents that have or had a queue into which only its maker may put packets
    /// (`HSA_QUEUE_TYPE_SINGLE`). Nobody else can know when it is done.
    single_producer: Vec<u64>,
    /// A counter that grows whenever a kernel may have run.
    moment: u64,
}

#[derive(Debug)]
struct Queue {
    agent: u64,
    /// The address of the `hsa_queue_t`, which is the queue's handle.
    address: u64,
    /// The signal of a barrier that was not reached in time.
    pending: Option<u64>,
    /// The write index after a reached barrier. While the write index has this value, nothing runs.
    idle_at: Option<u64>,
}

impl Queues {
    /// Makes an empty list of queues.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queues: Vec::new(),
            agents: Vec::new(),
            single_producer: Vec::new(),
            moment: 0,
        }
    }

    /// Adds a queue that was made for `agent`, unless only its maker may put packets into it.
    ///
    /// # Safety
    /// `address` must be that of an `hsa_queue_t`. Call [`Queues::destroying`] before the queue is destroyed.
    pub unsafe fn created(&mut self, agent: u64, address: u64) {
        // SAFETY: the caller promises it.
        let kind = unsafe { (*(address as *const abi::Queue)).kind };
        if kind == abi::QUEUE_TYPE_SINGLE {
            self.single_producer.push(agent);
            return;
        }
        // If several copies of librocov see one call, each reports it.
        if self.queues.iter().any(|queue| queue.address == address) {
            return;
        }
        self.queues.push(Queue {
            agent,
            address,
            pending: None,
            // Nobody has the queue yet.
            idle_at: Some(0),
        });
        if !self.agents.contains(&agent) {
            self.agents.push(agent);
        }
    }

    /// Removes a queue that is about to be destroyed. Pass `device` while the runtime runs. Without it,
    /// counts the queue as one in which a kernel may have run: then [`Queues::idle`] returns a new moment.
    pub fn destroying(&mut self, device: Option<&HsaDevice>, address: u64) {
        let api = device.and_then(|device| device.api.queues().ok());
        self.queues.retain(|queue| {
            let goes = queue.address == address;
            if goes && !api.as_ref().is_some_and(|api| queue.is_idle(api)) {
                self.moment += 1;
            }
            !goes
        });
    }

    /// Removes all queues, because the runtime is gone.
    pub fn clear(&mut self) {
        *self = Self {
            moment: self.moment + 1,
            ..Self::new()
        };
    }

    /// The idle agents among `agents`, each with the present moment: a number that grows whenever a kernel may
    /// have run on any agent. If two calls return an agent with the same moment, nothing has run on the agent
    /// in between. Leaves out agents without a known queue, and agents with a queue that only its maker may
    /// use.
    ///
    /// # Errors
    /// Fails if the runtime lacks a function.
    pub fn idle(
        &self,
        device: &HsaDevice,
        agents: &[u64],
    ) -> Result<HashMap<u64, u64>, DeviceError> {
        let api = device.api.queues()?;
        let is_idle = |agent: &u64| {
            let mut queues = self.queues.iter().filter(|queue| queue.agent == *agent);
            let is_known = self.agents.contains(agent) && !self.single_producer.contains(agent);
            is_known && queues.all(|queue| queue.is_idle(&api))
        };
        let idle = agents.iter().copied().filter(is_idle);
        Ok(idle.map(|agent| (agent, self.moment)).collect())
    }

    /// Waits for everything that is in the queues of `agents` at present. Returns false if that takes longer than
    /// `patience`. It does not wait again for a queue that was stuck before, until that queue makes progress.
    ///
    /// # Errors
    /// Fails if the runtime lacks a function or cannot make a signal.
    pub fn wait(
        &mut self,
        device: &HsaDevice,
        agents: &[u64],
        patience: Duration,
    ) -> Result<bool, DeviceError> {
        let api = device.api.queues()?;
        let [first, longest] = [10, 1000].map(Duration::from_micros);
        let mut pauses = Pauses::new(patience, first, longest);
        let mut waited_for = Vec::new();
        let mut finished = true;
        for queue in self
            .queues
            .iter_mut()
            .filter(|queue| agents.contains(&queue.agent))
        {
            match queue.put_barrier(&api, &mut pauses)? {
                Put::Barrier(index) => waited_for.push((queue, index)),
                Put::NotNeeded => {}
                Put::Stuck => finished = false,
            }
        }
        for (queue, index) in waited_for {
            finished &= queue.reach_barrier(&api, index, &mut pauses);
            self.moment += 1;
        }
        Ok(finished)
    }
}

/// The result of an attempt to put a barrier into a queue.
enum Put {
    /// It is in the queue, with this index.
    Barrier(u64),
    /// The queue is empty.
    NotNeeded,
    /// An earlier barrier in the queue is not reached, or there is no room for another.
    Stuck,
}

impl Queue {
    /// Returns whether the queue got no packet since a barrier was reached, or since the queue was made.
    fn is_idle(&self, api: &QueueApi) -> bool {
        self.idle_at == Some(api.write_index(self.address))
    }

    fn put_barrier(&mut self, api: &QueueApi, pauses: &mut Pauses) -> Result<Put, DeviceError> {
        if let Some(signal) = self.pending {
            if !api.is_reached(signal) {
                return Ok(Put::Stuck);
            }
            // SAFETY: the signal is this queue's, and the packet processor is done with it.
            unsafe { api.signals.destroy(signal) };
            self.pending = None;
        }
        // SAFETY: the queue lives until `Queues::destroying`.
        let (base, size, doorbell) = unsafe {
            let queue = &*(self.address as *const abi::Queue);
            (queue.base, u64::from(queue.size), queue.doorbell)
        };
        pauses.start_short();
        // Takes a slot only if one is free: a queue with a taken slot that is not filled stands still for
        // ever.
        let index = loop {
            // Loads the read index first. In the other order, packets that are launched and consumed
            // meanwhile would make it larger than the write index.
            let read = api.read_index(self.address);
            let index = api.write_index(self.address);
            if self.idle_at == Some(index) {
                return Ok(Put::NotNeeded);
            }
            if index.wrapping_sub(read) < size && api.take_slot(self.address, index) {
                break index;
            }
            if !pauses.take() {
                return Ok(Put::Stuck);
            }
        };
        // The slot must be filled whatever happens now. Without a signal the barrier is empty.
        let signal = api.signals.make_without_interrupt(1, self.agent);
        let packet = BarrierPacket {
            header: abi::BARRIER_HEADER,
            completion_signal: *signal.as_ref().unwrap_or(&0),
            ..BarrierPacket::default()
        };
        let slot = (base + index % size * size_of::<BarrierPacket>() as u64) as *mut BarrierPacket;
        // SAFETY: the slot is ours from taking its index until the header is written. There are `size`
        // packets of 64 bytes from `base` on. The packet processor reads the header first.
        unsafe {
            let body = offset_of!(BarrierPacket, reserved1);
            let from = (&raw const packet).cast::<u8>();
            let to = slot.cast::<u8>();
            std::ptr::copy_nonoverlapping(
                from.add(body),
                to.add(body),
                size_of::<BarrierPacket>() - body,
            );
            AtomicU32::from_ptr(slot.cast()).store(packet.header, Ordering::Release);
        }
        api.ring(doorbell, index);
        self.pending = Some(signal?);
        Ok(Put::Barrier(index))
    }

    /// Waits for the barrier with this index. Returns whether it was reached in time.
    fn reach_barrier(&mut self, api: &QueueApi, index: u64, pauses: &mut Pauses) -> bool {
        let Some(signal) = self.pending else {
            return true;
        };
        pauses.start_short();
        while !api.is_reached(signal) {
            if !pauses.take() {
                return false;
            }
        }
        // SAFETY: the signal is this queue's, and the packet processor is done with it.
        unsafe { api.signals.destroy(signal) };
        self.pending = None;
        self.idle_at = Some(index + 1);
        true
    }
}

impl QueueApi {
    fn read_index(&self, queue: u64) -> u64 {
        // SAFETY: the queue lives until `Queues::destroying`.
        unsafe { (self.load_read_index)(queue) }
    }

    fn write_index(&self, queue: u64) -> u64 {
        // SAFETY: the queue lives until `Queues::destroying`.
        unsafe { (self.load_write_index)(queue) }
    }

    /// Takes the slot with this index. Returns false if another thread took it first.
    fn take_slot(&self, queue: u64, index: u64) -> bool {
        // SAFETY: the queue lives until `Queues::destroying`.
        unsafe { (self.cas_write_index)(queue, index, index + 1) == index }
    }

    fn ring(&self, doorbell: u64, index: u64) {
        // SAFETY: this is the doorbell of a live queue.
        unsafe { self.signals.set(doorbell, index as i64) };
    }

    /// Returns whether the barrier with this signal is reached.
    fn is_reached(&self, signal: u64) -> bool {
        // SAFETY: the signal comes from `SignalApi::make_without_interrupt` and is not destroyed.
        unsafe { (self.load_signal)(signal) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::device::hsa::runtime::SignalApi;

    static WRITTEN: AtomicU64 = AtomicU64::new(5);

    /// After each look, another thread launches a kernel and the GPU takes it.
    unsafe extern "C" fn write_index(_: u64) -> u64 {
        WRITTEN.fetch_add(1, Ordering::SeqCst)
    }

    unsafe extern "C" fn read_index(_: u64) -> u64 {
        WRITTEN.fetch_add(1, Ordering::SeqCst)
    }

    unsafe extern "C" fn cas_write_index(_: u64, expected: u64, new: u64) -> u64 {
        let taken = WRITTEN.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
        taken.unwrap_or_else(|found| found)
    }

    unsafe extern "C" fn create(_: i64, _: u32, _: *const u64, _: *mut u64) -> u32 {
        1
    }

    unsafe extern "C" fn destroy(_: u64) -> u32 {
        0
    }

    unsafe extern "C" fn load(_: u64) -> i64 {
        0
    }

    unsafe extern "C" fn store(_: u64, _: i64) {}

    #[test]
    fn what_is_launched_and_taken_meanwhile_is_no_fault() {
        let api = QueueApi {
            load_read_index: read_index,
            load_write_index: write_index,
            cas_write_index,
            load_signal: load,
            signals: SignalApi {
                create,
                destroy,
                store,
            },
        };
        let memory = abi::Queue {
            kind: 0,
            features: 0,
            base: 0,
            doorbell: 0,
            size: 64,
        };
        let mut queue = Queue {
            agent: 1,
            address: &raw const memory as u64,
            pending: None,
            idle_at: None,
        };
        let mut pauses = Pauses::new(Duration::ZERO, Duration::ZERO, Duration::ZERO);
        // Another thread always takes the slot first.
        let put = queue.put_barrier(&api, &mut pauses);
        assert!(matches!(put, Ok(Put::Stuck)));
    }
}
