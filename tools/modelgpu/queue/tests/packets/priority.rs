//! A kernel of a queue with a lower priority waits for those of a higher one, but not for ever.

use std::sync::Arc;
use std::time::{Duration, Instant};

use modelgpu_queue::{Bells, QueueKind};

use crate::aql::dispatch;
use crate::gpu::{ENDLESS_KERNEL, FakeGpu, NORMAL, Queue, READ_INDEX, until};

/// The time for which a kernel waits.
const PATIENCE: Duration = Duration::from_millis(100);

/// Two queues of one GPU. Each has memory of its own, because a fake GPU's memory has room for one.
struct Rivals {
    memories: [Arc<FakeGpu>; 2],
    queues: [Queue; 2],
}

impl Rivals {
    fn start() -> Self {
        let bells = Bells::default();
        let memories = [FakeGpu::new(), FakeGpu::new()];
        let start = |place: usize| {
            Queue::start_among(&bells, &memories[place], QueueKind::Aql, 1 + place as u32)
        };
        let queues = [start(0), start(1)];
        Self { memories, queues }
    }

    /// Starts a kernel in the first queue that never ends.
    fn occupy(&self) {
        self.put(0, ENDLESS_KERNEL);
        until("it runs", || !self.memories[0].happened().is_empty());
    }

    fn put(&self, place: usize, kernel: u64) {
        self.queues[place].put(dispatch(kernel, 0));
        self.queues[place].ring_all();
    }

    /// The time until the second queue has run another kernel.
    fn time_of_second(&self) -> Duration {
        let since = Instant::now();
        let ran = self.memories[1].read(READ_INDEX) + 1;
        self.put(1, 7);
        until("it runs", || self.memories[1].read(READ_INDEX) == ran);
        since.elapsed()
    }

    /// Returns whether the second queue runs a kernel at once. Other work on this machine may delay some.
    fn second_runs_at_once(&self) -> bool {
        (0..20).any(|_| self.time_of_second() < PATIENCE / 2)
    }
}

#[test]
fn a_lower_queue_waits_for_a_higher_one_but_not_for_ever() {
    let rivals = Rivals::start();
    rivals.queues[0].processor.set_priority(NORMAL + 1);
    rivals.occupy();
    assert!(rivals.time_of_second() >= PATIENCE);
    // It does not wait again for a kernel that it has passed.
    assert!(rivals.second_runs_at_once());
}

#[test]
fn queues_of_one_priority_run_at_once() {
    let rivals = Rivals::start();
    rivals.occupy();
    assert!(rivals.second_runs_at_once());
}

#[test]
fn an_empty_queue_keeps_nobody_waiting() {
    let rivals = Rivals::start();
    rivals.queues[0].processor.set_priority(NORMAL + 1);
    assert!(rivals.second_runs_at_once());
}
