//! SDMA packets: the copy engine's command stream.
//!
//! The formats are those of the public `vega10_sdma_pkt_open.h` (SDMA 4, unchanged for gfx90a and
//! gfx942). SDMA 7 of RDNA 4 has other fields for windows (ROCr's `sdma_registers.h`). A packet is a sequence of
//! dwords. Bits 0 to 7 of the first are the opcode, bits 8 to 15 the sub-opcode.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::fault::Fault;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::wait::Comparison;

const NOP: u32 = 0;
const COPY: u32 = 1;
const FENCE: u32 = 5;
const TRAP: u32 = 6;
const POLL_REGMEM: u32 = 8;
const ATOMIC: u32 = 10;
const CONST_FILL: u32 = 11;
const TIMESTAMP: u32 = 13;
const GCR: u32 = 17;

const COPY_LINEAR: u32 = 0;
const COPY_LINEAR_SUB_WINDOW: u32 = 4;
/// `TC_OP_ATOMIC_ADD_RTN_64`, the only atomic that ROCr sends: it decrements signals.
const ATOMIC_ADD_64: u32 = 47;

/// The longest packet in dwords.
pub const MAX_DWORDS: usize = 13;

/// The fields of windows: the masks of the two coordinates that share a dword, of the third one and of a
/// slice's pitch, and the first bit of a row's pitch.
struct WindowFields {
    xy: u32,
    z: u32,
    slice_pitch: u32,
    row_pitch_bit: u32,
}

impl WindowFields {
    const NARROW: Self = Self {
        xy: 0x3fff,
        z: 0x7ff,
        slice_pitch: 0x0fff_ffff,
        row_pitch_bit: 13,
    };
    const WIDE: Self = Self {
        xy: 0xffff,
        z: 0x3fff,
        slice_pitch: u32::MAX,
        row_pitch_bit: 16,
    };
}

/// One SDMA packet, with the dwords of the longest packet.
pub struct SdmaPacket {
    dwords: [u32; MAX_DWORDS],
}

impl SdmaPacket {
    /// Makes a packet that starts with these dwords; ignores those past its end.
    pub fn new(dwords: [u32; MAX_DWORDS]) -> Self {
        Self { dwords }
    }

    fn opcode(&self) -> u32 {
        self.dwords[0] & 0xff
    }

    fn sub_opcode(&self) -> u32 {
        self.dwords[0] >> 8 & 0xff
    }

    fn address(&self, dword: usize) -> u64 {
        u64::from(self.dwords[dword]) | u64::from(self.dwords[dword + 1]) << 32
    }

    /// The packet's length in dwords.
    ///
    /// # Errors
    /// Fails if the opcode is unknown.
    pub fn dwords(&self) -> Result<u64, Fault> {
        Ok(match (self.opcode(), self.sub_opcode()) {
            (NOP, _) => 1 + u64::from(self.dwords[0] >> 16 & 0x3fff),
            (COPY, COPY_LINEAR) => 7,
            (COPY, COPY_LINEAR_SUB_WINDOW) => 13,
            (FENCE, _) => 4,
            (TRAP, _) => 2,
            (POLL_REGMEM, _) => 6,
            (ATOMIC, _) => 8,
            (CONST_FILL, _) => 5,
            (TIMESTAMP, _) => 3,
            (GCR, _) => 5,
            _ => return Err(self.unknown()),
        })
    }

    fn unknown(&self) -> Fault {
        Fault::UnknownPacket {
            queue: "SDMA",
            packet: self.dwords[0],
        }
    }

