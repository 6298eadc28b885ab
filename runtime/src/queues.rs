//! The queues of the process, and waiting for the kernels in them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rocov::drain::Idle;
use rocov::hsa::{HsaDevice, Queues};

use crate::{caller, config, lifecycle, process};

/// A queue that was made, as copies of librocov tell each other.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NewQueue {
    /// Handle of the agent whose packets it takes.
    pub(crate) agent: u64,
    /// Address of the `hsa_queue_t`.
    pub(crate) address: u64,
}

/// Locked while kernels are waited for, so that no queue goes meanwhile. Not with the lock of
/// [`crate::lifecycle`].
static QUEUES: Mutex<Queues> = Mutex::new(Queues::new());

/// Whether librocov was there before HSA started, so that no queue was made before.
static SEES_ALL: AtomicBool = AtomicBool::new(false);

/// HSA has not started yet, or is just starting.
pub(crate) fn are_all_seen() {
    SEES_ALL.store(true, Ordering::Relaxed);
}

fn queues() -> MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queue was made.
pub(crate) fn created(queue: &NewQueue) {
    if process::may_use_hsa() {
        // SAFETY: a queue that the runtime has made; the hooks tell when it goes.
        unsafe { queues().created(queue.agent, queue.address) };
    }
}

/// A queue is about to be destroyed.
pub(crate) fn destroying(address: u64) {
    // The forked child of a process that was just waiting would wait for ever.
    if process::may_use_hsa() {
        let device = lifecycle::attach_own();
        queues().destroying(device.as_ref(), address);
    }
}

/// HSA is gone.
pub(crate) fn forget_all() {
    queues().clear();
}

/// What became of waiting for kernels.
#[derive(Debug, Default)]
pub(crate) struct Waited {
    /// The agents that are idle now, as far as that is known.
    pub(crate) idle: Idle,
    /// Whether a kernel still runs, or may.
    pub(crate) in_flight: bool,
}

/// Waits until the kernels are done that these agents were given up to now, as long as the user
/// allows.
pub(crate) fn finish(device: &HsaDevice, agents: &[u64]) -> Waited {
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
    let patience = config::patience();
    if patience.is_zero() || caller::is_runtimes_thread() {
        // Another thread may be waiting just now, for what this one does.
        let looked = QUEUES.try_lock().map(|it| waited(&it, false));
        let looked = looked.unwrap_or_default();
        let in_flight = looked.idle.len() < agents.len();
        return Waited {
            in_flight,
            ..looked
        };
    }
    let mut queues = queues();
    let finished = queues.finish(device, agents, patience);
    let finished = finished.unwrap_or_else(|error| {
        // Once, however many code objects are unloaded.
        lifecycle::say_once(&format_args!("cannot wait for kernels: {error}"));
        true
    });
    waited(&queues, !finished)
}
