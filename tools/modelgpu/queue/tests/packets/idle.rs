//! A queue without packets costs no processor time.

use std::fs;

use modelgpu_queue::QueueKind;

use crate::aql::dispatch;
use crate::gpu::{FakeGpu, Queue, READ_INDEX, stays, until};

/// The number of times that a thread of this process has gone to sleep, as Linux counts them.
fn sleeps(thread: &str) -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux lists the threads");
    let statuses =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let is_name = |line: &str| line.strip_prefix("Name:").map(str::trim) == Some(thread);
    let status = statuses
        .into_iter()
        .find(|status| status.lines().next().is_some_and(is_name))?;
    let count = |line: &str| {
        line.strip_prefix("voluntary_ctxt_switches:")?
            .trim()
            .parse()
            .ok()
    };
    status.lines().find_map(count)
}

#[test]
fn an_idle_queue_sleeps_until_its_doorbell_rings() {
    for (kind, id) in [
        (QueueKind::Aql, 71),
        (QueueKind::Sdma, 72),
        (QueueKind::Pm4, 73),
    ] {
        let gpu = FakeGpu::new();
        let queue = Queue::start_as(&gpu, kind, id);
        let name = format!("modelgpu q{id}");
        for round in 1..=3 {
            until("the queue sleeps for good", || {
                let before = sleeps(&name);
                before.is_some() && stays(|| sleeps(&name) == before)
            });
            match kind {
                QueueKind::Aql => {
                    queue.put(dispatch(7, 0));
                    queue.ring_all();
                    until("the packet is read", || gpu.read(READ_INDEX) == round);
                }
                QueueKind::Pm4 => {
                    // Padding.
                    queue.put_pm4(&[0x8000_0000]);
                    until("the packet is read", || gpu.read(READ_INDEX) == round);
                }
                QueueKind::Sdma => {
                    queue.put_sdma(&[0]);
                    until("the packet is read", || gpu.read(READ_INDEX) == 4 * round);
                }
            }
        }
    }
}
