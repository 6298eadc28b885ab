//! AQL packets: the kernel dispatch, the barriers and AMD's vendor packets.
//!
//! Formats: HSA Platform System Architecture 1.2, section 2.9, and `hsa_ext_amd.h` for the
//! vendor packets. Every packet is 64 bytes; bits 0 to 7 of its header are the type.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::fault::Fault;
use crate::gpu::{Gpu, Launch};
use crate::kernel::Symbol;
use crate::memory::Memory;
use crate::pm4::{self, Pipe};
use crate::signal::Signal;
use crate::wait::wait_until;

/// Bytes of one AQL packet.
pub const PACKET_BYTES: u64 = 64;
/// The type of a slot without a packet.
pub const INVALID: u8 = 1;

const VENDOR_SPECIFIC: u8 = 0;
const KERNEL_DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;
const BARRIER_OR: u8 = 5;

/// Vendor packet that names a buffer of PM4 packets. ROCr uses it to invalidate caches.
const VENDOR_PM4_IB: u8 = 1;
/// Vendor packet that waits until a signal's value meets a condition.
const VENDOR_BARRIER_VALUE: u8 = 2;

/// The place of a packet and the state of its queue.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The GPU.
    pub gpu: &'a dyn Gpu,
    /// The queue's name in the log.
    pub queue: u32,
    /// GPU address of the packet.
    pub packet_address: u64,
    /// GPU address of the `amd_queue_t`.
    pub queue_address: u64,
    /// The packet's number in its queue.
    pub index: u64,
    /// True once the queue is being destroyed.
    pub cancelled: &'a AtomicBool,
}

/// One packet, copied out of its ring.
pub struct AqlPacket {
    bytes: [u8; PACKET_BYTES as usize],
}

impl AqlPacket {
    /// Makes a packet from its bytes.
    pub fn new(bytes: [u8; PACKET_BYTES as usize]) -> Self {
        Self { bytes }
    }

    /// The packet's type.
    pub fn kind(&self) -> u8 {
        self.bytes[0]
    }

    /// Returns whether the packet starts a kernel.
    pub fn is_kernel(&self) -> bool {
        self.kind() == KERNEL_DISPATCH
    }

    /// The completion signal's handle, in the last eight bytes of every packet type.
    pub fn completion_signal(&self) -> u64 {
        self.long(56)
    }

    fn long(&self, offset: usize) -> u64 {
        u64::from_le_bytes(
            self.bytes[offset..offset + 8]
                .try_into()
                .expect("eight bytes"),
        )
    }

    fn word(&self, offset: usize) -> u32 {
        u32::from_le_bytes(
            self.bytes[offset..offset + 4]
                .try_into()
                .expect("four bytes"),
        )
    }

    /// Processes the packet, without its completion.
    ///
    /// # Errors
    /// Fails if the packet has an unknown type or names memory that it cannot use, if its kernel fails, or
    /// if the queue is destroyed while the packet waits.
    pub fn process(&self, context: &Context<'_>, pipe: &mut Pipe) -> Result<(), Fault> {
        match self.kind() {
            KERNEL_DISPATCH => self.dispatch(context),
            BARRIER_AND => self.barrier(context, "AND", |done, total| done == total),
            BARRIER_OR => self.barrier(context, "OR", |done, total| done > 0 || total == 0),
            VENDOR_SPECIFIC => self.vendor(context, pipe),
            kind => Err(Fault::UnknownPacket {
                queue: "AQL",
                packet: u32::from(kind),
            }),
        }
    }

