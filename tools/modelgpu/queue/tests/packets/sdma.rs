//! SDMA: every packet type that ROCr sends.

use std::sync::Arc;

use modelgpu_queue::QueueKind;

use crate::gpu::{
    BASE, DATA, FakeGpu, Happened, Queue, READ_INDEX, RING, RING_BYTES, SIZE, stays, until,
};

const FENCE: u32 = 5;

fn low(address: u64) -> u32 {
    address as u32
}

fn high(address: u64) -> u32 {
    (address >> 32) as u32
}

fn pattern(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + 1) as u8).collect()
}

/// Puts packets and waits until the queue has read them.
fn run(gpu: &FakeGpu, queue: &Queue, dwords: &[u32]) {
    let end = gpu.read(READ_INDEX) + 4 * dwords.len() as u64;
    queue.put_sdma(dwords);
    until("the packets are read", || gpu.read(READ_INDEX) == end);
}

fn copy(target: u64, source: u64, len: u64) -> [u32; 7] {
    let count = len as u32 - 1;
    [
        1,
        count,
        0,
        low(source),
        high(source),
        low(target),
        high(target),
    ]
}

#[test]
fn linear_copies_count_from_zero_and_may_overlap() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    let bytes = pattern(100);
    gpu.write_bytes(DATA, &bytes);
    run(&gpu, &queue, &copy(DATA + 0x203, DATA, 100));
    assert_eq!(gpu.read_bytes(DATA + 0x203, 100), bytes);
    assert_eq!(gpu.read_bytes(DATA + 0x203 + 100, 1), [0]);
    run(&gpu, &queue, &copy(DATA + 8, DATA, 100));
    assert_eq!(gpu.read_bytes(DATA + 8, 100), bytes);
}

/// The read index is in the program's memory, which may write any number there.
#[test]
fn read_indices_have_any_value() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    gpu.write(READ_INDEX, u64::MAX - 15);
    for (i, dword) in [FENCE, low(DATA), high(DATA), 7].into_iter().enumerate() {
        let at = RING + RING_BYTES - 16 + 4 * i as u64;
        gpu.write_bytes(at, &dword.to_le_bytes());
    }
    queue.ring(u64::MAX);
    until("the fence is written", || gpu.read(DATA) == 7);
    until("the packet is read", || gpu.read(READ_INDEX) == u64::MAX);
}

#[test]
fn a_copy_crosses_from_one_allocation_into_the_next() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    let bytes = pattern(64);
    let border = BASE + SIZE / 2;
    gpu.write_bytes(DATA, &bytes);
    run(&gpu, &queue, &copy(border - 24, DATA, 64));
    assert_eq!(gpu.read_bytes(border - 24, 64), bytes);
    run(&gpu, &queue, &copy(DATA + 0x100, border - 24, 64));
    assert_eq!(gpu.read_bytes(DATA + 0x100, 64), bytes);
}

#[test]
fn packets_may_wrap_at_the_end_of_the_ring() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    let bytes = pattern(16);
    gpu.write_bytes(DATA, &bytes);
    // NOPs up to three dwords before the end.
    let nops = vec![0; RING_BYTES as usize / 4 - 3];
    run(&gpu, &queue, &nops);
    run(&gpu, &queue, &copy(DATA + 64, DATA, 16));
    assert_eq!(gpu.read_bytes(DATA + 64, 16), bytes);
}

#[test]
fn a_nop_says_how_long_it_is() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    // Two dwords of garbage that the queue must not read as packets.
    run(&gpu, &queue, &[2 << 16, u32::MAX, u32::MAX, 0]);
    assert_eq!(gpu.happened(), []);
}

#[test]
fn sub_windows_are_copied_row_by_row() {
    // The first bit of a row's pitch, in SDMA 4 and in SDMA 7.
    for (has_wide_windows, pitch_bit) in [(false, 13), (true, 16)] {
        copy_windows(&FakeGpu::with_windows(has_wide_windows), pitch_bit);
    }
}

