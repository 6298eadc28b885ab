//! Creates, changes and destroys queues.

use std::sync::Arc;

use modelgpu_queue::{Processor, QueueKind, QueueLayout};

use crate::abi::kfd::{AllocQueueGws, CreateQueue, DestroyQueue, UpdateQueue, queue_type};
use crate::device::Device;
use crate::gpu;
use crate::model::Model;
use crate::paths;
use crate::sys::Errno;

/// Smallest ring in bytes (`KFD_MIN_QUEUE_RING_SIZE`).
const MIN_RING_BYTES: u32 = 1024;

pub(super) fn create(model: &'static Model, arguments: &mut CreateQueue) -> Result<(), Errno> {
    let gpu = model.gpu(arguments.gpu_id)?;
    // An AQL doorbell starts at all ones, "no packet yet"; 0 would announce packet 0.
    let (kind, doorbell_start) = match arguments.queue_type {
        queue_type::COMPUTE_AQL => (QueueKind::Aql, u64::MAX),
        queue_type::COMPUTE => (QueueKind::Pm4, 0),
        queue_type::SDMA | queue_type::SDMA_XGMI | queue_type::SDMA_BY_ENGINE => {
            (QueueKind::Sdma, 0)
        }
        unknown => {
            model.note(1, format_args!("queue type {unknown} is not modelled"));
            return Err(Errno(libc::EINVAL));
        }
    };
    if arguments.ring_size < MIN_RING_BYTES || !arguments.ring_size.is_power_of_two() {
        return Err(Errno(libc::EINVAL));
    }
    let kfd = model.node(paths::DeviceNode::Kfd)?;
    let id = model.add_queue(|id| {
        let doorbell = kfd
            .word(Model::doorbell(gpu, id))
            .ok_or(Errno(libc::ENOMEM))?;
        doorbell.store(doorbell_start, std::sync::atomic::Ordering::Release);
        let layout = QueueLayout {
            id,
            kind,
            priority: arguments.priority,
            ring: arguments.ring_base,
            ring_bytes: u64::from(arguments.ring_size),
            read_index: arguments.read_pointer,
            write_index: arguments.write_pointer,
            doorbell,
            save_area: arguments.save_area,
        };
        let device = Arc::new(Device::new(model, gpu));
        Ok(Processor::start(&model.bells, device, layout)?)
    })?;
    arguments.queue_id = id;
    arguments.doorbell_offset = Model::doorbell(gpu, id);
    model.note(
        1,
        format_args!(
            "queue {id} on gpu {gpu}: {kind:?}, ring {:#x} of {:#x} bytes",
            arguments.ring_base, arguments.ring_size
        ),
    );
    Ok(())
}

pub(super) fn destroy(model: &Model, arguments: &mut DestroyQueue) -> Result<(), Errno> {
    model.note(1, format_args!("queue {} destroyed", arguments.queue_id));
    model.remove_queue(arguments.queue_id)
}

/// A queue at 0 percent is suspended. HIP sets the priority of a stream's queue; the ring never changes under
/// ROCr.
pub(super) fn update(model: &Model, arguments: &mut UpdateQueue) -> Result<(), Errno> {
    model.with_queue(arguments.queue_id, |queue| {
        queue.suspend(arguments.percentage == 0);
        queue.set_priority(arguments.priority);
    })
}

/// Gives a queue resources of the global wave sync. Each queue has its own in the model, so they never
/// run out.
pub(super) fn allocate_gws(model: &Model, arguments: &mut AllocQueueGws) -> Result<(), Errno> {
    if !model.has_queue(arguments.queue_id) || arguments.count > gpu::GWS_RESOURCES {
        return Err(Errno(libc::EINVAL));
    }
    arguments.first = 0;
    Ok(())
}
