//! Hands a dispatch to the instruction interpreter.

use modelgpu_amdgcn::{DispatchContext, DispatchError, DispatchPacket, Target};

use crate::fault::{Fault, QueueError};
use crate::gpu::{Gpu, Launch};

/// Where flat instructions find LDS and private memory.
#[derive(Clone, Copy, Debug)]
pub struct Apertures {
    /// First address of the LDS window.
    pub shared: u64,
    /// First address of the private memory window.
    pub private: u64,
}

/// Runs a kernel on the calling thread.
pub fn run(
    gpu: &dyn Gpu,
    target: Target,
    apertures: Apertures,
    launch: &Launch<'_>,
) -> Result<(), Fault> {
    let packet = DispatchPacket::parse(launch.packet);
    let context = DispatchContext {
        packet_address: launch.packet_address,
        queue_address: launch.queue_address,
        shared_aperture: apertures.shared,
        private_aperture: apertures.private,
        dispatch_id: launch.dispatch_id,
        cancelled: launch.cancelled,
    };
    let result = modelgpu_amdgcn::dispatch(target, gpu.memory(), &packet, &context);
    result.map(drop).map_err(fault)
}

fn fault(error: DispatchError) -> Fault {
    let message = error.to_string();
    if let Some(address) = error.fault_address() {
        return Fault::KernelMemory { message, address };
    }
    let error = match error {
        DispatchError::Cancelled => return Fault::Cancelled,
        DispatchError::Launch { .. } => QueueError::InvalidCode,
        DispatchError::Fault {
            fault: modelgpu_amdgcn::Fault::Trap(_),
            ..
        } => QueueError::Abort,
        _ => QueueError::IllegalInstruction,
    };
    Fault::Kernel { message, error }
}
