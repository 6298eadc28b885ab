//! The order of kernels of several queues: those of a queue with a higher priority go first.
//!
//! Hardware gives the compute units to the queue with the highest priority, and what it leaves to others. So a
//! kernel that waits for one of a lower priority still ends. Here the lower one waits for a time only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bells::Bells;
use crate::fault::Fault;
use crate::pause::Pause;
use crate::rank::{Rank, Ticket};

/// The time for which a kernel waits for others.
const PATIENCE: Duration = Duration::from_millis(100);
/// The shortest and the longest time between two looks at other queues.
const LOOKS: (Duration, Duration) = (Duration::from_micros(5), Duration::from_millis(1));

/// A queue's turn to run a kernel.
pub(crate) struct Turn {
    bells: Bells,
    /// The kernels for which this queue has waited long enough.
    passed: Vec<Ticket>,
}

impl Turn {
    pub(crate) fn new(bells: Bells) -> Self {
        Self {
            bells,
            passed: Vec::new(),
        }
    }

    /// Waits until no queue of a higher rank has a kernel, at most [`PATIENCE`] and once for each kernel.
    ///
    /// # Errors
    /// Fails if `stop` is set.
    pub(crate) fn wait(&mut self, rank: Rank, stop: &AtomicBool) -> Result<(), Fault> {
        let since = Instant::now();
        let pause = Pause::between(LOOKS.0, LOOKS.1);
        loop {
            let ahead = self.bells.kernels_above(rank);
            if ahead.iter().all(|kernel| self.passed.contains(kernel)) {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                self.passed = ahead;
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Fault::Cancelled);
            }
            pause.wait();
        }
    }
}
