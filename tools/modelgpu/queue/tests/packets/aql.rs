//! AQL: order, indices, barriers, completion.

use modelgpu_queue::QueueKind;

use crate::gpu::{
    DATA, ENDLESS_KERNEL, FakeGpu, Happened, MAILBOXES, Queue, READ_INDEX, RING, RING_BYTES,
    WRITE_INDEX, stays, until,
};

const DISPATCH: u64 = 2;
const BARRIER_AND: u64 = 3;
const BARRIER_OR: u64 = 5;
const VENDOR: u64 = 0;

/// A kernel dispatch: the object at 32, the completion signal at 56.
pub(crate) fn dispatch(object: u64, signal: u64) -> [u64; 8] {
    [DISPATCH, 0, 0, 0, object, 0, 0, signal]
}

fn barrier(kind: u64, dependencies: [u64; 2], signal: u64) -> [u64; 8] {
    let [first, last] = dependencies;
    [kind, first, 0, 0, 0, last, 0, signal]
}

fn kernels(gpu: &FakeGpu) -> Vec<u64> {
    let happened = gpu.happened().into_iter();
    happened
        .filter_map(|what| match what {
            Happened::Kernel { object, .. } => Some(object),
            _ => None,
        })
        .collect()
}

#[test]
fn packets_run_in_order_and_the_ring_wraps() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let slots = RING_BYTES / 64;
    for round in 0..3 {
        for slot in 0..slots {
            queue.put(dispatch(100 * round + slot, 0));
        }
        queue.ring_all();
        until("all packets are read", || {
            gpu.read(READ_INDEX) == (round + 1) * slots
        });
    }
    let expected: Vec<u64> = (0..3)
        .flat_map(|round| (0..slots).map(move |slot| 100 * round + slot))
        .collect();
    assert_eq!(kernels(&gpu), expected);
}

/// The indices are in the program's memory, which may write any numbers there.
#[test]
fn indices_have_any_value() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let done = gpu.signal(0, 1, 0);
    let first = 1 << 62;
    gpu.write(READ_INDEX, first);
    gpu.write(WRITE_INDEX, first);
    queue.put(barrier(BARRIER_AND, [0, 0], done));
    queue.ring_all();
    until("the packet is complete", || gpu.value(done) == 0);
    assert_eq!(gpu.read(READ_INDEX), first + 1);
}

#[test]
fn nothing_runs_before_the_doorbell_rings_or_the_header_is_written() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    queue.put(dispatch(7, 0));
    assert!(stays(|| gpu.read(READ_INDEX) == 0));
    queue.ring(0);
    until("the first packet is read", || gpu.read(READ_INDEX) == 1);
    // The second slot's header is still INVALID, although the doorbell has rung.
    queue.put([1, 0, 0, 0, 8, 0, 0, 0]);
    queue.ring(1);
    assert!(stays(|| gpu.read(READ_INDEX) == 1));
    gpu.write(RING + 64, DISPATCH);
    until("the second packet is read", || gpu.read(READ_INDEX) == 2);
    assert_eq!(kernels(&gpu), [7, 8]);
}

/// Two threads submit, and the one with the first packet rings last.
#[test]
fn a_doorbell_that_falls_back_leaves_no_packet_behind() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    // The second packet is ready, the first is not.
    queue.put([1, 0, 0, 0, 7, 0, 0, 0]);
    queue.put(dispatch(8, 0));
    queue.ring(1);
    assert!(stays(|| gpu.read(READ_INDEX) == 0));
    gpu.write(RING, DISPATCH);
    queue.ring(0);
    until("both packets are read", || gpu.read(READ_INDEX) == 2);
    assert_eq!(kernels(&gpu), [7, 8]);
}

#[test]
fn completion_gives_the_slot_back_decrements_and_wakes() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let signal = gpu.signal(0, 5, 9);
    queue.put(dispatch(7, signal));
    queue.ring_all();
    until("the event is raised", || {
        gpu.happened().contains(&Happened::Event(9))
    });
    assert_eq!(gpu.value(signal), 4);
    assert_eq!(gpu.read(MAILBOXES + 8 * 9), 9);
    assert_eq!(gpu.read(READ_INDEX), 1);
    assert_eq!(gpu.read(RING) & 0xff, 1, "the slot is INVALID again");
    let (start, end) = (gpu.read(signal + 32), gpu.read(signal + 40));
    assert!(1000 <= start && start < end, "{start} {end}");
}

