//! Waiting for what the program has put into its queues.
//!
//! HSA's promise is that nobody destroys an executable whose kernels still run. HIP 5 breaks it
//! where the program unloads a module without a synchronisation. The kernel then counts on, in
//! memory that is about to be freed. To have all of it, a barrier packet goes into every queue of
//! the agent, as any program may put it there: its signal tells when everything before it is done.
//!
//! HIP's own `hipDeviceSynchronize` would do the same, but cannot be told how long to wait, and a
//! program with a kernel that runs until the host stops it would hang; besides, it interferes with
//! stream capture, the current device and HIP's last error.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::HsaDevice;
use super::abi::{self, BarrierPacket};
use super::load::{QueueApi, check};
use crate::device::DeviceError;
use crate::pauses::Pauses;

/// The queues of a process that any thread may put packets into.
#[derive(Debug, Default)]
pub struct Queues {
    queues: Vec<Queue>,
    /// Agents of which a queue is or was among them.
    agents: Vec<u64>,
    /// Agents with a queue that is not among them: nobody else can know when it is done.
    secretive: Vec<u64>,
    /// Grows with all that may have run.
    moment: u64,
}

#[derive(Debug)]
struct Queue {
    agent: u64,
    /// Address of the `hsa_queue_t`, which is the queue's handle.
    address: u64,
    /// The signal of a barrier that was not reached in time.
    pending: Option<u64>,
    /// The write index behind a barrier that was reached: as long as it is that, nothing runs.
    idle_at: Option<u64>,
}

impl Queues {
    /// Queues of which none is known.
    #[must_use]
    pub const fn new() -> Queues {
        Queues {
            queues: Vec::new(),
            agents: Vec::new(),
            secretive: Vec::new(),
            moment: 0,
        }
    }

    /// Adds a queue that was made for `agent`, unless its maker alone may put packets into it.
    ///
    /// # Safety
    /// `address` is that of an `hsa_queue_t`, which is not destroyed before
    /// [`Queues::destroying`] is told.
    pub unsafe fn created(&mut self, agent: u64, address: u64) {
        // SAFETY: as promised.
        let kind = unsafe { (*(address as *const abi::Queue)).kind };
        if kind == abi::QUEUE_TYPE_SINGLE {
            self.secretive.push(agent);
            return;
        }
        // Several copies of librocov on the way of one call all tell of it.
        if self.queues.iter().any(|queue| queue.address == address) {
            return;
        }
        self.queues.push(Queue {
            agent,
            address,
            pending: None,
            // Nobody has it yet.
            idle_at: Some(0),
        });
        if !self.agents.contains(&agent) {
            self.agents.push(agent);
        }
    }

    /// Lets go of a queue that is about to be destroyed. Of one that is idle nothing changes: `device`
    /// tells, which is there as long as the runtime runs.
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

    /// Lets go of all of them: the runtime is gone.
    pub fn clear(&mut self) {
        *self = Queues {
            moment: self.moment + 1,
            ..Queues::new()
        };
    }

    /// Those of `agents` that have nothing to do, each with the moment since when that is so: where it
    /// is the same another time, nothing has run on the agent in between. An agent of which no queue was
    /// ever known is not among them, nor is one with a queue that cannot be looked into.
    ///
    /// # Errors
    /// Fails where the runtime lacks a function.
    pub fn idle(
        &self,
        device: &HsaDevice,
        agents: &[u64],
    ) -> Result<HashMap<u64, u64>, DeviceError> {
        let api = device.api.queues()?;
        let is_idle = |agent: &u64| {
            let mut queues = self.queues.iter().filter(|queue| queue.agent == *agent);
            let is_known = self.agents.contains(agent) && !self.secretive.contains(agent);
            is_known && queues.all(|queue| queue.is_idle(&api))
        };
        let idle = agents.iter().copied().filter(is_idle);
        Ok(idle.map(|agent| (agent, self.moment)).collect())
    }

