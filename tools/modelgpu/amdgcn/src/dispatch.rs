//! Runs a kernel dispatch.

pub use crate::launch::{DispatchContext, MAX_WORKGROUP, STUCK, Statistics};
pub use crate::wave::MAX_SCRATCH;

use modelgpu_isa::Target;

use crate::code::Code;
use crate::code_object::{KernelDescriptor, KernelIdentity};
use crate::error::{DispatchError, LaunchProblem};
use crate::launch::{Dispatch, item_ids, scratch_size};
use crate::memory::{AddressSpace, View};
use crate::packet::DispatchPacket;
use crate::schedule;
use crate::wave::Mode;

/// Runs one AQL kernel dispatch to its end, for the target of `code`, on the calling thread and, if
/// it is long enough, on further threads of `context`.
///
/// Workgroups start in order. On one thread, one ends before the next one starts, unless it may be
/// waiting: then they take turns, up to the number that the hardware holds at once.
///
/// # Errors
/// Fails if the kernel makes a mistake or uses a feature that is not modelled. All earlier
/// instructions have taken effect in memory.
pub fn dispatch(
    code: &mut Code,
    memory: &dyn AddressSpace,
    packet: &DispatchPacket,
    context: &DispatchContext<'_>,
) -> Result<Statistics, DispatchError> {
    let launch_error = |reason| DispatchError::Launch {
        kernel: KernelIdentity::find(memory, packet.kernel_object).kernel,
        reason,
    };
    let descriptor = match context.state {
        Some(state) => KernelDescriptor::of_state(state),
        None => {
            let address = packet.kernel_object;
            KernelDescriptor::read(&mut View::new(memory), address)
                .map_err(|_| launch_error(LaunchProblem::UnreadableDescriptor { address }))?
        }
    };
    check(packet, &descriptor, code.target()).map_err(launch_error)?;
    let items: u32 = packet.workgroup_size.iter().product();
    let dispatch = Dispatch {
        target: code.target(),
        packet,
        descriptor,
        context,
        memory,
        barriers: code.barriers(),
        allotted: packet
            .group_segment_size
            .next_multiple_of(code.target().lds_granule()),
        simd: code.simd(),
        items: (0..items as usize)
            .step_by(descriptor.wave_size().lanes())
            .map(|first| item_ids(packet.workgroup_size, first))
            .collect(),
    };
    schedule::run(&dispatch, code, context.workers, context.cancelled)
}

fn check(
    packet: &DispatchPacket,
    descriptor: &KernelDescriptor,
    target: Target,
) -> Result<(), LaunchProblem> {
    let size = packet.workgroup_size;
    let items: u64 = size.iter().map(|count| u64::from(*count)).product();
    if !(1..=MAX_WORKGROUP).contains(&items) {
        return Err(LaunchProblem::WorkgroupSize(size));
    }
    if packet.grid_size.contains(&0) {
        return Err(LaunchProblem::GridSize(packet.grid_size));
    }
    if packet.group_segment_size > target.max_lds() {
        return Err(LaunchProblem::LdsSize {
            size: packet.group_segment_size,
            limit: target.max_lds(),
        });
    }
    let scratch = scratch_size(packet, descriptor);
    if scratch > MAX_SCRATCH {
        return Err(LaunchProblem::ScratchSize(scratch));
    }
    if !Mode::from_rsrc1(descriptor.rsrc1, target).rounds_to_nearest() {
        return Err(LaunchProblem::RoundingMode(descriptor.rsrc1 >> 12 & 15));
    }
    Ok(())
}
