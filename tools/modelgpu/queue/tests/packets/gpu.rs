//! A GPU with one block of memory, and queues on it.

use std::fmt::Arguments;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use modelgpu_amdgcn::code_object::Files;
use modelgpu_amdgcn::memory::{AddressSpace, Region};
use modelgpu_amdgcn::{DispatchPacket, RegisterState, Statistics, Target};
use modelgpu_queue::gpu::{Gpu, Launch};
use modelgpu_queue::{Bells, Fault, Processor, QueueError, QueueKind, QueueLayout};

/// Device address of the memory's first byte; far from any host address.
pub(crate) const BASE: u64 = 0x7000_0000_0000;
/// Bytes of memory. The upper half is a separate region: copies must be able to cross.
pub(crate) const SIZE: u64 = 0x2_0000;

/// The addresses of the parts.
pub(crate) const RING: u64 = BASE;
pub(crate) const RING_BYTES: u64 = 1024;
/// An `amd_queue_t`; its write index is at 56, its read index at 128.
pub(crate) const QUEUE: u64 = BASE + 0x1000;
pub(crate) const WRITE_INDEX: u64 = QUEUE + 56;
pub(crate) const READ_INDEX: u64 = QUEUE + 128;
pub(crate) const SIGNALS: u64 = BASE + 0x2000;
pub(crate) const MAILBOXES: u64 = BASE + 0x3000;
pub(crate) const SAVE_AREA: u64 = BASE + 0x4000;
pub(crate) const DATA: u64 = BASE + 0x8000;

/// A kernel object that the fake GPU cannot run; the low bits hold the reason.
pub(crate) const FAILING_KERNEL: u64 = 0xbad0;
/// A kernel object that runs until its queue is destroyed.
pub(crate) const ENDLESS_KERNEL: u64 = 0xe0d0;

/// The driver's number for the priority of most queues.
pub(crate) const NORMAL: u32 = 7;

/// The events on the GPU, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Kernel {
        object: u64,
        dispatch: u64,
    },
    /// A kernel whose state is in registers.
    Registers(DispatchPacket, RegisterState),
    Event(u32),
    MemoryFault(u64),
    Reset,
    Message(String),
}

struct Memory {
    words: Vec<AtomicU64>,
    /// The upper half is not mapped any more.
    is_upper_freed: AtomicBool,
}

// SAFETY: the words never move, and live as long as the GPU. The test accesses them only
// atomically. The queue's indices order the processor's own accesses.
unsafe impl AddressSpace for Memory {
    fn region(&self, address: u64) -> Option<Region> {
        let offset = address.checked_sub(BASE).filter(|&offset| offset < SIZE)?;
        let start = if offset < SIZE / 2 { 0 } else { SIZE / 2 };
        if start > 0 && self.is_upper_freed.load(Ordering::Acquire) {
            return None;
        }
        Some(Region {
            base: BASE + start,
            len: SIZE / 2,
            host: self.words[start as usize / 8].as_ptr().cast(),
        })
    }

    fn generation(&self) -> u64 {
        0
    }
}

/// The fake GPU.
pub(crate) struct FakeGpu {
    memory: Memory,
    happened: Mutex<Vec<Happened>>,
    time: AtomicU64,
    has_wide_windows: bool,
    target: Target,
}

