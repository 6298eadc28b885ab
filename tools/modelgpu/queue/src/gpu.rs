//! The GPU as a queue sees it.

use std::fmt::Arguments;
use std::sync::atomic::AtomicBool;

use modelgpu_amdgcn::Statistics;
use modelgpu_amdgcn::memory::AddressSpace;

use crate::fault::Fault;

/// What a queue needs of the GPU it belongs to.
pub trait Gpu: Send + Sync {
    /// The GPU's virtual address space.
    fn memory(&self) -> &dyn AddressSpace;

    /// Raises the interrupt of event `id`, as a write to a signal's mailbox does.
    fn raise_event(&self, id: u32);

    /// A kernel's own interrupt: raises every event whose id ends in these 8 bits. A kernel sends no
    /// more than them; who waits for another event looks at its signal and sleeps again.
    fn interrupt(&self, id: u8);

    /// The GPU's clock, in ticks of 10 ns (the 100 MHz counter that timestamps use).
    fn clock(&self) -> u64;

    /// Runs one kernel to its end on the calling thread.
    fn run_kernel(&self, launch: &Launch<'_>) -> Result<Statistics, Fault>;

    /// A page fault: `address` is what the queue or a kernel accessed.
    fn memory_fault(&self, address: u64);

    /// Resets the GPU, as the driver does when an engine hangs: every waiting program is told.
    fn reset(&self);

    /// Says something to the user that must not be missed.
    fn message(&self, text: &str);

    /// Notes something in the log, at `level` 1 (queues, dispatches, copies) or 2 (everything).
    fn log(&self, level: u8, text: Arguments<'_>);
}

/// One kernel dispatch as the queue hands it over.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The AQL packet.
    pub packet: &'a [u8; 64],
    /// GPU address of the packet in the ring.
    pub packet_address: u64,
    /// GPU address of the `amd_queue_t`.
    pub queue_address: u64,
    /// The packet's number in its queue, counted from 0.
    pub dispatch_id: u64,
    /// Set when the queue is being destroyed: an endless kernel must end then.
    pub cancelled: &'a AtomicBool,
}
