//! `amd_signal_t`: a packet processor's operations on a signal.
//!
//! The layout is public ABI (`amd_hsa_signal.h`): kind at 0, value at 8, event mailbox address
//! at 16, event id at 24, start and end timestamps at 32 and 40; 64 bytes in all.

use std::sync::atomic::Ordering;

use crate::fault::Fault;
use crate::gpu::Gpu;
use crate::memory::Memory;

const VALUE: u64 = 8;
const MAILBOX: u64 = 16;
const EVENT_ID: u64 = 24;
const START: u64 = 32;
const END: u64 = 40;

/// A signal in device memory, named by its handle in packets (its address).
#[derive(Clone, Copy)]
pub struct Signal<'a> {
    gpu: &'a dyn Gpu,
    memory: Memory<'a>,
    handle: u64,
}

impl<'a> Signal<'a> {
    /// The signal with this handle; `None` for the null handle, which means "no signal".
    pub fn new(gpu: &'a dyn Gpu, handle: u64) -> Option<Self> {
        let memory = Memory::new(gpu.memory());
        (handle != 0).then_some(Signal {
            gpu,
            memory,
            handle,
        })
    }

    /// The signal's current value.
    ///
    /// # Errors
    /// Fails if the signal is not in device memory.
    pub fn value(&self) -> Result<i64, Fault> {
        let value = self
            .memory
            .signed("signal value", self.handle.wrapping_add(VALUE))?;
        Ok(value.load(Ordering::Acquire))
    }

    /// Completes a packet that ran from `start` to `end` (GPU clock): writes the timestamps,
    /// decrements the value, then wakes waiters. ROCr reads the timestamps as soon as it sees the
    /// new value.
    ///
    /// # Errors
    /// Fails if the signal or its mailbox is not in device memory.
    pub fn complete(&self, start: u64, end: u64) -> Result<(), Fault> {
        let at = |offset| {
            self.memory
                .long("signal timestamp", self.handle.wrapping_add(offset))
        };
        at(START)?.store(start, Ordering::Relaxed);
        at(END)?.store(end, Ordering::Relaxed);
        self.memory
            .signed("signal value", self.handle.wrapping_add(VALUE))?
            .fetch_sub(1, Ordering::AcqRel);
        self.notify()
    }

    /// Sets bits in the value and wakes waiters, as a trap handler does for a queue's inactive
    /// signal.
    ///
    /// # Errors
    /// Fails if the signal or its mailbox is not in device memory.
    pub fn set_bits(&self, bits: i64) -> Result<(), Fault> {
        self.memory
            .signed("signal value", self.handle.wrapping_add(VALUE))?
            .fetch_or(bits, Ordering::AcqRel);
        self.notify()
    }

    /// Wakes the waiters for the signal's event. A signal without a mailbox has no event: its
    /// waiters poll.
    fn notify(&self) -> Result<(), Fault> {
        let mailbox = self
            .memory
            .long("signal mailbox field", self.handle.wrapping_add(MAILBOX))?
            .load(Ordering::Relaxed);
        if mailbox == 0 {
            return Ok(());
        }
        let event = self
            .memory
            .word("signal event id", self.handle.wrapping_add(EVENT_ID))?
            .load(Ordering::Relaxed);
        self.memory
            .long("event mailbox", mailbox)?
            .store(u64::from(event), Ordering::Release);
        self.gpu.raise_event(event);
        Ok(())
    }
}