    fn dispatch(&self, context: &Context<'_>) -> Result<(), Fault> {
        context.gpu.log(
            1,
            format_args!(
                "q{} dispatch {}: kernel object {:#x} grid {},{},{} kernarg {:#x} signal {:#x}",
                context.queue,
                context.index,
                self.long(32),
                self.word(12),
                self.word(16),
                self.word(20),
                self.long(40),
                self.completion_signal()
            ),
        );
        let done = context.gpu.run_kernel(&Launch {
            packet: &self.bytes,
            packet_address: context.packet_address,
            queue_address: context.queue_address,
            dispatch_id: context.index,
            state: None,
            cancelled: context.cancelled,
        })?;
        context.gpu.log(
            1,
            format_args!(
                "q{} dispatch {} done: {}: {} instructions in {} waves of {} workgroups",
                context.queue,
                context.index,
                Symbol {
                    gpu: context.gpu,
                    object: self.long(32),
                },
                done.instructions,
                done.waves,
                done.workgroups,
            ),
        );
        Ok(())
    }

    /// Waits until `ready` returns true for the number of signals at zero and the number of
    /// signals. Null handles do not count.
    fn barrier(
        &self,
        context: &Context<'_>,
        name: &str,
        ready: impl Fn(usize, usize) -> bool,
    ) -> Result<(), Fault> {
        context.gpu.log(
            1,
            format_args!("q{} barrier-{name} {}", context.queue, context.index),
        );
        let signals: Vec<Signal<'_>> = (8..48)
            .step_by(8)
            .filter_map(|offset| Signal::new(context.gpu, self.long(offset)))
            .collect();
        wait_until(context.cancelled, || {
            let mut done = 0;
            for signal in &signals {
                done += usize::from(signal.value()? == 0);
            }
            Ok(ready(done, signals.len()))
        })
    }

    fn vendor(&self, context: &Context<'_>, pipe: &mut Pipe) -> Result<(), Fault> {
        match self.bytes[2] {
            // `amd_aql_pm4_ib_packet_t`: an INDIRECT_BUFFER packet at 4.
            VENDOR_PM4_IB => pipe.run_buffer(
                &pm4::PipeContext {
                    gpu: context.gpu,
                    queue: context.queue,
                    cancelled: context.cancelled,
                },
                [4, 8, 12, 16].map(|offset| self.word(offset)),
            ),
            VENDOR_BARRIER_VALUE => self.barrier_value(context),
            format => Err(Fault::UnknownPacket {
                queue: "AQL vendor",
                packet: u32::from(format),
            }),
        }
    }

    /// `hsa_amd_barrier_value_packet_t`: signal at 8, value at 16, mask at 24, condition at 32. HIP
    /// sends it with a null signal if it only needs the packet's completion.
    fn barrier_value(&self, context: &Context<'_>) -> Result<(), Fault> {
        let Some(signal) = Signal::new(context.gpu, self.long(8)) else {
            return Ok(());
        };
        let (value, mask) = (self.long(16) as i64, self.long(24) as i64);
        let condition = self.word(32);
        wait_until(context.cancelled, || {
            let now = signal.value()? & mask;
            match condition {
                0 => Ok(now == value),
                1 => Ok(now != value),
                2 => Ok(now < value),
                3 => Ok(now >= value),
                unknown => Err(Fault::UnknownPacket {
                    queue: "AQL barrier-value condition",
                    packet: unknown,
                }),
            }
        })
    }
}

/// Copies the packet at `address` out of the ring. Returns `None` if the slot holds no packet yet.
///
/// The producer writes the body first and the header last, with release order. So this function
/// reads the header first, with acquire order.
///
/// # Errors
/// Fails if `address` is not in device memory, or not aligned.
pub fn fetch(memory: &Memory<'_>, address: u64) -> Result<Option<AqlPacket>, Fault> {
    let header = memory.word("AQL packet header", address)?;
    if header.load(Ordering::Acquire) as u8 == INVALID {
        return Ok(None);
    }
    Ok(Some(AqlPacket::new(memory.read("AQL packet", address)?)))
}

/// Gives the slot at `address` back to the producer.
///
/// # Errors
/// Fails if `address` is not in device memory, or not aligned.
pub fn release(memory: &Memory<'_>, address: u64) -> Result<(), Fault> {
    let header = memory.word("AQL packet header", address)?;
    header.store(u32::from(INVALID), Ordering::Release);
    Ok(())
}
