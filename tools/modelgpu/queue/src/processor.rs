//! A queue's thread: watches the doorbell and processes packets in order.
//!
//! The AQL barrier bit needs no code. A packet starts only after its predecessor has completed. The
//! bit asks for this, and a packet without the bit allows it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::aql;
use crate::fault::{Fault, QueueError};
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::sdma;
use crate::signal::Signal;
use crate::thread::Thread;

/// Offset of `read_dispatch_id` in `amd_queue_t`. The driver gets that field's address; the kernels
/// need the queue's.
const READ_INDEX_IN_QUEUE: u64 = 128;
/// Offset of `queue_inactive_signal` in `amd_queue_t`.
const INACTIVE_SIGNAL_IN_QUEUE: u64 = 192;
/// Offset of the exception word's address in the header of the context save area.
const PAYLOAD_IN_SAVE_AREA: u64 = 24;
/// Offset of the exception event's id in the header of the context save area.
const EVENT_IN_SAVE_AREA: u64 = 32;

/// The kind of packets in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// AQL packets; indices count packets.
    Aql,
    /// SDMA packets; indices count bytes.
    Sdma,
}

/// The addresses of a queue's parts. All are GPU addresses.
#[derive(Clone, Copy)]
pub struct QueueLayout {
    /// The queue's number, for the log.
    pub id: u32,
    /// The kind of its packets.
    pub kind: QueueKind,
    /// The ring buffer.
    pub ring: u64,
    /// The ring's size in bytes, a power of two.
    pub ring_bytes: u64,
    /// Address of the 64-bit read index. Indices never wrap; both belong to ROCr's memory.
    pub read_index: u64,
    /// Address of the 64-bit write index.
    pub write_index: u64,
    /// The doorbell that the program writes.
    pub doorbell: &'static AtomicU64,
    /// The context save area, or 0. Its header has the address for exceptions.
    pub save_area: u64,
}

