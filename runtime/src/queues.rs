//! The queues of the process, and waiting for the kernels in them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rocov::drain::Idle;
use rocov::hsa::{HsaDevice, Queues};

use crate::{caller, config, log, process};

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
        queues().destroying(address);
    }
}

/// HSA is gone.
pub(crate) fn forget_all() {
    queues().clear();
}

/// Waits until the kernels are done that these agents were given up to now, as long as the user
/// allows. Returns those that are idle then, as far as that is known.
pub(crate) fn finish(device: &HsaDevice, agents: &[u64]) -> Idle {
    let idle = |queues: &Queues| match SEES_ALL.load(Ordering::Relaxed) {
        true => queues.idle(device, agents).unwrap_or_default(),
        false => Idle::new(),
    };
    let patience = config::patience();
    if agents.is_empty() {
        return Idle::new();
    }
    if patience.is_zero() || caller::is_runtimes_thread() {
        // Another thread may be waiting just now, for what this one does.
        return QUEUES
            .try_lock()
            .map_or_else(|_| Idle::new(), |it| idle(&it));
    }
    let mut queues = queues();
    match queues.finish(device, agents, patience) {
        Ok(true) => {}
        Ok(false) => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| {
                log::warn(format_args!(
                    "a kernel still runs after {} s (ROCOV_WAIT) while code is unloaded; if it is \
                     of that code, what it counts from now on is lost",
                    patience.as_secs()
                ));
            });
        }
        Err(error) => log::warn(format_args!("cannot wait for kernels: {error}")),
    }
    idle(&queues)
}