    /// Processes the packet.
    ///
    /// # Errors
    /// Fails if the opcode is unknown, if the packet names memory that it cannot use, or if the queue is
    /// destroyed while the packet waits.
    pub fn process(&self, gpu: &dyn Gpu, queue: u32, cancelled: &AtomicBool) -> Result<(), Fault> {
        let memory = Memory::new(gpu.memory());
        match (self.opcode(), self.sub_opcode()) {
            (NOP | GCR, _) => Ok(()),
            (COPY, COPY_LINEAR) => {
                // COUNT is the number of bytes minus one.
                let len = u64::from(self.dwords[1] & 0x3fff_ffff) + 1;
                let (source, target) = (self.address(3), self.address(5));
                gpu.log(
                    1,
                    format_args!("q{queue} sdma copy {source:#x} -> {target:#x}, {len} bytes"),
                );
                memory.copy(target, source, len)
            }
            (COPY, COPY_LINEAR_SUB_WINDOW) => {
                let fields = match gpu.has_wide_windows() {
                    true => WindowFields::WIDE,
                    false => WindowFields::NARROW,
                };
                self.copy_rect(&memory, &fields)
            }
            (FENCE, _) => {
                let word = memory.word("SDMA fence", self.address(1))?;
                word.store(self.dwords[3], Ordering::Release);
                Ok(())
            }
            (TRAP, _) => {
                gpu.raise_event(self.dwords[1] & 0x0fff_ffff);
                Ok(())
            }
            (POLL_REGMEM, _) => self.poll(&memory, cancelled),
            (ATOMIC, _) if self.dwords[0] >> 25 == ATOMIC_ADD_64 => {
                let word = memory.long("SDMA atomic", self.address(1))?;
                word.fetch_add(self.address(3), Ordering::AcqRel);
                Ok(())
            }
            (CONST_FILL, _) => {
                // COUNT is the number of bytes minus four, in units of the fill's element (a dword
                // here).
                let len = u64::from(self.dwords[4] & 0x3fff_ffff) / 4 * 4 + 4;
                memory.fill(self.address(1), len, self.dwords[3].to_le_bytes())
            }
            (TIMESTAMP, _) => {
                let word = memory.long("SDMA timestamp", self.address(1))?;
                word.store(gpu.clock(), Ordering::Release);
                Ok(())
            }
            _ => Err(self.unknown()),
        }
    }

    /// Copies between two windows of pitched surfaces. Extents and pitches count elements of `1 <<
    /// (bits 29 to 31)` bytes and are stored minus one. Offsets are stored unchanged.
    fn copy_rect(&self, memory: &Memory<'_>, fields: &WindowFields) -> Result<(), Fault> {
        let dwords = &self.dwords;
        let scale = dwords[0] >> 29;
        let bytes = |elements: u32| (u64::from(elements) + 1) << scale;
        let surface = |first: usize| {
            let x = u64::from(dwords[first + 2] & fields.xy) << scale;
            let row_pitch = bytes(dwords[first + 3] >> fields.row_pitch_bit);
            let slice_pitch = bytes(dwords[first + 4] & fields.slice_pitch);
            let y = u64::from(dwords[first + 2] >> 16 & fields.xy);
            let z = u64::from(dwords[first + 3] & fields.z);
            let start = self
                .address(first)
                .wrapping_add(x + y * row_pitch + z * slice_pitch);
            (start, row_pitch, slice_pitch)
        };
        let (source, source_row, source_slice) = surface(1);
        let (target, target_row, target_slice) = surface(6);
        let width = bytes(dwords[11] & fields.xy);
        let rows = u64::from(dwords[11] >> 16 & fields.xy) + 1;
        let slices = u64::from(dwords[12] & fields.z) + 1;
        for z in 0..slices {
            for y in 0..rows {
                memory.copy(
                    target.wrapping_add(z * target_slice + y * target_row),
                    source.wrapping_add(z * source_slice + y * source_row),
                    width,
                )?;
            }
        }
        Ok(())
    }

    /// Waits until a memory word meets a condition. Without bit 31 (mem_poll), the packet flushes
    /// the host data path (HDP), which the model does not have.
    fn poll(&self, memory: &Memory<'_>, cancelled: &AtomicBool) -> Result<(), Fault> {
        if self.dwords[0] >> 31 == 0 {
            return Ok(());
        }
        let comparison = Comparison {
            function: self.dwords[0] >> 28 & 7,
            mask: self.dwords[4],
            reference: self.dwords[3],
        };
        let word = || memory.word("SDMA poll", self.address(1));
        comparison.wait(word, cancelled, || self.unknown())
    }
}
