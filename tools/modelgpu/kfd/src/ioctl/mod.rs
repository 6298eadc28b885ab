//! ioctls of `/dev/kfd`.

mod event;
mod ipc;
mod memory;
mod process;
mod queue;
mod svm;

use crate::abi::kfd::nr;
use crate::model::Model;
use crate::sys::Errno;
use crate::user::Argument;

/// Handles ioctl number `number`.
///
/// The number selects the handler. The whole request also holds the argument's size, and newer
/// headers grow structs: each thunk sends the size of its own headers.
pub(crate) fn handle(model: &'static Model, number: u32, argument: Argument) -> Result<(), Errno> {
    model.note(2, format_args!("kfd ioctl {number:#x}"));
    match number {
        nr::GET_VERSION => argument.with(|x| process::get_version(model, x)),
        nr::GET_CLOCK_COUNTERS => argument.with(process::get_clock_counters),
        nr::GET_PROCESS_APERTURES => argument.with(|x| process::get_apertures(model, x)),
        nr::GET_PROCESS_APERTURES_NEW => argument.with(|x| process::get_apertures_new(model, x)),
        nr::GET_TILE_CONFIG => argument.with(process::get_tile_config),
        nr::SET_XNACK_MODE => argument.with(|x| process::set_xnack_mode(model, x)),
        nr::RUNTIME_ENABLE => argument.with(process::runtime_enable),
        // Nothing to do: the model has no caches, page tables, compute unit masks, scratch window
        // or debugger trap handler.
        nr::SET_MEMORY_POLICY
        | nr::ACQUIRE_VM
        | nr::SET_CU_MASK
        | nr::SET_SCRATCH_BACKING_VA
        | nr::SET_TRAP_HANDLER
        | nr::RLC_SPM
        | nr::RLC_SPM_OLD => Ok(()),

        nr::CREATE_QUEUE => argument.with(|x| queue::create(model, x)),
        nr::DESTROY_QUEUE => argument.with(|x| queue::destroy(model, x)),
        nr::ALLOC_QUEUE_GWS => argument.with(|x| queue::allocate_gws(model, x)),
        nr::UPDATE_QUEUE => argument.with(|x| queue::update(model, x)),

        nr::CREATE_EVENT => argument.with(|x| event::create(model, x)),
        nr::DESTROY_EVENT => argument.with(|x| event::destroy(model, x)),
        nr::SET_EVENT => argument.with(|x| event::set(model, x)),
        nr::RESET_EVENT => argument.with(|x| event::reset(model, x)),
        nr::WAIT_EVENTS => argument.with(|x| event::wait(model, x)),

        nr::ALLOC_MEMORY => argument.with(|x| memory::allocate(model, x)),
        nr::FREE_MEMORY => argument.with(|x| memory::free(model, x)),
        nr::MAP_MEMORY => argument.with(|x| memory::map(model, x, true)),
        nr::UNMAP_MEMORY => argument.with(|x| memory::map(model, x, false)),
        nr::AVAILABLE_MEMORY => argument.with(|x| memory::available(model, x)),
        nr::SVM => argument.with_array(|x, attributes| svm::handle(model, x, attributes)),
        nr::GET_DMABUF_INFO => argument.with(|x| memory::dmabuf_info(model, x)),
        nr::IMPORT_DMABUF => argument.with(|x| memory::import_dmabuf(model, x)),
        nr::IPC_EXPORT_HANDLE => argument.with(|x| ipc::export(model, x)),
        nr::IPC_IMPORT_HANDLE => argument.with(|x| ipc::import(model, x)),
        nr::EXPORT_DMABUF => argument.with(|x| memory::export_dmabuf(model, x)),

        _ => {
            model.note(1, format_args!("kfd ioctl {number:#x} is not modelled"));
            Err(Errno(libc::EINVAL))
        }
    }
}