/// A running queue. Dropping it ends the queue's thread.
pub struct Processor {
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

struct Shared {
    gpu: Arc<dyn Gpu>,
    layout: QueueLayout,
    stop: AtomicBool,
    suspended: AtomicBool,
}

impl Processor {
    /// Starts a queue's thread.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub fn start(gpu: Arc<dyn Gpu>, layout: QueueLayout) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            gpu,
            layout,
            stop: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
        });
        let runner = Arc::clone(&shared);
        let thread = Thread::start(&format!("modelgpu q{}", layout.id), move || runner.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Stops (`true`) or resumes the processing of further packets.
    pub fn suspend(&self, suspended: bool) {
        self.shared.suspended.store(suspended, Ordering::Release);
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut idle = Idle::default();
        while !self.stop.load(Ordering::Relaxed) {
            if self.suspended.load(Ordering::Acquire) {
                idle.wait();
                continue;
            }
            let step = match self.layout.kind {
                QueueKind::Aql => self.step_aql(),
                QueueKind::Sdma => self.step_sdma(),
            };
            match step {
                Ok(true) => idle = Idle::default(),
                Ok(false) => idle.wait(),
                Err(fault) => {
                    self.raise(&fault);
                    return;
                }
            }
        }
    }

    /// Processes the next AQL packet. Returns `Ok(false)` if there is no packet.
    fn step_aql(&self) -> Result<bool, Fault> {
        let QueueLayout {
            ring, ring_bytes, ..
        } = self.layout;
        let memory = Memory::new(self.gpu.memory());
        let read_index = memory.long("AQL read index", self.layout.read_index)?;
        let write_index = memory.long("AQL write index", self.layout.write_index)?;
        let index = read_index.load(Ordering::Relaxed);
        let doorbell = self.layout.doorbell.load(Ordering::Acquire);
        // The doorbell starts at all ones, "none". Its later values mean nothing more. If several
        // threads submit, the one with the lower index may ring last, and the doorbell then lags
        // behind ready packets (ROCr's own copies, from the program's threads and from its event
        // thread at once). The write index bounds the reserved packets; the packet's header shows
        // that a packet is written.
        if index >= write_index.load(Ordering::Acquire) || doorbell == u64::MAX {
            return Ok(false);
        }
        let address = ring + ((index * aql::PACKET_BYTES) & (ring_bytes - 1));
        let Some(packet) = aql::fetch(&memory, address)? else {
            return Ok(false);
        };
        let start = self.gpu.clock();
        packet.process(&aql::Context {
            gpu: &*self.gpu,
            queue: self.layout.id,
            packet_address: address,
            queue_address: self.layout.read_index - READ_INDEX_IN_QUEUE,
            index,
            cancelled: &self.stop,
        })?;
        // The queue frees the slot before it completes the signal, because a producer that the
        // signal wakes may look for a free slot at once.
        aql::release(&memory, address)?;
        read_index.store(index + 1, Ordering::Release);
        if let Some(signal) = Signal::new(&*self.gpu, packet.completion_signal()) {
            signal.complete(start, self.gpu.clock())?;
        }
        Ok(true)
    }

    /// Processes the next SDMA packet. Returns `Ok(false)` if there is no packet.
    fn step_sdma(&self) -> Result<bool, Fault> {
        let QueueLayout {
            ring, ring_bytes, ..
        } = self.layout;
        let memory = Memory::new(self.gpu.memory());
        let read_index = memory.long("SDMA read index", self.layout.read_index)?;
        let start = read_index.load(Ordering::Relaxed);
        if start >= self.layout.doorbell.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut dwords = [0; sdma::MAX_DWORDS];
        for (i, dword) in dwords.iter_mut().enumerate() {
            let offset = (start + 4 * i as u64) & (ring_bytes - 1);
            let bytes = memory.read("SDMA packet", ring + offset)?;
            *dword = u32::from_le_bytes(bytes);
        }
        let packet = sdma::SdmaPacket::new(dwords);
        let len = packet.dwords()?;
        packet.process(&*self.gpu, self.layout.id, &self.stop)?;
        read_index.store(start + 4 * len, Ordering::Release);
        Ok(true)
    }

    /// Reports a fault like the hardware. The queue then stands still; ROCr passes the fault to
    /// waiters for its packets.
    fn raise(&self, fault: &Fault) {
        if matches!(fault, Fault::Cancelled) {
            return;
        }
        let reason = fault.to_string();
        self.gpu.message(&reason);
        self.gpu.stopped(&reason);
        let error = match fault {
            Fault::Unmapped { address, .. } | Fault::KernelMemory { address, .. } => {
                self.gpu.memory_fault(*address);
                return;
            }
            Fault::Kernel { error, .. } => *error,
            _ => QueueError::InvalidPacket,
        };
        // An SDMA queue has no exception word. An engine that reads garbage hangs, and the driver
        // resets the GPU.
        let told = self.layout.kind == QueueKind::Aql
            && (self.write_exception(error).unwrap_or(false) || self.write_inactive(error).is_ok());
        if !told {
            self.gpu.reset();
        }
    }

    /// Reports an error like a driver with exception debugging (ROCr 6). The context save area's
    /// header names the exception word and the event. Returns `Ok(false)` if it names neither.
    fn write_exception(&self, error: QueueError) -> Result<bool, Fault> {
        if self.layout.save_area == 0 {
            return Ok(false);
        }
        let memory = Memory::new(self.gpu.memory());
        let field = |offset| self.layout.save_area + offset;
        let payload = memory
            .long("exception word's address", field(PAYLOAD_IN_SAVE_AREA))?
            .load(Ordering::Acquire);
        let event = memory
            .word("exception event", field(EVENT_IN_SAVE_AREA))?
            .load(Ordering::Acquire);
        if payload == 0 {
            return Ok(false);
        }
        memory
            .signed("exception word", payload)?
            .fetch_or(error.exception_mask(), Ordering::AcqRel);
        self.gpu.raise_event(event);
        Ok(true)
    }

    /// Reports an error in the older way (ROCr 5): the trap handler sets bits in the queue's
    /// inactive signal.
    fn write_inactive(&self, error: QueueError) -> Result<(), Fault> {
        let queue = self.layout.read_index - READ_INDEX_IN_QUEUE;
        let memory = Memory::new(self.gpu.memory());
        let handle = memory
            .long("queue inactive signal", queue + INACTIVE_SIGNAL_IN_QUEUE)?
            .load(Ordering::Acquire);
        match Signal::new(&*self.gpu, handle) {
            Some(signal) => signal.set_bits(error.inactive_code()),
            None => Err(Fault::Unmapped {
                what: "queue inactive signal",
                address: 0,
                len: 64,
            }),
        }
    }
}

/// The wait of a queue for its doorbell. The doorbell is plain memory, so nothing can wake the
/// thread. The thread yields first, because a busy program rings again within microseconds. Then it
/// sleeps longer and longer, because a program may keep a dozen idle queues for hours.
#[derive(Default)]
struct Idle {
    rounds: u32,
}

impl Idle {
    fn wait(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        match self.rounds {
            0..200 => thread::yield_now(),
            200..2000 => thread::sleep(Duration::from_micros(20)),
            2000..7000 => thread::sleep(Duration::from_micros(200)),
            _ => thread::sleep(Duration::from_millis(2)),
        }
    }
}