#[test]
fn a_signal_without_a_mailbox_raises_no_event() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let signal = gpu.signal(0, 1, 0);
    queue.put(dispatch(7, signal));
    queue.ring_all();
    until("the signal is complete", || gpu.value(signal) == 0);
    assert!(stays(|| gpu.happened().len() == 1));
}

#[test]
fn barrier_and_waits_for_all_and_or_for_one() {
    for (kind, after_one) in [(BARRIER_AND, 1), (BARRIER_OR, 0)] {
        let gpu = FakeGpu::new();
        let queue = Queue::start(&gpu, QueueKind::Aql);
        let (one, two) = (gpu.signal(0, 1, 0), gpu.signal(1, 1, 0));
        let done = gpu.signal(2, 1, 0);
        queue.put(barrier(kind, [one, two], done));
        queue.put(dispatch(7, 0));
        queue.ring_all();
        assert!(stays(|| gpu.value(done) == 1 && kernels(&gpu).is_empty()));
        gpu.write(two + 8, 0);
        if after_one == 1 {
            assert!(stays(|| gpu.value(done) == 1 && kernels(&gpu).is_empty()));
            gpu.write(one + 8, 0);
        }
        until("the barrier is complete", || gpu.value(done) == 0);
        until("the kernel behind it runs", || kernels(&gpu) == [7]);
    }
}

#[test]
fn barriers_without_dependencies_complete() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let done = gpu.signal(0, 2, 0);
    queue.put(barrier(BARRIER_AND, [0, 0], done));
    queue.put(barrier(BARRIER_OR, [0, 0], done));
    queue.ring_all();
    until("both are complete", || gpu.value(done) == 0);
}

#[test]
fn barrier_value_compares_what_the_mask_leaves() {
    // Condition, then a value that does not meet it and one that does; the mask hides bits 8 on.
    for (condition, before, after) in [(0, 4, 3), (1, 3, 4), (2, 3, 2), (3, 2, 3)] {
        let gpu = FakeGpu::new();
        let queue = Queue::start(&gpu, QueueKind::Aql);
        let (watched, done) = (gpu.signal(0, 0x700 + before, 0), gpu.signal(1, 1, 0));
        queue.put([VENDOR | 2 << 16, watched, 3, 0xff, condition, 0, 0, done]);
        queue.ring_all();
        assert!(stays(|| gpu.value(done) == 1), "condition {condition}");
        gpu.write(watched + 8, 0x900 + after as u64);
        until("the condition holds", || gpu.value(done) == 0);
    }
}

/// HIP sends barrier-value packets without a signal, and ROCr PM4 packets to flush caches.
#[test]
fn vendor_packets_complete() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let done = gpu.signal(0, 2, 0);
    queue.put([VENDOR | 2 << 16, 0, 3, 0xff, 0, 0, 0, done]);
    // An empty buffer.
    let jump = 0xc002_3f00 << 32;
    queue.put([VENDOR | 1 << 16 | jump, DATA, 1 << 23, 0, 0, 0, 0, done]);
    queue.ring_all();
    until("both are complete", || gpu.value(done) == 0);
}

#[test]
fn a_suspended_queue_rests() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    queue.processor.suspend(true);
    queue.put(dispatch(7, 0));
    queue.ring_all();
    assert!(stays(|| kernels(&gpu).is_empty()));
    queue.processor.suspend(false);
    until("it goes on", || kernels(&gpu) == [7]);
}

#[test]
fn a_queue_that_waits_or_runs_for_ever_can_be_destroyed() {
    for waits in [true, false] {
        let gpu = FakeGpu::new();
        let queue = Queue::start(&gpu, QueueKind::Aql);
        queue.put(match waits {
            true => barrier(BARRIER_AND, [gpu.signal(0, 1, 0), 0], 0),
            false => dispatch(ENDLESS_KERNEL, 0),
        });
        queue.ring_all();
        assert!(stays(|| gpu.read(READ_INDEX) == 0));
        drop(queue);
        assert_eq!(gpu.read(READ_INDEX), 0, "the packet did not complete");
        let told = |what: &Happened| !matches!(what, Happened::Kernel { .. });
        assert!(!gpu.happened().iter().any(told), "no completion event");
    }
}
