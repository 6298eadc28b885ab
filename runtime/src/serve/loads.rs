//! Code that is loaded and unloaded.

use rocov::device::{DeviceRange, Executable, Gpus};
use rocov::support::diagnostic::diagnostic;

use super::drain::{drain, has_left, keep, wait_and_warn};
use super::entrances::Entrances;
use super::kernel_wait;
use super::report::{Moment, report, report_not_kept};
use super::state::{State, attach, copying, with_device, with_owned, with_state};
use crate::guest::status::RocovStatus;
use crate::guest::{log, process, stack};

/// Follows the code objects of an executable that was frozen: they are loaded now.
pub(super) fn frozen(executable: Executable, entrances: &Entrances) {
    if !process::claim() {
        return;
    }
    let Some(device) = attach() else { return };
    // Asked here, because the unwinder takes its time for each call between this one and the hook.
    let loader = stack::loader();
    with_state(|state| {
        if state.examine(&device, executable, &loader) {
            came_in(state, &device, entrances);
        }
    });
}

/// Follows code that was loaded past the hooks.
pub(super) fn look(entrances: &Entrances) -> RocovStatus {
    let looked = with_device(|state, device| {
        state.look_for_unseen(device);
        came_in(state, device, entrances);
        RocovStatus::Ok
    });
    looked.unwrap_or(RocovStatus::Nothing)
}

/// Notes that the GPU has stopped a kernel. `None` says no reason, which is a mistake of the caller.
pub(super) fn kernel_stopped(reason: Option<&str>) -> RocovStatus {
    let Some(reason) = reason else {
        return RocovStatus::Invalid;
    };
    kernel_wait::note_stopped();
    with_state(|state| state.session.kernel_stopped(reason));
    RocovStatus::Ok
}

/// Prepares the end of instrumented code: the early exit drain runs before HIP's destructors, and LLVM's
/// own drain, if it is there, finds nothing of the code that rocov drains.
fn came_in(state: &mut State, device: &Gpus, entrances: &Entrances) {
    if !state.session.is_empty() {
        state.share_with_llvm(device);
    }
    if !state.session.is_empty() {
        (entrances.register_early_exit)();
    }
}

/// Drains an executable that is about to be destroyed. Returns whether it may be destroyed: a copy that
/// rocov has given up may still read its memory, which must not be freed then. ROCr cannot cancel a
/// copy.
pub(super) fn destroying(executable: Executable) -> RocovStatus {
    let memory = match process::uses_hsa() {
        true => with_state(|state| state.session.memory_of(executable)),
        false => Vec::new(),
    };
    drain_destroyed(executable);
    let is_touched = |range: &DeviceRange| copying().may_touch(Some(*range));
    may_go(!memory.iter().any(is_touched))
}

fn drain_destroyed(executable: Executable) {
    let idle = wait_and_warn(Some(executable), Moment::Last);
    let drained = with_owned(|state, device| {
        if !state.session.has_seen(executable) {
            return;
        }
        if state.session.is_complete(executable, &idle) {
            log::verbose(format_args!(
                "executable {:#x} destroyed: nothing has run since it was drained",
                executable.0
            ));
            let not_kept = state.session.gone(executable, &state.name);
            report_not_kept(&not_kept, Moment::Between);
            return;
        }
        let outcome = state.session.unloading(device, executable, &state.name);
        if outcome.found > 0 || !outcome.losses.is_empty() {
            report(&outcome, Moment::Last);
        }
        report_not_kept(&outcome.not_kept, Moment::Last);
    });
    if drained.is_none() && process::uses_hsa() {
        // It goes, even if LLVM's runtime has drained it, or nothing has.
        with_state(|state| {
            let not_kept = state.session.gone(executable, &state.name);
            report_not_kept(&not_kept, Moment::Between);
        });
    }
}

/// Drains everything before HSA is shut down, because it goes with HSA. Returns whether HSA may be shut
/// down.
pub(super) fn shutting_down() -> RocovStatus {
    let idle = wait_and_warn(None, Moment::Last);
    drain(&idle, Moment::Last);
    keep_before_exit();
    may_go(!process::uses_hsa() || !copying().may_touch(None))
}

fn may_go(may: bool) -> RocovStatus {
    if may {
        return RocovStatus::Ok;
    }
    log::warn_once(diagnostic!(
        "a copy from the GPU has not ended and may still read the code that the program unloads: rocov keeps it in \
         GPU memory until the program ends";
        "look for messages from amdgpu in `dmesg`"
    ));
    RocovStatus::Loss
}

/// Forgets all loads after `hsa_shut_down` if that was the last reference: all executables went with
/// HSA.
pub(super) fn shut_down() {
    // After the last drain, the memory goes with the process.
    if has_left() || !process::uses_hsa() || attach().is_some() {
        return;
    }
    kernel_wait::forget_all();
    copying().forget_all();
    with_state(|state| state.session.forget_all());
    keep_before_exit();
}

/// Keeps the files beside profiles, unless the process exits: HIP shuts HSA down before or after our
/// last exit handler, which keeps them itself.
fn keep_before_exit() {
    if !process::is_exiting() {
        keep(Moment::Between);
    }
}
