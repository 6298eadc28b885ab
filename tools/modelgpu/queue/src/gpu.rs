//! A queue's view of the GPU.

use std::fmt::Arguments;
use std::sync::atomic::AtomicBool;

use modelgpu_amdgcn::code_object::Files;
use modelgpu_amdgcn::memory::AddressSpace;
use modelgpu_amdgcn::{RegisterState, Statistics, Target, Trace};

use crate::fault::Fault;

/// The services that a queue needs from its GPU.
pub trait Gpu: Send + Sync {
    /// The GPU's number in the process. Queues of one GPU compete for it.
    fn number(&self) -> usize;

    /// The processor.
    fn target(&self) -> Target;

    /// The GPU's virtual address space.
    fn memory(&self) -> &dyn AddressSpace;

    /// The files of code objects, for the source lines in messages.
    fn files(&self) -> &dyn Files;

    /// Raises the interrupt of event `id`, as a write to a signal's mailbox does.
    fn raise_event(&self, id: u32);

    /// Handles a kernel's own interrupt: raises every event whose id ends in these 8 bits. A kernel
    /// sends only these bits. A waiter for another such event looks at its signal and sleeps again.
    fn interrupt(&self, id: u8);

    /// The GPU's clock, in ticks of 10 ns (the 100 MHz counter that timestamps use).
    fn clock(&self) -> u64;

    /// Runs one kernel to its end on the calling thread.
    ///
    /// # Errors
    /// Fails if the kernel cannot start, or fails while it runs.
    fn run_kernel(&self, launch: &Launch<'_>) -> Result<Statistics, Fault>;

    /// The place for the executions of each instruction. `None` if they are not counted.
    fn trace(&self) -> Option<&Trace> {
        None
    }

    /// Returns whether the copy engine has the wider fields of windows of SDMA 7.
    fn has_wide_windows(&self) -> bool;

    /// Returns whether the user asks for mistakes with LDS.
    fn watches_lds(&self) -> bool;

    /// Returns whether the user asks for results that code uses too early.
    fn watches_hazards(&self) -> bool;

    /// The queue has stopped for this reason, which the program does not know yet. It may end the program.
    fn stopped(&self, reason: &str);

    /// Reports a mistake of a kernel, which continues: the first one of its kind.
    fn mistake(&self, text: &str);

    /// Reports a kernel that makes no progress. Its user may end the program.
    fn stuck(&self, text: &str);

    /// The kernel that this `text` was about has ended after all.
    fn goes_on(&self, text: &str);

    /// Reports a page fault at `address`, which the queue or a kernel accessed.
    fn memory_fault(&self, address: u64);

    /// Resets the GPU, as the driver does after an engine hang: notifies every waiting program.
    fn reset(&self);

    /// Prints a message that the user must not miss.
    fn message(&self, text: &str);

    /// Writes a line to the log, at `level` 1 (queues, dispatches, copies) or 2 (everything).
    fn log(&self, level: u8, text: Arguments<'_>);
}

/// One kernel dispatch from a queue.
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
    /// The kernel's state, if the packet set it in registers. The AQL packet then has the address of the code as its
    /// kernel object.
    pub state: Option<&'a RegisterState>,
    /// True once the queue is being destroyed: an endless kernel must end then.
    pub cancelled: &'a AtomicBool,
}
