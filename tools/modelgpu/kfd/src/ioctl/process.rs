//! The driver's information about the process and the machine.

use crate::abi::kfd::{
    Apertures, GetClockCounters, GetProcessApertures, GetProcessAperturesNew, GetTileConfig,
    GetVersion, RuntimeEnable, SetXnackMode, VERSION,
};
use crate::gpu::{APERTURE_LIMIT, GPUVM, NS_PER_TICK, PRIVATE_APERTURE, SHARED_APERTURE, gpu_id};
use crate::model::Model;
use crate::runtime;
use crate::sys::{self, Errno};
use crate::user;

pub(super) fn get_version(model: &Model, arguments: &mut GetVersion) -> Result<(), Errno> {
    (arguments.major, arguments.minor) = VERSION;
    model.note(1, format_args!("opened: {:?}", model.config));
    // This is the first ioctl of every thunk, so the runtime is loaded by now.
    runtime::warn_of_unknown_targets(&model.config.gpus);
    Ok(())
}

pub(super) fn get_clock_counters(arguments: &mut GetClockCounters) -> Result<(), Errno> {
    let now = sys::monotonic_ns();
    arguments.gpu_clock = now / NS_PER_TICK;
    arguments.cpu_clock = now;
    arguments.system_clock = now;
    arguments.system_frequency = 1_000_000_000;
    Ok(())
}

fn apertures(gpu: usize) -> Apertures {
    Apertures {
        lds_base: SHARED_APERTURE,
        lds_limit: SHARED_APERTURE + APERTURE_LIMIT,
        scratch_base: PRIVATE_APERTURE,
        scratch_limit: PRIVATE_APERTURE + APERTURE_LIMIT,
        gpuvm_base: GPUVM.0,
        gpuvm_limit: GPUVM.1,
        gpu_id: gpu_id(gpu),
        pad: 0,
    }
}

/// The deprecated call, with a fixed number of places.
pub(super) fn get_apertures(
    model: &Model,
    arguments: &mut GetProcessApertures,
) -> Result<(), Errno> {
    let count = model.config.gpus.len().min(arguments.apertures.len());
    for (gpu, place) in arguments.apertures[..count].iter_mut().enumerate() {
        *place = apertures(gpu);
    }
    arguments.count = count as u32;
    Ok(())
}

/// The thunk calls this with no array first, to learn the number of GPUs.
pub(super) fn get_apertures_new(
    model: &Model,
    arguments: &mut GetProcessAperturesNew,
) -> Result<(), Errno> {
    let count = model.config.gpus.len();
    if arguments.apertures != 0 {
        let room = count.min(arguments.count as usize);
        let all: Vec<Apertures> = (0..room).map(apertures).collect();
        user::write_array(arguments.apertures, &all)?;
    }
    arguments.count = count as u32;
    Ok(())
}

/// Tiling of images: compute programs only query it.
pub(super) fn get_tile_config(arguments: &mut GetTileConfig) -> Result<(), Errno> {
    arguments.tile_configs = 0;
    arguments.macro_tile_configs = 0;
    arguments.address_config = 0x2400_0042;
    arguments.banks = 16;
    arguments.ranks = 1;
    Ok(())
}

/// XNACK (retrying page faults) is off until a process switches it on, before its first queue. The driver refuses
/// that if one of the GPUs cannot retry. A negative value asks.
pub(super) fn set_xnack_mode(model: &Model, arguments: &mut SetXnackMode) -> Result<(), Errno> {
    let svm = model.memory.svm();
    if arguments.enabled >= 0 {
        let wanted = arguments.enabled > 0;
        if wanted != svm.has_xnack() && model.has_queues() {
            return Err(Errno(libc::EBUSY));
        }
        if wanted && !model.may_have_xnack() {
            return Err(Errno(libc::EPERM));
        }
        svm.set_xnack(wanted);
        model.memory.changed();
    }
    arguments.enabled = svm.has_xnack().into();
    Ok(())
}

/// Enables exception debugging: queues then report exceptions through their save area.
pub(super) fn runtime_enable(arguments: &mut RuntimeEnable) -> Result<(), Errno> {
    arguments.capabilities = 0;
    Ok(())
}
