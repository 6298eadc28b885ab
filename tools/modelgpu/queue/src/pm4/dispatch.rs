//! The registers of a compute pipe, and the kernel that they describe.
//!
//! The numbers are those of AMD's public headers in the Linux kernel (`gc_9_4_3_offset.h`, `gc_11_0_0_offset.h` and
//! `gc_12_0_0_offset.h`, with the base of segment 0 added). They count from 0x2c00, where SET_SH_REG's registers start.
//! The fields are those of the `sh_mask` headers next to them.

use modelgpu_amdgcn::{DispatchPacket, RegisterState, Target};

use super::packet::Packet;
use super::pipe::{Context, Pipe};
use crate::fault::Fault;
use crate::gpu::Launch;
use crate::kernel::Symbol;

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

/// Bits of COMPUTE_DISPATCH_INITIATOR: COMPUTE_SHADER_EN must be set. FORCE_START_AT_000, ORDER_MODE and the
/// invalidation of caches change nothing here.
const SHADER_EN: u32 = 1;
const WITHOUT_EFFECT: u32 = 1 << 2 | 1 << 6 | 1 << 10 | 1 << 11;
/// CS_W32_EN, from GFX 10 on.
const WAVE32_EN: u32 = 1 << 15;

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
            Target::Gfx90a | Target::Gfx942 | Target::Gfx950 => cdna,
            Target::Gfx1100 => rdna,
            Target::Gfx1201 => Self {
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

    fn state(&self, is_wave32: bool) -> RegisterState {
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
    fn scratch(&self, is_wave32: bool) -> u32 {
        // SCRATCH_EN.
        if self.get(PGM_RSRC2) & 1 == 0 {
            return 0;
        }
        let mask = (1 << self.layout.wave_size_bits) - 1;
        let wave = (self.get(TMPRING_SIZE) >> 12 & mask) * self.layout.wave_size_unit;
        wave / if is_wave32 { 32 } else { 64 }
    }

    /// Bytes of LDS of a workgroup (COMPUTE_PGM_RSRC2.LDS_SIZE).
    fn lds(&self) -> u32 {
        (self.get(PGM_RSRC2) >> 15 & 0x1ff) * self.target.lds_granule()
    }
}

impl Pipe {
    /// DISPATCH_DIRECT: runs a kernel on a number of workgroups in each dimension.
    pub(super) fn dispatch(
        &mut self,
        context: &Context<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Fault> {
        let [x, y, z, initiator] = packet.body()?;
        let registers = &self.registers;
        let wave32 = match registers.layout.has_wave32 {
            true => WAVE32_EN,
            false => 0,
        };
        packet.allow("initiator", initiator, SHADER_EN | WITHOUT_EFFECT | wave32)?;
        if initiator & SHADER_EN == 0 {
            return Err(packet.field("initiator", initiator));
        }
        let is_wave32 = initiator & wave32 != 0;
        let state = registers.state(is_wave32);
        let mut size = [0; 3];
        let mut grid = [0; 3];
        for (dimension, groups) in [x, y, z].into_iter().enumerate() {
            // The high half is for partial workgroups, which the initiator does not allow.
            let threads = registers.get(NUM_THREAD_X + dimension as u32) & 0xffff;
            size[dimension] = threads;
            grid[dimension] = (groups.checked_mul(threads))
                .ok_or_else(|| packet.field("number of workgroups", groups))?;
        }
        let launch = DispatchPacket {
            workgroup_size: size,
            grid_size: grid,
            private_segment_size: registers.scratch(is_wave32),
            group_segment_size: registers.lds(),
            kernel_object: state.entry,
            kernarg_address: 0,
            completion_signal: 0,
        };
        let (gpu, queue, number) = (context.gpu, context.queue, self.dispatches);
        gpu.log(
            1,
            format_args!(
                "q{queue} dispatch {number}: code {:#x} groups {x},{y},{z} of {},{},{}",
                state.entry, size[0], size[1], size[2]
            ),
        );
        let done = gpu.run_kernel(&Launch {
            packet: &launch.to_bytes(),
            packet_address: 0,
            queue_address: 0,
            dispatch_id: number,
            state: Some(&state),
            cancelled: context.cancelled,
        })?;
        self.dispatches += 1;
        gpu.log(
            1,
            format_args!(
                "q{queue} dispatch {number} done: {}: {} instructions in {} waves of {} workgroups",
                Symbol {
                    gpu,
                    object: state.entry,
                },
                done.instructions,
                done.waves,
                done.workgroups,
            ),
        );
        Ok(())
    }
}
