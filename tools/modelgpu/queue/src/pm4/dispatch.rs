//! DISPATCH_DIRECT: the packet that runs a kernel.

use modelgpu_amdgcn::DispatchPacket;

use super::packet::Packet;
use super::pipe::{Pipe, PipeContext};
use crate::fault::Fault;
use crate::gpu::Launch;
use crate::kernel::Symbol;

/// Bits of COMPUTE_DISPATCH_INITIATOR: COMPUTE_SHADER_EN must be set. FORCE_START_AT_000, ORDER_MODE and the
/// invalidation of caches change nothing here.
const SHADER_EN: u32 = 1;
const WITHOUT_EFFECT: u32 = 1 << 2 | 1 << 6 | 1 << 10 | 1 << 11;
/// CS_W32_EN, from GFX 10 on.
const WAVE32_EN: u32 = 1 << 15;

impl Pipe {
    /// DISPATCH_DIRECT: runs a kernel on a number of workgroups in each dimension.
    pub(super) fn dispatch(
        &mut self,
        context: &PipeContext<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Fault> {
        let [x, y, z, initiator] = packet.body()?;
        let registers = &self.registers;
        let wave32 = match registers.has_wave32() {
            true => WAVE32_EN,
            false => 0,
        };
        packet.allow("initiator", initiator, SHADER_EN | WITHOUT_EFFECT | wave32)?;
        if initiator & SHADER_EN == 0 {
            return Err(packet.field("initiator", initiator));
        }
        // Without workgroups, nothing runs, as on hardware.
        if [x, y, z].contains(&0) {
            return Ok(());
        }
        let is_wave32 = initiator & wave32 != 0;
        let state = registers.state(is_wave32);
        let size = registers.workgroup_size();
        let mut grid = [0; 3];
        for (dimension, groups) in [x, y, z].into_iter().enumerate() {
            grid[dimension] = (groups.checked_mul(size[dimension]))
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
