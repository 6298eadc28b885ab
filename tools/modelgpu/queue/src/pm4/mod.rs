//! PM4 packets: the command stream of a compute ring, and of the buffers that AQL's vendor packet names.
//!
//! The formats are those of AMD's public headers in the Linux kernel: `soc15d.h` for GFX 9 and `nvd.h` from GFX 10
//! on. A packet is a sequence of dwords. In the first, bits 30 and 31 are the type, bits 16 to 29 the number of the
//! other dwords minus one, and bits 8 to 15 the opcode.
//!
//! The model has no caches, so packets that only write back or invalidate them do nothing. It refuses packets, fields
//! and registers that it does not know, by name.

mod dispatch;
mod packet;
mod pipe;
mod registers;

pub use pipe::{Pipe, PipeContext};

use crate::fault::Fault;
use crate::memory::Memory;
use packet::Packet;

/// The packet with padding of any length.
const NOP: u32 = 0x10;
/// The length of a NOP that has no other dwords.
const NOP_ALONE: u32 = 0x3fff;
/// The packet that runs a buffer of packets.
pub const INDIRECT_BUFFER: u32 = 0x3f;
/// The packet whose followers run only on some XCCs.
const PRED_EXEC: u32 = 0x23;
/// The levels of buffers: a ring's packets may run a buffer, and that one may run another.
const MAX_DEPTH: u32 = 2;

/// A place with packets.
#[derive(Clone, Copy)]
pub enum Stream {
    /// A ring, whose indices count dwords and never wrap.
    Ring {
        /// The address.
        base: u64,
        /// The size, a power of two.
        bytes: u64,
    },
    /// A buffer.
    Buffer {
        /// The address.
        base: u64,
    },
}

impl Stream {
    /// The program can write any index into memory, so this must not overflow.
    fn address(self, index: u64) -> u64 {
        match self {
            Self::Ring { base, bytes } => base.wrapping_add(index.wrapping_mul(4) & (bytes - 1)),
            Self::Buffer { base } => base.wrapping_add(index.wrapping_mul(4)),
        }
    }

    fn dword(self, memory: &Memory<'_>, index: u64) -> Result<u32, Fault> {
        let bytes = memory.read("PM4 packet", self.address(index))?;
        Ok(u32::from_le_bytes(bytes))
    }
}

impl Pipe {
    /// Processes the packet at dword `start` of a stream that ends at dword `end`. Returns the index of the next one;
    /// `start` if the packet is not complete.
    ///
    /// # Errors
    /// Fails if the model does not support the packet, if the packet names memory that it cannot use, if its kernel
    /// fails, or if the queue is destroyed meanwhile.
    pub fn step(
        &mut self,
        context: &PipeContext<'_>,
        stream: Stream,
        start: u64,
        end: u64,
    ) -> Result<u64, Fault> {
        self.step_at(context, stream, start, end, 0)
    }

    /// Processes the buffer that the dwords of an INDIRECT_BUFFER packet name.
    ///
    /// # Errors
    /// Fails if [`Self::step`] does, or if the last packet is not complete.
    pub fn run_buffer(&mut self, context: &PipeContext<'_>, dwords: [u32; 4]) -> Result<(), Fault> {
        let [header, body @ ..] = dwords;
        let packet = Packet::new(header, &body)?;
        if packet.opcode() != INDIRECT_BUFFER {
            return Err(packet.unknown());
        }
        self.indirect(context, &packet, 0)
    }

    fn step_at(
        &mut self,
        context: &PipeContext<'_>,
        stream: Stream,
        start: u64,
        end: u64,
        depth: u32,
    ) -> Result<u64, Fault> {
        let memory = Memory::new(context.gpu.memory());
        let header = stream.dword(&memory, start)?;
        if packet::is_filler(header) {
            return Ok(start.saturating_add(1));
        }
        let count = packet::body_dwords(header)?;
        if packet::opcode(header) == NOP {
            let len = if count - 1 == NOP_ALONE { 0 } else { count };
            let next = start.saturating_add(1 + u64::from(len));
            return Ok(if next > end { start } else { next });
        }
        let next = start.saturating_add(1 + u64::from(count));
        if next > end {
            return Ok(start);
        }
        let body: Vec<u32> = (start..next)
            .skip(1)
            .map(|index| stream.dword(&memory, index))
            .collect::<Result<_, _>>()?;
        let packet = Packet::new(header, &body)?;
        match packet.opcode() {
            INDIRECT_BUFFER => self.indirect(context, &packet, depth)?,
            PRED_EXEC => {
                let (skipped, is_selected) = pipe::predicate(context, &packet)?;
                if !is_selected {
                    return Ok(next.saturating_add(skipped));
                }
            }
            _ => self.process(context, &packet)?,
        }
        Ok(next)
    }

    fn indirect(
        &mut self,
        context: &PipeContext<'_>,
        packet: &Packet<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        let [_, _, control] = packet.body()?;
        let buffer = Stream::Buffer {
            base: packet.address(0) & !3,
        };
        packet.allow("control", control, 0xf08f_ffff)?;
        if depth == MAX_DEPTH {
            return Err(packet.field("depth", depth + 1));
        }
        let (mut at, end) = (0, u64::from(control & 0xf_ffff));
        while at < end {
            let next = self.step_at(context, buffer, at, end, depth + 1)?;
            if next == at {
                return Err(packet.field("number of dwords", control & 0xf_ffff));
            }
            at = next;
        }
        Ok(())
    }
}
