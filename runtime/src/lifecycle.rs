//! What this process has loaded, and when it is drained.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rocov::device::{DeviceError, Executable};
use rocov::drain::{Outcome, Session};
use rocov::hsa::{self, HsaDevice};
use rocov::output::ProfileName;

use crate::{config, exit, log};

/// The process that owns [`STATE`], 0 before the first load. A forked child inherits a runtime
/// whose every call fails, and perhaps a lock that nobody will release: it is left alone.
static OWNER: AtomicU32 = AtomicU32::new(0);

static STATE: Mutex<Option<State>> = Mutex::new(None);

struct State {
    session: Session,
    name: ProfileName,
    /// Whether we hold a reference on the HSA runtime.
    retained: bool,
}

/// An executable was frozen: its code objects are loaded.
pub(crate) fn frozen(executable: Executable) {
    let owner = OWNER.load(Ordering::Relaxed);
    if owner != 0 && owner != process::id() {
        return;
    }
    let Some(device) = attach() else { return };
    OWNER.store(process::id(), Ordering::Relaxed);
    with_state(|state| {
        match state.session.loaded(&device, executable) {
            Ok(outcome) => {
                report_losses(&outcome);
                log::verbose(format_args!(
                    "executable {:#x} loaded: {} code objects, {} instrumented",
                    executable.0, outcome.pairs, outcome.found
                ));
            }
            Err(error) => lost_sight(&error),
        }
        if state.session.is_empty() || state.retained {
            return;
        }
        exit::register_early();
        // Until the late exit drain: newer HIPs shut HSA down in a static destructor.
        match device.api().retain() {
            Ok(()) => state.retained = true,
            Err(error) => log::verbose(format_args!("cannot hold on to HSA: {error}")),
        }
    });
}

/// An executable is about to be destroyed.
pub(crate) fn destroying(executable: Executable) {
    if !is_owner() {
        return;
    }
    let Some(device) = attach() else { return };
    with_state(|state| {
        let outcome = state.session.unloading(&device, executable, &state.name);
        report(&outcome);
    });
}

/// The process ends: whatever is still loaded is drained, also what was loaded past the hooks.
pub(crate) fn exiting() {
    // Nothing seen is not nothing there: a program may have bound HSA's functions past us.
    let unseen = OWNER.load(Ordering::Relaxed) == 0 && hsa::is_loaded();
    if !is_owner() && !unseen {
        return;
    }
    let Some(device) = attach() else { return };
    with_state(|state| {
        let outcome = state.session.drain(&device, &state.name);
        report(&outcome);
    });
}

/// Gives HSA back.
pub(crate) fn release() {
    if !is_owner() {
        return;
    }
    let Some(device) = attach() else { return };
    with_state(|state| {
        if std::mem::take(&mut state.retained)
            && let Err(error) = device.api().release()
        {
            log::verbose(format_args!("cannot let go of HSA: {error}"));
        }
    });
}

fn is_owner() -> bool {
    OWNER.load(Ordering::Relaxed) == process::id()
}

/// The running HSA runtime of the process; `None` where there is none (any more).
fn attach() -> Option<HsaDevice> {
    HsaDevice::attach().unwrap_or_else(|error| {
        lost_sight(&error);
        None
    })
}

fn with_state(work: impl FnOnce(&mut State)) {
    // A poisoned state is still a consistent one: each step changes it after it succeeded.
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    work(state.get_or_insert_with(|| State {
        session: Session::default(),
        name: config::profile_name(),
        retained: false,
    }));
}

fn lost_sight(error: &DeviceError) {
    log::warn(format_args!(
        "cannot see what is loaded: {error}; counts may be lost"
    ));
}

fn report_losses(outcome: &Outcome) {
    for loss in &outcome.losses {
        log::warn(format_args!("{loss}"));
    }
}

fn report(outcome: &Outcome) {
    report_losses(outcome);
    for file in &outcome.files {
        log::verbose(format_args!("wrote {}", file.display()));
    }
    log::verbose(format_args!(
        "HSA walk complete: agents={} pairs={} found={} drained={} iter-failures={}",
        outcome.agents,
        outcome.pairs,
        outcome.found,
        outcome.files.len(),
        outcome.losses.len()
    ));
}