    /// Waits until everything is done that is in the queues of `agents` by now. False where that
    /// takes longer than `patience`; a queue that is stuck so is not waited for again until it has
    /// moved on.
    ///
    /// # Errors
    /// Fails where the runtime lacks a function or has no signal left.
    pub fn finish(
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

/// What became of a barrier.
enum Put {
    /// It is in the queue, with this index.
    Barrier(u64),
    /// The queue is empty.
    NotNeeded,
    /// There is one in it already that is not reached, or no room for it.
    Stuck,
}

impl Queue {
    /// Returns whether nothing was put into it since a barrier was reached, or since it was made.
    fn is_idle(&self, api: &QueueApi) -> bool {
        self.idle_at == Some(api.write_index(self.address))
    }

    fn put_barrier(&mut self, api: &QueueApi, pauses: &mut Pauses) -> Result<Put, DeviceError> {
        if let Some(signal) = self.pending {
            if !api.is_reached(signal) {
                return Ok(Put::Stuck);
            }
            api.destroy_signal(signal);
            self.pending = None;
        }
        // SAFETY: the queue lives until `Queues::destroying`.
        let (base, size, doorbell) = unsafe {
            let queue = &*(self.address as *const abi::Queue);
            (queue.base, u64::from(queue.size), queue.doorbell)
        };
        pauses.start_short();
        // A slot is only taken where there is one: a queue whose slot is taken and not filled
        // stands still for ever.
        let index = loop {
            // First how much is read: what others launch meanwhile, and the GPU takes, would make it
            // more than was written.
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
        // Whatever happens now, the slot must be filled: without a signal the barrier is empty.
        let signal = api.new_signal();
        let packet = BarrierPacket {
            header: abi::BARRIER_HEADER,
            completion_signal: *signal.as_ref().unwrap_or(&0),
            ..BarrierPacket::default()
        };
        let slot = (base + index % size * size_of::<BarrierPacket>() as u64) as *mut BarrierPacket;
        // SAFETY: the slot is ours since its index was taken, until the header is written; packets
        // are 64 bytes from `base` on, `size` of them. The packet processor reads the header first.
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

    /// Waits for the barrier with this index.
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
        api.destroy_signal(signal);
        self.pending = None;
        self.idle_at = Some(index + 1);
        true
    }
}

impl QueueApi {
    fn read_index(&self, queue: u64) -> u64 {
        // SAFETY: the queue lives until `Queues::destroying`; likewise below.
        unsafe { (self.load_read_index)(queue) }
    }

    fn write_index(&self, queue: u64) -> u64 {
        // SAFETY: as above.
        unsafe { (self.load_write_index)(queue) }
    }

    /// Takes the slot with this index, if nobody else has meanwhile.
    fn take_slot(&self, queue: u64, index: u64) -> bool {
        // SAFETY: as above.
        unsafe { (self.cas_write_index)(queue, index, index + 1) == index }
    }

    fn ring(&self, doorbell: u64, index: u64) {
        // SAFETY: the doorbell of a living queue.
        unsafe { (self.store_signal)(doorbell, index as i64) };
    }

    fn new_signal(&self) -> Result<u64, DeviceError> {
        let mut signal = 0_u64;
        // SAFETY: a signal that anybody may wait for; its handle is written to `signal`.
        let status = unsafe { (self.create_signal)(1, 0, std::ptr::null(), &raw mut signal) };
        check("hsa_signal_create", status)?;
        Ok(signal)
    }

    /// Whether the barrier with this signal is reached.
    fn is_reached(&self, signal: u64) -> bool {
        // SAFETY: a signal of `new_signal` that is not destroyed.
        unsafe { (self.load_signal)(signal) == 0 }
    }

    fn destroy_signal(&self, signal: u64) {
        // SAFETY: as above; the packet processor is done with it.
        unsafe { (self.destroy_signal)(signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    static WRITTEN: AtomicU64 = AtomicU64::new(5);

    /// Each time that somebody has looked, another thread launches a kernel and the GPU takes it.
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
            create_signal: create,
            destroy_signal: destroy,
            load_signal: load,
            store_signal: store,
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
        // Always somebody else is first to take the slot.
        let put = queue.put_barrier(&api, &mut pauses);
        assert!(matches!(put, Ok(Put::Stuck)));
    }
}
