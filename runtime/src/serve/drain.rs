//! Drains: while the program runs, and when it ends.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rocov::device::Executable;
use rocov::drain::Idle;
use rocov::support::diagnostic::{Remedy, diagnostic};

use super::device_files;
use super::kernel_wait::{self, Waited};
use super::report::{Moment, report, report_not_kept};
use super::state::{attach_own, with_device, with_owned, with_state};
use crate::guest::journal::{self, Note};
use crate::guest::status::RocovStatus;
use crate::guest::{log, process, settings, stack};

/// The longest time that the exit waits for completion callbacks. One of them may wait for the program's end.
const LONGEST_CALLBACKS: Duration = Duration::from_secs(1);

/// Drains everything that is loaded, without waiting for kernels.
pub(super) fn draining(moment: Moment) -> RocovStatus {
    let status = drain(&Idle::new(), moment);
    keep(moment);
    status
}

/// Makes a snapshot.
pub(super) fn snapshot() {
    draining(Moment::Between);
}

/// Drains everything that is loaded once its kernels have ended, because the process may go.
pub(super) fn ending() -> RocovStatus {
    let idle = wait_and_warn(None, Moment::Last);
    let status = drain(&idle, Moment::Last);
    keep(Moment::Last);
    status
}

/// Drains for the last time in this process, which loads no more code. Records the files that may have code
/// that it never loaded.
pub(crate) fn leaving() -> RocovStatus {
    let idle = wait_and_warn(None, Moment::Last);
    let status = drain(&idle, Moment::Last);
    device_files::record();
    keep(Moment::Last);
    note_registry();
    journal::note(Note::Ended);
    // A program may go on after this if it has called `chroot`, or a function that did not start another program.
    if process::is_exiting() {
        LEFT.store(std::process::id(), Ordering::Relaxed);
    }
    status
}

/// The number of the process that has called [`leaving`] in its last exit handler.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// Returns whether this process has drained in its last exit handler. A child that is forked later has not.
pub(super) fn has_left() -> bool {
    LEFT.load(Ordering::Relaxed) == std::process::id()
}

/// Drains when exit handlers begin to run. [`leaving`] follows as the last of them.
pub(crate) fn exit_begins() {
    with_state(|state| state.session.begin_end());
    let idle = wait_and_warn(None, Moment::Between);
    drain(&idle, Moment::Between);
    wait_for_callbacks();
}

/// Waits for HIP's completion callbacks, because HIP is about to be taken down. No counts depend on them.
fn wait_for_callbacks() {
    let patience = settings::patience().min(LONGEST_CALLBACKS);
    // A callback may have ended the program.
    if patience.is_zero() || stack::is_runtimes_thread() {
        return;
    }
    let Some(device) = attach_own() else { return };
    let Some(device) = device.hsa() else { return };
    match device.wait_for_callbacks(patience) {
        Ok(true) => {}
        Ok(false) => log::verbose(format_args!(
            "a completion callback of the program is still running after {} s",
            patience.as_secs()
        )),
        Err(error) => log::verbose(format_args!(
            "cannot wait for completion callbacks: {error}"
        )),
    }
}

/// Drains everything that may have counted since the last drain. Skips agents that have been `idle`.
pub(super) fn drain(idle: &Idle, moment: Moment) -> RocovStatus {
    let drained = with_device(|state, device| {
        state.share_with_llvm(device);
        if device.modelled().is_some() {
            // No hook has seen its code.
            state.look_for_unseen(device);
        }
        let outcome = state.session.drain_busy(device, &state.name, idle);
        if state.stands_down() && outcome.losses.is_empty() {
            return RocovStatus::Nothing;
        }
        let is_done = outcome.pairs == 0 && outcome.losses.is_empty() && !state.session.is_empty();
        if is_done {
            log::verbose(format_args!("nothing has run since the last drain"));
        } else {
            report(&outcome, moment);
        }
        report_not_kept(&outcome.not_kept, moment);
        // The drain has found code that came in past the hooks.
        state.share_with_llvm(device);
        if !outcome.losses.is_empty() {
            RocovStatus::Loss
        } else if outcome.found == 0 {
            RocovStatus::Nothing
        } else {
            RocovStatus::Ok
        }
    });
    drained.unwrap_or(RocovStatus::Nothing)
}

/// Waits for the kernels on agents that have loads of `executable`, or any loads.
pub(super) fn wait_for_kernels(executable: Option<Executable>) -> Waited {
    let counting = with_owned(|state, _| state.session.counting_agents(executable));
    // Without the lock of the state: other threads load code objects meanwhile.
    let waited = counting.and_then(|agents| Some(kernel_wait::wait(&attach_own()?, &agents)));
    waited.unwrap_or_default()
}

/// Waits for kernels before code is unloaded, and prints a line if one still runs at the last drain.
pub(super) fn wait_and_warn(executable: Option<Executable>, moment: Moment) -> Idle {
    let Waited { idle, in_flight } = wait_for_kernels(executable);
    // A thread of the runtimes does not wait.
    if moment == Moment::Last
        && in_flight
        && !settings::patience().is_zero()
        && !stack::is_runtimes_thread()
    {
        journal::note(Note::Lost);
        // Nobody has waited after a stop, and a line has reported it.
        if !kernel_wait::patience().is_zero() {
            kernel_wait::warn_in_flight(
                "while code is unloaded",
                "if it belongs to that code, its later counts are lost",
            );
        }
    }
    idle
}

/// Writes the files that are kept beside profiles, even if HSA is gone or LLVM's runtime drains.
pub(super) fn keep(moment: Moment) {
    if process::uses_hsa() {
        with_state(|state| report_not_kept(&state.session.keep(&state.name), moment));
    }
}

/// Tells `rocov run` about a registry that names files with device code.
fn note_registry() {
    with_state(|state| {
        let has_device_code = !state.session.registry().device_code().is_empty();
        if let Some(path) = state.session.registry_file().filter(|_| has_device_code) {
            journal::note_registry(path);
        }
    });
}

/// Zeroes the counters.
pub(super) fn reset() -> RocovStatus {
    let zeroed = with_owned(|state, device| {
        state.look_for_unseen(device);
        state.session.zero(device)
    });
    match zeroed {
        None => RocovStatus::Nothing,
        Some(Ok(())) => RocovStatus::Ok,
        Some(Err(error)) => {
            log::warn(diagnostic!(
                "cannot zero all counters: {error}; later counts include earlier ones";
                "run the program again"
            ));
            RocovStatus::Loss
        }
    }
}

/// Gives profiles another name from now on; `None` goes back to the name of the environment.
pub(super) fn set_file(pattern: Option<&str>) -> RocovStatus {
    let name = match pattern.map(settings::parse_name).transpose() {
        Ok(name) => name.unwrap_or_else(settings::profile_name),
        Err(error) => {
            let message = error.diagnostic().so("profiles keep their names");
            log::warn(message.within("rocov_set_file"));
            return RocovStatus::Invalid;
        }
    };
    with_state(|state| state.rename(pattern, name));
    RocovStatus::Ok
}
