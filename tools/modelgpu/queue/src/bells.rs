//! Doorbells: one thread looks at those of all idle queues.
//!
//! A doorbell is plain memory, so nothing can wake a queue's thread. A program has a queue for each
//! stream, and one for copies in each direction. If each looked at its own doorbell, they would take
//! the processor from the program and from the queue that works.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::pause::Pause;
use crate::rank::{Rank, Ticket};
use crate::thread::Thread;

/// The shortest and the longest time between two looks. A program may keep a dozen idle queues for hours.
const LOOKS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(2));

/// The doorbells of a process. Clones are the same doorbells.
#[derive(Clone, Default)]
pub struct Bells(Arc<Mutex<Watch>>);

#[derive(Default)]
struct Watch {
    queues: Vec<Arc<dyn Listener>>,
    /// Runs while there are queues.
    watcher: Option<Watcher>,
}

struct Watcher {
    thread: Thread,
    stop: Arc<AtomicBool>,
}

/// A queue that may sleep until its doorbell rings.
pub(crate) trait Listener: Send + Sync {
    /// The place where its thread sleeps.
    fn bed(&self) -> &Bed;

    /// Returns whether the queue has something to do.
    fn is_called(&self) -> bool;

    /// The kernel that the queue runs, or is about to run, if those of `rank` wait for it.
    fn kernel_above(&self, rank: Rank) -> Option<Ticket>;
}

impl Bells {
    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes this queue's thread whenever it has something to do.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub(crate) fn watch(&self, queue: Arc<dyn Listener>) -> io::Result<()> {
        let mut watch = self.lock();
        if watch.watcher.is_none() {
            let stop = Arc::new(AtomicBool::new(false));
            let (bells, stopped) = (self.clone(), Arc::clone(&stop));
            let thread = Thread::start("modelgpu bells", move || bells.look(&stopped))?;
            watch.watcher = Some(Watcher { thread, stop });
        }
        watch.queues.push(queue);
        Ok(())
    }

    /// The kernels that queues run, or are about to run, and for which those of `rank` wait.
    pub(crate) fn kernels_above(&self, rank: Rank) -> Vec<Ticket> {
        let watch = self.lock();
        let kernels = watch.queues.iter().map(|queue| queue.kernel_above(rank));
        kernels.flatten().collect()
    }

    /// Forgets this queue.
    pub(crate) fn forget(&self, queue: &dyn Listener) {
        let mut watch = self.lock();
        let is_other = |other: &Arc<dyn Listener>| !std::ptr::addr_eq(Arc::as_ptr(other), queue);
        watch.queues.retain(is_other);
        let watcher = match watch.queues.is_empty() {
            true => watch.watcher.take(),
            false => None,
        };
        drop(watch);
        if let Some(watcher) = watcher {
            watcher.stop.store(true, Ordering::Relaxed);
            watcher.thread.join();
        }
    }

    fn look(&self, stop: &AtomicBool) {
        let mut pause = Pause::between(LOOKS.0, LOOKS.1);
        while !stop.load(Ordering::Relaxed) {
            let mut rang = false;
            for queue in &self.lock().queues {
                if queue.bed().is_taken() && queue.is_called() {
                    queue.bed().wake();
                    rang = true;
                }
            }
            if rang {
                pause.restart();
            }
            pause.wait();
        }
    }
}

/// The place where a thread sleeps until another one wakes it.
#[derive(Default)]
pub(crate) struct Bed {
    asleep: Mutex<bool>,
    woken: Condvar,
}

impl Bed {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until somebody calls [`wake`](Self::wake), unless `stop` is set.
    pub(crate) fn sleep(&self, stop: &AtomicBool) {
        let mut asleep = self.lock();
        // The one that stops the thread sets `stop` before it wakes the thread.
        *asleep = !stop.load(Ordering::Acquire);
        while *asleep {
            asleep = (self.woken.wait(asleep)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_taken(&self) -> bool {
        *self.lock()
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake(&self) {
        *self.lock() = false;
        self.woken.notify_one();
    }
}