fn copy_windows(gpu: &Arc<FakeGpu>, pitch_bit: u32) {
    let queue = Queue::start(gpu, QueueKind::Sdma);
    // Elements of 4 bytes. Source: pitch 8 elements, from (x 1, y 2); target: pitch 4, from
    // (0, 0); 3 elements by 2 rows by 2 slices.
    let source = pattern(8 * 4 * 4 * 2);
    let target = DATA + 0x1000;
    gpu.write_bytes(DATA, &source);
    let dwords = [
        1 | 4 << 8 | 2 << 29,
        low(DATA),
        high(DATA),
        1 | 2 << 16,
        (8 - 1) << pitch_bit,
        8 * 4 - 1,
        low(target),
        high(target),
        0,
        (4 - 1) << pitch_bit,
        4 * 2 - 1,
        (3 - 1) | (2 - 1) << 16,
        2 - 1,
    ];
    run(gpu, &queue, &dwords);
    for slice in 0..2u64 {
        for row in 0..2u64 {
            let from = ((slice * 4 + row + 2) * 8 + 1) * 4;
            let to = (slice * 2 + row) * 4 * 4;
            let expected = &source[from as usize..from as usize + 12];
            assert_eq!(gpu.read_bytes(target + to, 12), expected);
            assert_eq!(gpu.read_bytes(target + to + 12, 4), [0; 4]);
        }
    }
}

#[test]
fn fills_repeat_a_dword() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    // COUNT is the number of bytes minus four (element size 2: a dword).
    let fill = [11 | 2 << 30, low(DATA), high(DATA), 0x0403_0201, 40 - 4];
    run(&gpu, &queue, &fill);
    assert_eq!(gpu.read_bytes(DATA, 40), [1, 2, 3, 4].repeat(10));
    assert_eq!(gpu.read_bytes(DATA + 40, 4), [0; 4]);
}

#[test]
fn a_fill_crosses_from_one_allocation_into_the_next_inside_of_a_dword() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    let target = BASE + SIZE / 2 - 22;
    let fill = [11 | 2 << 30, low(target), high(target), 0x0403_0201, 40 - 4];
    run(&gpu, &queue, &fill);
    assert_eq!(gpu.read_bytes(target, 40), [1, 2, 3, 4].repeat(10));
    assert_eq!(gpu.read_bytes(target - 4, 4), [0; 4]);
    assert_eq!(gpu.read_bytes(target + 40, 4), [0; 4]);
}

#[test]
fn fence_atomic_timestamp_and_trap_complete_a_signal() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    let signal = gpu.signal(0, 1, 0);
    let (value, start) = (signal + 8, signal + 32);
    let decrement = [
        10 | 47 << 25,
        low(value),
        high(value),
        u32::MAX,
        u32::MAX,
        0,
        0,
        0,
    ];
    let timestamp = [13 | 2 << 8, low(start), high(start)];
    let fence = [FENCE, low(DATA), high(DATA), 77];
    let packets = [&timestamp[..], &decrement, &fence, &[6, 5]].concat();
    run(&gpu, &queue, &packets);
    assert_eq!(gpu.value(signal), 0);
    assert!(gpu.read(start) >= 1000);
    assert_eq!(gpu.read(DATA), 77);
    assert_eq!(gpu.happened(), [Happened::Event(5)]);
}

#[test]
fn polls_wait_for_their_condition() {
    // A function, a value that does not meet it with reference 5, and one that does.
    for (function, before, after) in [
        (1, 5, 4),
        (2, 6, 5),
        (3, 4, 5),
        (4, 5, 4),
        (5, 4, 5),
        (6, 5, 6),
    ] {
        let gpu = FakeGpu::new();
        let queue = Queue::start(&gpu, QueueKind::Sdma);
        gpu.write(DATA, 0xf0 | before);
        let poll = [
            8 | function << 28 | 1 << 31,
            low(DATA),
            high(DATA),
            5,
            0xf,
            0,
        ];
        queue.put_sdma(&poll);
        assert!(stays(|| gpu.read(READ_INDEX) == 0), "function {function}");
        gpu.write(DATA, after);
        until("the condition holds", || gpu.read(READ_INDEX) == 24);
    }
}

/// Without the mem_poll bit the packet flushes the host data path: its address is that of a
/// register.
#[test]
fn a_poll_of_registers_is_a_flush() {
    let gpu = FakeGpu::new();
    let queue = Queue::start(&gpu, QueueKind::Sdma);
    run(&gpu, &queue, &[8 | 3 << 28, 0x1234, 0, 5, 0xf, 0]);
    assert_eq!(gpu.happened(), []);
}