impl FakeGpu {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(Target::Gfx90a, false)
    }

    /// A GPU whose copy engine has narrow or wide fields of windows.
    pub(crate) fn with_windows(has_wide_windows: bool) -> Arc<Self> {
        Self::with(Target::Gfx90a, has_wide_windows)
    }

    /// A GPU with this processor.
    pub(crate) fn with_target(target: Target) -> Arc<Self> {
        Self::with(target, false)
    }

    fn with(target: Target, has_wide_windows: bool) -> Arc<Self> {
        Arc::new(Self {
            has_wide_windows,
            target,
            memory: Memory {
                words: (0..SIZE / 8).map(|_| AtomicU64::new(0)).collect(),
                is_upper_freed: AtomicBool::new(false),
            },
            happened: Mutex::new(Vec::new()),
            time: AtomicU64::new(1000),
        })
    }

    fn word(&self, address: u64) -> &AtomicU64 {
        assert!(address.is_multiple_of(8));
        &self.memory.words[(address - BASE) as usize / 8]
    }

    pub(crate) fn read(&self, address: u64) -> u64 {
        self.word(address).load(Ordering::Acquire)
    }

    pub(crate) fn write(&self, address: u64, value: u64) {
        self.word(address).store(value, Ordering::Release);
    }

    pub(crate) fn read_bytes(&self, address: u64, len: u64) -> Vec<u8> {
        let byte = |at: u64| (self.read(at & !7) >> (at % 8 * 8)) as u8;
        (address..address + len).map(byte).collect()
    }

    pub(crate) fn write_bytes(&self, address: u64, bytes: &[u8]) {
        for (at, &byte) in (address..).zip(bytes) {
            let shift = at % 8 * 8;
            let word = self.read(at & !7) & !(0xff << shift);
            self.write(at & !7, word | u64::from(byte) << shift);
        }
    }

    /// Unmaps the upper half of the memory.
    pub(crate) fn free_upper_half(&self) {
        self.memory.is_upper_freed.store(true, Ordering::Release);
    }

    pub(crate) fn happened(&self) -> Vec<Happened> {
        self.happened.lock().unwrap().clone()
    }

    fn note(&self, what: Happened) {
        self.happened.lock().unwrap().push(what);
    }

    /// Makes signal number `number` with a value and an event (0: none); returns its handle.
    pub(crate) fn signal(&self, number: u64, value: i64, event: u32) -> u64 {
        let handle = SIGNALS + 64 * number;
        self.write(handle + 8, value as u64);
        let mailbox = MAILBOXES + 8 * u64::from(event);
        self.write(handle + 16, if event == 0 { 0 } else { mailbox });
        self.write(handle + 24, event.into());
        handle
    }

    pub(crate) fn value(&self, signal: u64) -> i64 {
        self.read(signal + 8) as i64
    }
}

impl Files for FakeGpu {
    fn visit(&self, _: &mut dyn FnMut(&[u8]) -> bool) {}
}

impl Gpu for FakeGpu {
    fn number(&self) -> usize {
        0
    }

    fn target(&self) -> Target {
        self.target
    }

    fn has_wide_windows(&self) -> bool {
        self.has_wide_windows
    }

    fn watches_lds(&self) -> bool {
        false
    }

    fn watches_hazards(&self) -> bool {
        false
    }

    fn stopped(&self, _: &str) {}

    fn files(&self) -> &dyn Files {
        self
    }

    fn memory(&self) -> &dyn AddressSpace {
        &self.memory
    }

    fn raise_event(&self, id: u32) {
        self.note(Happened::Event(id));
    }

    fn interrupt(&self, id: u8) {
        self.note(Happened::Event(id.into()));
    }

    fn clock(&self) -> u64 {
        self.time.fetch_add(1, Ordering::Relaxed)
    }

    fn run_kernel(&self, launch: &Launch<'_>) -> Result<Statistics, Fault> {
        if let Some(state) = launch.state {
            let packet = DispatchPacket::parse(launch.packet);
            self.note(Happened::Registers(packet, *state));
            return Ok(Statistics::default());
        }
        let object = u64::from_le_bytes(launch.packet[32..40].try_into().unwrap());
        assert_eq!(launch.queue_address, QUEUE);
        let slot = launch.dispatch_id * 64 % RING_BYTES;
        assert_eq!(launch.packet_address, RING + slot);
        self.note(Happened::Kernel {
            object,
            dispatch: launch.dispatch_id,
        });
        match object {
            FAILING_KERNEL => Err(Fault::Kernel {
                message: "an unknown instruction".into(),
                error: QueueError::IllegalInstruction,
            }),
            ENDLESS_KERNEL => {
                while !launch.cancelled.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                Err(Fault::Cancelled)
            }
            _ => Ok(Statistics::default()),
        }
    }

    fn memory_fault(&self, address: u64) {
        self.note(Happened::MemoryFault(address));
    }

    fn reset(&self) {
        self.note(Happened::Reset);
    }

    fn mistake(&self, text: &str) {
        self.message(text);
    }

    fn stuck(&self, text: &str) {
        self.message(text);
    }

    fn goes_on(&self, _text: &str) {}

