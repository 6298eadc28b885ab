//! The wait for kernels in the queues of the process.
#![expect(unsafe_code, reason = "reads queues in the memory of HSA")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocov::device::cuda::is_known_at_drain;
use rocov::device::cuda::modules::is_cuda;
use rocov::device::hsa::{HsaDevice, Queues};
use rocov::device::{DeviceError, Gpus};
use rocov::drain::Idle;
use rocov::support::diagnostic::diagnostic;

use super::{modules, state};
use crate::elect::event::NewQueue;
use crate::guest::{log, process, settings, stack};

/// Locked during a wait, so that no queue goes meanwhile. Never taken together with the lock of
/// [`state`].
static QUEUES: Mutex<Queues> = Mutex::new(Queues::new());

/// Set if librocov was there before HSA started. Then it knows all queues.
static SEES_ALL: AtomicBool = AtomicBool::new(false);

/// Notes that librocov sees all queues: HSA has not started yet, or is just starting.
pub(crate) fn note_all_seen() {
    SEES_ALL.store(true, Ordering::Relaxed);
}

/// Set if the GPU has stopped a kernel. Its queue stands still, and a wait for it would last to the end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Notes that the GPU has stopped a kernel.
pub(super) fn note_stopped() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// The longest wait for kernels.
pub(super) fn patience() -> Duration {
    match STOPPED.load(Ordering::Relaxed) {
        true => Duration::ZERO,
        false => settings::patience(),
    }
}

fn queues() -> MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a new queue.
pub(super) fn created(queue: &NewQueue) {
    if process::may_use_hsa() {
        // SAFETY: the runtime has made the queue, and the hooks report its end.
        unsafe { queues().created(queue.agent, queue.address) };
    }
}

/// Forgets a queue that is about to be destroyed.
pub(super) fn destroying(address: u64) {
    // The forked child of a process with a wait under way would wait forever.
    if process::may_use_hsa() {
        let device = state::attach_own();
        queues().destroying(device.as_ref().and_then(Gpus::hsa), address);
    }
}

/// Forgets all queues, because HSA is gone.
pub(super) fn forget_all() {
    queues().clear();
}

/// The outcome of a wait for kernels.
#[derive(Debug, Default)]
pub(super) struct Waited {
    /// The agents that are known to be idle now.
    pub(super) idle: Idle,
    /// Set if a kernel still runs, or may run.
    pub(super) in_flight: bool,
}

/// Waits until the known queues of these agents have no kernel left of those that they have now, but no
/// longer than ROCOV_WAIT. If that is 0, after a stop, or on a thread of the runtimes, only looks which agents are idle.
pub(super) fn wait(gpus: &Gpus, agents: &[u64]) -> Waited {
    let (of_cuda, of_hsa): (Vec<u64>, Vec<u64>) = agents.iter().partition(|agent| is_cuda(**agent));
    let mut waited = match gpus.hsa() {
        Some(device) => wait_for_queues(device, &of_hsa),
        None => Waited::default(),
    };
    if of_cuda.is_empty() {
        return waited;
    }
    // Before the wait: a launch during it is not part of it.
    let moment = modules::moment();
    match gpus.cuda().map(|cuda| cuda.wait(&of_cuda, patience())) {
        Some(Ok(true)) => waited.idle.extend(
            of_cuda
                .into_iter()
                .filter_map(|agent| Some((agent, moment?))),
        ),
        Some(Ok(false)) => waited.in_flight = true,
        Some(Err(error)) if !is_known_at_drain(&error) => warn_blind(&error),
        Some(Err(_)) | None => {}
    }
    waited
}

fn warn_blind(error: &DeviceError) {
    log::warn_once(diagnostic!(
        "cannot wait for kernels: {error}; their later counts may be lost";
        "make the program wait for its kernels"
    ));
}

fn wait_for_queues(device: &HsaDevice, agents: &[u64]) -> Waited {
    let waited = |queues: &Queues, in_flight| Waited {
        idle: match SEES_ALL.load(Ordering::Relaxed) {
            true => queues.idle(device, agents).unwrap_or_default(),
            false => Idle::new(),
        },
        in_flight,
    };
    if agents.is_empty() {
        return Waited::default();
    }
    let patience = patience();
    if patience.is_zero() || stack::is_runtimes_thread() {
        // Another thread may hold the lock in a wait for this thread.
        let looked = QUEUES.try_lock().map(|queues| waited(&queues, false));
        let looked = looked.unwrap_or_default();
        let in_flight = looked.idle.len() < agents.len();
        return Waited {
            in_flight,
            ..looked
        };
    }
    let mut queues = queues();
    let finished = queues.wait(device, agents, patience);
    let finished = finished.unwrap_or_else(|error| {
        warn_blind(&error);
        true
    });
    waited(&queues, !finished)
}

/// Prints, once for each place in the program, that a kernel is still running after the wait there.
pub(super) fn warn_in_flight(place: &str, outcome: &str) {
    log::warn_once(diagnostic!(
        "a kernel is still running after {} s (ROCOV_WAIT) {place}: {outcome}",
        settings::patience().as_secs();
        "increase ROCOV_WAIT"
    ));
}
