//! A queue's thread: processes packets in order, and sleeps if there is none.
//!
//! The AQL barrier bit needs no code. A packet starts only after its predecessor has completed. The
//! bit asks for this, and a packet without the bit allows it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::aql::{self, AqlPacket};
use crate::bells::{Bed, Bells, Listener};
use crate::fault::{Fault, QueueError};
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::pm4::{self, Pipe};
use crate::rank::{Rank, Ticket};
use crate::sdma;
use crate::signal::Signal;
use crate::thread::Thread;
use crate::turn::Turn;

/// Offset of `read_dispatch_id` in `amd_queue_t`. The driver gets that field's address; the kernels
/// need the queue's.
const READ_INDEX_IN_QUEUE: u64 = 128;
/// Offset of `queue_inactive_signal` in `amd_queue_t`.
const INACTIVE_SIGNAL_IN_QUEUE: u64 = 192;
/// Offset of the exception word's address in the header of the context save area.
const PAYLOAD_IN_SAVE_AREA: u64 = 24;
/// Offset of the exception event's id in the header of the context save area.
const EVENT_IN_SAVE_AREA: u64 = 32;

/// The time for which an idle queue looks at its doorbell itself. A busy program rings again by then.
const LOOKS: Duration = Duration::from_micros(50);

/// The kind of packets in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// AQL packets; indices count packets.
    Aql,
    /// PM4 packets; indices count dwords.
    Pm4,
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
    /// The driver's number for the priority: 0 to 15. Kernels of a higher one go first.
    pub priority: u32,
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
    bells: Bells,
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

struct Shared {
    gpu: Arc<dyn Gpu>,
    layout: QueueLayout,
    stop: AtomicBool,
    suspended: AtomicBool,
    priority: AtomicU32,
    bed: Bed,
}

impl Processor {
    /// Starts a queue's thread, which wakes when one of the process's `bells` rings for it.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub fn start(bells: &Bells, gpu: Arc<dyn Gpu>, layout: QueueLayout) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            gpu,
            layout,
            stop: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            priority: AtomicU32::new(layout.priority),
            bed: Bed::default(),
        });
        bells.watch(shared.clone())?;
        let mut queue = Self {
            bells: bells.clone(),
            shared,
            thread: None,
        };
        let runner = Arc::clone(&queue.shared);
        let turn = Turn::new(bells.clone());
        let name = format!("modelgpu q{}", layout.id);
        queue.thread = Some(Thread::start(&name, move || runner.run(turn))?);
        Ok(queue)
    }

    /// Stops (`true`) or resumes the processing of further packets. None that the program announces after a
    /// stop starts before the queue resumes; a packet that has started ends.
    pub fn suspend(&self, suspended: bool) {
        self.shared.suspended.store(suspended, Ordering::Release);
    }

    /// Changes the priority, for kernels that have not started.
    pub fn set_priority(&self, priority: u32) {
        self.shared.priority.store(priority, Ordering::Release);
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bed.wake();
        self.bells.forget(&*self.shared);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

impl Listener for Shared {
    fn bed(&self) -> &Bed {
        &self.bed
    }

    fn is_called(&self) -> bool {
        // The queue's own thread reports the fault.
        self.has_packet(&mut None).unwrap_or(true) && !self.suspended.load(Ordering::Acquire)
    }

    fn kernel_above(&self, rank: Rank) -> Option<Ticket> {
        let is_above = self.layout.kind == QueueKind::Aql && rank.is_below(self.rank());
        if !is_above || !self.has_packet(&mut None).ok()? || self.suspended.load(Ordering::Acquire)
        {
            return None;
        }
        let next = self.next_aql().ok()?;
        next.packet?.is_kernel().then_some(Ticket {
            queue: self.layout.id,
            packet: next.index,
        })
    }
}

/// The next place for an AQL packet in a queue's ring.
struct NextAql<'a> {
    read_index: &'a AtomicU64,
    index: u64,
    address: u64,
    /// `None` if it is not written yet.
    packet: Option<AqlPacket>,
}

