//! The host's threads that run a dispatch's workgroups.

/// Threads for a dispatch. The owner of the interpreter provides them, because its threads may have
/// to avoid what threads of the standard library do.
pub trait Workers: Sync {
    /// The most threads that run one dispatch, the calling one included. At least 1.
    fn count(&self) -> usize;

    /// The instructions that the calling thread executes before the others join it. To start them
    /// takes longer than a small kernel.
    fn alone(&self) -> u64 {
        30_000
    }

    /// Calls `work` with 0 on this thread, and with 1 to `count - 1` on further threads, at once.
    /// Returns when all calls have ended. If a thread cannot be had, its call does not take place:
    /// the others do all the work.
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// Threads of the standard library.
#[derive(Clone, Copy, Debug)]
pub struct ScopedWorkers {
    /// The most threads; 0 counts as 1.
    pub threads: usize,
    /// See [`Workers::alone`].
    pub alone: u64,
}

impl Workers for ScopedWorkers {
    fn count(&self) -> usize {
        self.threads.max(1)
    }

    fn alone(&self) -> u64 {
        self.alone
    }

    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for worker in 1..count {
                // A thread that cannot be had leaves its work to the others.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || work(worker));
            }
            work(0);
        });
    }
}
