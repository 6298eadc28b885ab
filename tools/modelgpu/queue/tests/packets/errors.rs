//! A queue prints, reports and stands still if it cannot process a packet.

use modelgpu_queue::QueueKind;

use crate::gpu::{
    DATA, FAILING_KERNEL, FakeGpu, Happened, QUEUE, Queue, READ_INDEX, SAVE_AREA, stays, until,
};

const ILLEGAL_INSTRUCTION: i64 = 0x4000_0000;
const NOWHERE: u64 = 0x1234_5678_0000;

/// The queue's inactive signal, which ROCr 5 waits for.
fn inactive_signal(gpu: &FakeGpu) -> u64 {
    let signal = gpu.signal(10, 0, 3);
    gpu.write(QUEUE + 192, signal);
    signal
}

fn dispatch(object: u64, signal: u64) -> [u64; 8] {
    [2, 0, 0, 0, object, 0, 0, signal]
}

#[test]
fn a_failing_kernel_sets_the_inactive_signal() {
    let gpu = FakeGpu::new();
    let inactive = inactive_signal(&gpu);
    let done = gpu.signal(0, 2, 0);
    let queue = Queue::start(&gpu, QueueKind::Aql);
    queue.put(dispatch(FAILING_KERNEL, done));
    queue.put(dispatch(7, done));
    queue.ring_all();
    until("the event is raised", || {
        gpu.happened().contains(&Happened::Event(3))
    });
    assert_eq!(gpu.value(inactive), ILLEGAL_INSTRUCTION);
    assert!(stays(|| gpu.value(done) == 2 && gpu.read(READ_INDEX) == 0));
    let message = Happened::Message("an unknown instruction".into());
    assert_eq!(gpu.happened()[1..], [message, Happened::Event(3)]);
}

#[test]
fn an_exception_word_is_preferred() {
    let gpu = FakeGpu::new();
    let inactive = inactive_signal(&gpu);
    gpu.write(SAVE_AREA + 24, DATA);
    gpu.write(SAVE_AREA + 32, 4);
    let queue = Queue::start(&gpu, QueueKind::Aql);
    queue.put(dispatch(FAILING_KERNEL, 0));
    queue.ring_all();
    until("the event is raised", || {
        gpu.happened().contains(&Happened::Event(4))
    });
    // Exception code 4, wave illegal instruction.
    assert_eq!(gpu.read(DATA), 1 << 3);
    assert_eq!(gpu.value(inactive), 0);
}

#[test]
fn an_unknown_packet_is_an_invalid_format() {
    let gpu = FakeGpu::new();
    let inactive = inactive_signal(&gpu);
    let queue = Queue::start(&gpu, QueueKind::Aql);
    queue.put([4, 0, 0, 0, 0, 0, 0, 0]);
    queue.ring_all();
    until("the queue is inactive", || gpu.value(inactive) == 32);
    let message = Happened::Message("unknown AQL packet 0x4".into());
    assert_eq!(gpu.happened(), [message, Happened::Event(3)]);
}

#[test]
fn an_unmapped_signal_is_a_memory_fault() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Aql);
    queue.put(dispatch(7, NOWHERE));
    queue.ring_all();
    let fault = Happened::MemoryFault(NOWHERE + 32);
    until("the fault is raised", || gpu.happened().contains(&fault));
}

#[test]
fn an_unmapped_copy_names_its_side() {
    let low = |address: u64| address as u32;
    let high = |address: u64| (address >> 32) as u32;
    for (source, target, side) in [(NOWHERE, DATA, "source"), (DATA, NOWHERE, "target")] {
        let gpu = FakeGpu::new();
        let queue = Queue::start(&gpu, QueueKind::Sdma);
        queue.put_sdma(&[
            1,
            15,
            0,
            low(source),
            high(source),
            low(target),
            high(target),
        ]);
        until("the fault is raised", || gpu.happened().len() == 2);
        let text = format!("copy {side}: 16 bytes at 0x123456780000 are not mapped on this GPU");
        assert_eq!(
            gpu.happened(),
            [Happened::Message(text), Happened::MemoryFault(NOWHERE)]
        );
        assert!(stays(|| gpu.read(READ_INDEX) == 0));
    }
}

#[test]
fn garbage_on_an_sdma_queue_resets_the_gpu() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    queue.put_sdma(&[0xff]);
    until("the GPU is reset", || {
        gpu.happened().contains(&Happened::Reset)
    });
    let message = Happened::Message("unknown SDMA packet 0xff".into());
    assert_eq!(gpu.happened(), [message, Happened::Reset]);
}

#[test]
fn a_misaligned_fence_is_refused() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    queue.put_sdma(&[5, DATA as u32 + 2, (DATA >> 32) as u32, 1]);
    until("the GPU is reset", || {
        gpu.happened().contains(&Happened::Reset)
    });
    assert_eq!(gpu.read(DATA), 0);
}
