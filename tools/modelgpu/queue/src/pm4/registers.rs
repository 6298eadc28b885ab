//! The registers of a compute pipe, and the kernel that they describe.
//!
//! The numbers are those of AMD's public headers in the Linux kernel (`gc_9_4_3_offset.h`, `gc_11_0_0_offset.h` and
//! `gc_12_0_0_offset.h`, with the base of segment 0 added). They count from 0x2c00, where SET_SH_REG's registers start.
//! The fields are those of the `sh_mask` headers next to them.

use modelgpu_amdgcn::{RegisterState, Target};

use super::packet::Packet;
use crate::fault::Fault;

/// The first register that SET_SH_REG can set.
const SH_START: u32 = 0x2c00;
/// The first of the registers for compute, and their number.
const FIRST: u32 = 0x200;
const COUNT: usize = 0x80;

const START_X: u32 = 0x204;
const NUM_THREAD_X: u32 = 0x207;
const PIPELINESTAT_ENABLE: u32 = 0x20a;
const PERFCOUNT_ENABLE: u32 = 0x20b;
const PGM_LO: u32 = 0x20c;
const PGM_HI: u32 = 0x20d;
const SCRATCH_BASE_LO: u32 = 0x210;
const SCRATCH_BASE_HI: u32 = 0x211;
const PGM_RSRC1: u32 = 0x212;
const PGM_RSRC2: u32 = 0x213;
const RESOURCE_LIMITS: u32 = 0x215;
const THREAD_MGMT_SE0: u32 = 0x216;
const THREAD_MGMT_SE1: u32 = 0x217;
const TMPRING_SIZE: u32 = 0x218;
const THREAD_MGMT_SE2: u32 = 0x219;
const THREAD_MGMT_SE3: u32 = 0x21a;
const RESTART_X: u32 = 0x21b;
const RESTART_Z: u32 = 0x21d;
const THREAD_TRACE_ENABLE: u32 = 0x21e;
const USER_DATA_0: u32 = 0x240;
const USER_DATA_15: u32 = 0x24f;

/// The difference between kinds of GPU.
struct Layout {
    rsrc3: u32,
    /// Bits of COMPUTE_TMPRING_SIZE.WAVESIZE, which starts at bit 12.
    wave_size_bits: u32,
    /// The unit of WAVESIZE, in bytes.
    wave_size_unit: u32,
    has_wave32: bool,
}

impl Layout {
    fn of(target: Target) -> Self {
        let cdna = Self {
            rsrc3: 0x22d,
            wave_size_bits: 13,
            wave_size_unit: 1024,
            has_wave32: false,
        };
        let rdna = Self {
            rsrc3: 0x228,
            wave_size_bits: 15,
            wave_size_unit: 256,
            has_wave32: true,
        };
        match target {
            Target::Gfx906 | Target::Gfx908 | Target::Gfx90a | Target::Gfx942 | Target::Gfx950 => {
                cdna
            }
            // WAVESIZE changed with RDNA 3 (LLVM's `ScratchAlignShift`).
            Target::Gfx1030 => Self {
                wave_size_bits: cdna.wave_size_bits,
                wave_size_unit: cdna.wave_size_unit,
                ..rdna
            },
            Target::Gfx1100 => rdna,
            Target::Gfx1201 | Target::Gfx1250 => Self {
                wave_size_bits: 18,
                ..rdna
            },
        }
    }
}

/// The registers for compute.
pub(super) struct Registers {
    target: Target,
    layout: Layout,
    values: [u32; COUNT],
}

impl Registers {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            layout: Layout::of(target),
            values: [0; COUNT],
        }
    }

    fn get(&self, register: u32) -> u32 {
        self.values[(register - FIRST) as usize]
    }

    /// SET_SH_REG: sets consecutive registers. Refuses registers and values that would change a kernel in a way that
    /// is not modelled.
    pub(super) fn set(&mut self, packet: &Packet<'_>) -> Result<(), Fault> {
        let [first, values @ ..] = packet.all() else {
            return Err(packet.field("number of dwords", 0));
        };
        packet.allow("register", *first, 0xffff)?;
        for (register, value) in (*first..).zip(values) {
            let is_supported = match register {
                NUM_THREAD_X..PIPELINESTAT_ENABLE | PGM_LO | PGM_HI | PGM_RSRC1 | PGM_RSRC2 => true,
                TMPRING_SIZE | USER_DATA_0..=USER_DATA_15 => true,
                // Scratch has no address in device memory, and a kernel gets all units that it can use.
                SCRATCH_BASE_LO | SCRATCH_BASE_HI | RESOURCE_LIMITS => true,
                START_X..NUM_THREAD_X | RESTART_X..=RESTART_Z => *value == 0,
                PIPELINESTAT_ENABLE | PERFCOUNT_ENABLE | THREAD_TRACE_ENABLE => *value == 0,
                THREAD_MGMT_SE0 | THREAD_MGMT_SE1 | THREAD_MGMT_SE2 | THREAD_MGMT_SE3 => {
                    *value == u32::MAX
                }
                other => other == self.layout.rsrc3,
            };
            if !is_supported {
                return Err(Fault::Pm4Register {
                    register: SH_START + register,
                    value: *value,
                });
            }
            self.values[(register - FIRST) as usize] = *value;
        }
        Ok(())
    }

    /// Returns whether kernels may have waves of 32.
    pub(super) fn has_wave32(&self) -> bool {
        self.layout.has_wave32
    }

    /// Work-items of a workgroup in each dimension.
    pub(super) fn workgroup_size(&self) -> [u32; 3] {
        // The high half is for partial workgroups, which no dispatch allows.
        std::array::from_fn(|dimension| self.get(NUM_THREAD_X + dimension as u32) & 0xffff)
    }

    /// The kernel that the registers describe.
    pub(super) fn state(&self, is_wave32: bool) -> RegisterState {
        let address = u64::from(self.get(PGM_LO)) | u64::from(self.get(PGM_HI)) << 32;
        let rsrc = [PGM_RSRC1, PGM_RSRC2, self.layout.rsrc3];
        RegisterState {
            entry: address << 8,
            rsrc: rsrc.map(|register| self.get(register)),
            user_data: std::array::from_fn(|number| self.get(USER_DATA_0 + number as u32)),
            is_wave32,
        }
    }

    /// Bytes of scratch of a work-item.
    pub(super) fn scratch(&self, is_wave32: bool) -> u32 {
        // SCRATCH_EN.
        if self.get(PGM_RSRC2) & 1 == 0 {
            return 0;
        }
        let mask = (1 << self.layout.wave_size_bits) - 1;
        let wave = (self.get(TMPRING_SIZE) >> 12 & mask) * self.layout.wave_size_unit;
        wave / if is_wave32 { 32 } else { 64 }
    }

    /// Bytes of LDS of a workgroup (COMPUTE_PGM_RSRC2.LDS_SIZE).
    pub(super) fn lds(&self) -> u32 {
        (self.get(PGM_RSRC2) >> 15 & 0x1ff) * self.target.lds_granule()
    }
}