/// A queue's indices in the program's memory, as long as the mappings stay. A queue looks at them again and
/// again, and a look must not keep the program from its own calls, which change the mappings.
#[derive(Clone, Copy)]
struct Indices<'a> {
    generation: u64,
    read: &'a AtomicU64,
    /// The doorbell of a PM4 or SDMA queue has the index.
    write: Option<&'a AtomicU64>,
}

impl Shared {
    fn rank(&self) -> Rank {
        Rank {
            gpu: self.gpu.number(),
            priority: self.priority.load(Ordering::Acquire),
        }
    }

    fn run(&self, mut turn: Turn) {
        let mut idle_since = None;
        let mut indices = None;
        let mut pipe = Pipe::new(self.gpu.target());
        while !self.stop.load(Ordering::Relaxed) {
            match self.step(&mut indices, &mut turn, &mut pipe) {
                Ok(true) => idle_since = None,
                Ok(false) if idle_since.get_or_insert_with(Instant::now).elapsed() < LOOKS => {
                    thread::yield_now();
                }
                Ok(false) => {
                    self.bed.sleep(&self.stop);
                    idle_since = None;
                }
                Err(fault) => {
                    self.raise(&fault);
                    return;
                }
            }
        }
    }

    /// Processes the next packet. Returns `Ok(false)` if there is none.
    fn step<'a>(
        &'a self,
        indices: &mut Option<Indices<'a>>,
        turn: &mut Turn,
        pipe: &mut Pipe,
    ) -> Result<bool, Fault> {
        // In this order: a packet that the program announces after a suspension must not start, and who sees
        // the packet sees the suspension before it.
        if !self.has_packet(indices)? || self.suspended.load(Ordering::Acquire) {
            return Ok(false);
        }
        match self.layout.kind {
            QueueKind::Aql => self.step_aql(turn, pipe),
            QueueKind::Pm4 => self.step_pm4(pipe),
            QueueKind::Sdma => self.step_sdma().map(|()| true),
        }
    }

    /// Returns whether the program has announced a packet. Keeps `indices` from one look to the next.
    fn has_packet<'a>(&'a self, indices: &mut Option<Indices<'a>>) -> Result<bool, Fault> {
        let generation = self.gpu.memory().generation();
        let now = match *indices {
            Some(known) if known.generation == generation => known,
            _ => *indices.insert(self.indices(generation)?),
        };
        let doorbell = self.layout.doorbell.load(Ordering::Acquire);
        Ok(match now.write {
            // The doorbell starts at all ones, "none". Its later values mean nothing more. If several
            // threads submit, the one with the lower index may ring last, and the doorbell then lags
            // after ready packets (ROCr's own copies, from the program's threads and from its event
            // thread at once). The write index bounds the reserved packets; the packet's header shows
            // that a packet is written.
            Some(write) => {
                let is_reserved = now.read.load(Ordering::Relaxed) < write.load(Ordering::Acquire);
                is_reserved && doorbell != u64::MAX
            }
            None => now.read.load(Ordering::Relaxed) < doorbell,
        })
    }

    fn indices(&self, generation: u64) -> Result<Indices<'_>, Fault> {
        let memory = Memory::new(self.gpu.memory());
        let QueueLayout {
            read_index,
            write_index,
            ..
        } = self.layout;
        Ok(match self.layout.kind {
            QueueKind::Aql => Indices {
                generation,
                read: memory.long("AQL read index", read_index)?,
                write: Some(memory.long("AQL write index", write_index)?),
            },
            QueueKind::Pm4 => Indices {
                generation,
                read: memory.long("PM4 read index", read_index)?,
                write: None,
            },
            QueueKind::Sdma => Indices {
                generation,
                read: memory.long("SDMA read index", read_index)?,
                write: None,
            },
        })
    }

    /// The next place for an AQL packet.
    fn next_aql(&self) -> Result<NextAql<'_>, Fault> {
        let QueueLayout {
            ring, ring_bytes, ..
        } = self.layout;
        let memory = Memory::new(self.gpu.memory());
        let read_index = memory.long("AQL read index", self.layout.read_index)?;
        let index = read_index.load(Ordering::Relaxed);
        let offset = index.wrapping_mul(aql::PACKET_BYTES) & (ring_bytes - 1);
        let address = ring.wrapping_add(offset);
        Ok(NextAql {
            read_index,
            index,
            address,
            packet: aql::fetch(&memory, address)?,
        })
    }

    /// Processes the next AQL packet. Returns `Ok(false)` if it is not written yet.
    fn step_aql(&self, turn: &mut Turn, pipe: &mut Pipe) -> Result<bool, Fault> {
        let NextAql {
            read_index,
            index,
            address,
            packet,
        } = self.next_aql()?;
        let Some(packet) = packet else {
            return Ok(false);
        };
        if packet.is_kernel() {
            turn.wait(self.rank(), &self.stop)?;
        }
        let start = self.gpu.clock();
        let context = aql::Context {
            gpu: &*self.gpu,
            queue: self.layout.id,
            packet_address: address,
            queue_address: self.layout.read_index.wrapping_sub(READ_INDEX_IN_QUEUE),
            index,
            cancelled: &self.stop,
        };
        packet.process(&context, pipe)?;
        // The queue frees the slot before it completes the signal, because a producer that the
        // signal wakes may look for a free slot at once.
        aql::release(&Memory::new(self.gpu.memory()), address)?;
        read_index.store(index.wrapping_add(1), Ordering::Release);
        if let Some(signal) = Signal::new(&*self.gpu, packet.completion_signal()) {
            signal.complete(start, self.gpu.clock())?;
        }
        Ok(true)
    }

    /// Processes the next PM4 packet. Returns `Ok(false)` if the program has not announced all of it.
    fn step_pm4(&self, pipe: &mut Pipe) -> Result<bool, Fault> {
        let QueueLayout {
            ring, ring_bytes, ..
        } = self.layout;
        let memory = Memory::new(self.gpu.memory());
        let read_index = memory.long("PM4 read index", self.layout.read_index)?;
        let start = read_index.load(Ordering::Relaxed);
        let context = pm4::PipeContext {
            gpu: &*self.gpu,
            queue: self.layout.id,
            cancelled: &self.stop,
        };
        let stream = pm4::Stream::Ring {
            base: ring,
            bytes: ring_bytes,
        };
        let end = self.layout.doorbell.load(Ordering::Acquire);
        let next = pipe.step(&context, stream, start, end)?;
        read_index.store(next, Ordering::Release);
        Ok(next > start)
    }

    /// Processes the next SDMA packet.
    fn step_sdma(&self) -> Result<(), Fault> {
        let QueueLayout {
            ring, ring_bytes, ..
        } = self.layout;
        let memory = Memory::new(self.gpu.memory());
        let read_index = memory.long("SDMA read index", self.layout.read_index)?;
        let start = read_index.load(Ordering::Relaxed);
        let mut dwords = [0; sdma::MAX_DWORDS];
        for (i, dword) in dwords.iter_mut().enumerate() {
            let offset = start.wrapping_add(4 * i as u64) & (ring_bytes - 1);
            let bytes = memory.read("SDMA packet", ring.wrapping_add(offset))?;
            *dword = u32::from_le_bytes(bytes);
        }
        let packet = sdma::SdmaPacket::new(dwords);
        let len = packet.dwords()?;
        packet.process(&*self.gpu, self.layout.id, &self.stop)?;
        read_index.store(start.saturating_add(4 * len), Ordering::Release);
        Ok(())
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
        // A PM4 or SDMA queue has no exception word. An engine that reads garbage hangs, and the driver
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
        let field = |offset| self.layout.save_area.wrapping_add(offset);
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
        let queue = self.layout.read_index.wrapping_sub(READ_INDEX_IN_QUEUE);
        let memory = Memory::new(self.gpu.memory());
        let handle = memory
            .long(
                "queue inactive signal",
                queue.wrapping_add(INACTIVE_SIGNAL_IN_QUEUE),
            )?
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