    fn message(&self, text: &str) {
        self.note(Happened::Message(text.into()));
    }

    fn log(&self, _level: u8, _text: Arguments<'_>) {}
}

/// A queue and its thread.
pub(crate) struct Queue {
    gpu: Arc<FakeGpu>,
    kind: QueueKind,
    doorbell: &'static AtomicU64,
    pub(crate) processor: Processor,
}

impl Queue {
    pub(crate) fn start(gpu: &Arc<FakeGpu>, kind: QueueKind) -> Self {
        Self::start_as(gpu, kind, 1)
    }

    /// Starts a queue with this number, which is in its thread's name.
    pub(crate) fn start_as(gpu: &Arc<FakeGpu>, kind: QueueKind, id: u32) -> Self {
        Self::start_among(&Bells::default(), gpu, kind, id)
    }

    /// Starts a queue next to others with these doorbells.
    pub(crate) fn start_among(bells: &Bells, gpu: &Arc<FakeGpu>, kind: QueueKind, id: u32) -> Self {
        let start = match kind {
            QueueKind::Aql => u64::MAX,
            QueueKind::Pm4 | QueueKind::Sdma => 0,
        };
        let doorbell = Box::leak(Box::new(AtomicU64::new(start)));
        for slot in 0..RING_BYTES / 64 {
            gpu.write(RING + 64 * slot, 1);
        }
        let layout = QueueLayout {
            id,
            kind,
            priority: NORMAL,
            ring: RING,
            ring_bytes: RING_BYTES,
            read_index: READ_INDEX,
            write_index: WRITE_INDEX,
            doorbell,
            save_area: SAVE_AREA,
        };
        let as_gpu: Arc<dyn Gpu> = gpu.clone();
        Self {
            gpu: Arc::clone(gpu),
            kind,
            doorbell,
            processor: Processor::start(bells, as_gpu, layout).expect("a thread can be made"),
        }
    }

    /// Writes an AQL packet into the next slot, header last, without ringing.
    pub(crate) fn put(&self, packet: [u64; 8]) {
        assert_eq!(self.kind, QueueKind::Aql);
        let index = self.gpu.read(WRITE_INDEX);
        let slot = RING + index.wrapping_mul(64) % RING_BYTES;
        for (i, &word) in packet.iter().enumerate().rev() {
            self.gpu.write(slot + 8 * i as u64, word);
        }
        self.gpu.write(WRITE_INDEX, index + 1);
    }

    /// Writes SDMA packets after the existing ones, with a wrap at the ring's end, and rings.
    pub(crate) fn put_sdma(&self, dwords: &[u32]) {
        assert_eq!(self.kind, QueueKind::Sdma);
        let start = self.doorbell.load(Ordering::Relaxed);
        for (i, dword) in dwords.iter().enumerate() {
            let at = RING + (start + 4 * i as u64) % RING_BYTES;
            self.gpu.write_bytes(at, &dword.to_le_bytes());
        }
        self.ring(start + 4 * dwords.len() as u64);
    }

    /// Writes PM4 dwords after the existing ones, with a wrap at the ring's end, and rings.
    pub(crate) fn put_pm4(&self, dwords: &[u32]) {
        assert_eq!(self.kind, QueueKind::Pm4);
        let start = self.doorbell.load(Ordering::Relaxed);
        for (i, dword) in dwords.iter().enumerate() {
            let at = RING + 4 * (start + i as u64) % RING_BYTES;
            self.gpu.write_bytes(at, &dword.to_le_bytes());
        }
        self.ring(start + dwords.len() as u64);
    }

    /// Rings the doorbell.
    pub(crate) fn ring(&self, value: u64) {
        self.doorbell.store(value, Ordering::Release);
    }

    /// Rings for all written packets.
    pub(crate) fn ring_all(&self) {
        self.ring(self.gpu.read(WRITE_INDEX) - 1);
    }
}

/// Waits until `condition` holds. Fails after five minutes.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(300), "never happened: {what}");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Returns whether `condition` holds for a while.
pub(crate) fn stays(condition: impl Fn() -> bool) -> bool {
    (0..50).all(|_| {
        thread::sleep(Duration::from_micros(200));
        condition()
    })
}
