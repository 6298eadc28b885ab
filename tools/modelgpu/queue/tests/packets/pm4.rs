//! PM4: the packets of a driver that sends no AQL packets.
//!
//! Opcodes and fields are those of `soc15d.h` and `nvd.h` in the Linux kernel, registers those of its
//! `gc_9_4_3_offset.h` and `gc_11_0_0_offset.h`, with the base of segment 0 added.

use std::sync::Arc;

use modelgpu_amdgcn::{DispatchPacket, RegisterState, Target};
use modelgpu_queue::QueueKind;

use crate::gpu::{
    BASE, DATA, FakeGpu, Happened, Queue, READ_INDEX, RING, RING_BYTES, SIZE, stays, until,
};

const NOP: u32 = 0x10;
const DISPATCH_DIRECT: u32 = 0x15;
const PRED_EXEC: u32 = 0x23;
const WRITE_DATA: u32 = 0x37;
const WAIT_REG_MEM: u32 = 0x3c;
const INDIRECT_BUFFER: u32 = 0x3f;
const COPY_DATA: u32 = 0x40;
const EVENT_WRITE: u32 = 0x46;
const RELEASE_MEM: u32 = 0x49;
const ACQUIRE_MEM: u32 = 0x58;
const SET_SH_REG: u32 = 0x76;
const SET_UCONFIG_REG: u32 = 0x79;

/// `PACKET3_SET_SH_REG_START`.
const SH_START: u32 = 0x2c00;
const COMPUTE_START_X: u32 = 0x2e04;
const COMPUTE_PGM_LO: u32 = 0x2e0c;
const COMPUTE_PGM_RSRC1: u32 = 0x2e12;
const COMPUTE_TMPRING_SIZE: u32 = 0x2e18;
const COMPUTE_USER_DATA_0: u32 = 0x2e40;

/// The events CACHE_FLUSH_AND_INV_TS (20) with the index of the end of the pipe (5), and CS_PARTIAL_FLUSH (7, index 4).
const END_OF_PIPE: u32 = 20 | 5 << 8;
const PARTIAL_FLUSH: u32 = 7 | 4 << 8;

/// The address's low and high half.
fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

/// A packet of type 3.
fn packet(opcode: u32, body: &[u32]) -> Vec<u32> {
    let header = 3 << 30 | (body.len() as u32 - 1) << 16 | opcode << 8;
    [&[header], body].concat()
}

fn set(register: u32, values: &[u32]) -> Vec<u32> {
    packet(SET_SH_REG, &[&[register - SH_START], values].concat())
}

fn release(select: u32, address: u64, value: u64, event: u32) -> Vec<u32> {
    let ([low, high], [value, value_high]) = (halves(address), halves(value));
    let body = [END_OF_PIPE, select, low, high, value, value_high, event];
    packet(RELEASE_MEM, &body)
}

fn write(address: u64, values: &[u32]) -> Vec<u32> {
    let [low, high] = halves(address);
    packet(WRITE_DATA, &[&[5 << 8, low, high], values].concat())
}

fn indirect(address: u64, dwords: usize) -> Vec<u32> {
    let [low, high] = halves(address);
    packet(INDIRECT_BUFFER, &[low, high, dwords as u32 | 1 << 23])
}

/// Puts dwords into memory.
fn store(gpu: &FakeGpu, address: u64, dwords: &[u32]) {
    let bytes: Vec<u8> = dwords.iter().flat_map(|word| word.to_le_bytes()).collect();
    gpu.write_bytes(address, &bytes);
}

/// Puts packets and waits until the queue has read them.
fn run(gpu: &FakeGpu, queue: &Queue, dwords: &[u32]) {
    let end = gpu.read(READ_INDEX) + dwords.len() as u64;
    queue.put_pm4(dwords);
    until("the packets are read", || gpu.read(READ_INDEX) == end);
}

fn start(target: Target) -> (Arc<FakeGpu>, Queue) {
    let gpu = FakeGpu::with_target(target);
    let queue = Queue::start(&gpu, QueueKind::Pm4);
    (gpu, queue)
}

/// A dispatch of 3 x 2 x 1 workgroups of 8 x 4 x 2 work-items. `rsrc3` is its register.
fn dispatch(rsrc3: u32, initiator: u32, wave_size: u32) -> Vec<u32> {
    let code = 0x7000_1234_5600_u64;
    [
        set(COMPUTE_PGM_LO, &halves(code >> 8)),
        // SCRATCH_EN, 4 user SGPRs, 3 units of LDS.
        set(COMPUTE_PGM_RSRC1, &[0xc0042, 1 | 4 << 1 | 3 << 15]),
        set(rsrc3, &[0x11]),
        set(COMPUTE_TMPRING_SIZE, &[32 | wave_size << 12]),
        set(COMPUTE_USER_DATA_0, &[0xa0, 0xa1, 0xa2]),
        set(COMPUTE_START_X, &[0, 0, 0, 8, 4, 2, 0, 0]),
        packet(DISPATCH_DIRECT, &[3, 2, 1, initiator]),
        packet(EVENT_WRITE, &[PARTIAL_FLUSH]),
    ]
    .concat()
}

/// The kernel of `dispatch`, with these bytes of scratch and LDS.
fn kernel(scratch: u32, lds: u32, is_wave32: bool) -> Happened {
    let mut user_data = [0; 16];
    user_data[..3].copy_from_slice(&[0xa0, 0xa1, 0xa2]);
    let packet = DispatchPacket {
        workgroup_size: [8, 4, 2],
        grid_size: [24, 8, 2],
        private_segment_size: scratch,
        group_segment_size: lds,
        kernel_object: 0x7000_1234_5600,
        kernarg_address: 0,
        completion_signal: 0,
    };
    let state = RegisterState {
        entry: 0x7000_1234_5600,
        rsrc: [0xc0042, 1 | 4 << 1 | 3 << 15, 0x11],
        user_data,
        is_wave32,
    };
    Happened::Registers(packet, state)
}

/// A unit of scratch is 256 bytes of a wave from RDNA 3 on, and 1024 on RDNA 2 and CDNA (LLVM's `AMDGPUAsmPrinter`). A
/// unit of LDS is 512 bytes, or 1280 on gfx950.
/// COMPUTE_DISPATCH_INITIATOR has COMPUTE_SHADER_EN in bit 0, FORCE_START_AT_000 in bit 2 and CS_W32_EN in bit 15.
#[test]
fn a_kernel_has_the_state_of_the_registers() {
    for (target, rsrc3, initiator, wave_size, expected) in [
        (Target::Gfx942, 0x2e2d, 5, 8, kernel(128, 1536, false)),
        (Target::Gfx950, 0x2e2d, 5, 8, kernel(128, 3840, false)),
        (
            Target::Gfx1030,
            0x2e28,
            5 | 1 << 15,
            8,
            kernel(256, 1536, true),
        ),
        (Target::Gfx1100, 0x2e28, 5, 32, kernel(128, 1536, false)),
        (
            Target::Gfx1201,
            0x2e28,
            5 | 1 << 15,
            32,
            kernel(256, 1536, true),
        ),
    ] {
        let (gpu, queue) = start(target);
        run(&gpu, &queue, &dispatch(rsrc3, initiator, wave_size));
        assert_eq!(gpu.happened(), [expected], "{target}");
    }
}

#[test]
fn a_release_writes_and_raises_its_event() {
    let (gpu, queue) = start(Target::Gfx1100);
    gpu.write(DATA, u64::MAX);
    // DATA_SEL in bits 29 to 31, INT_SEL in bits 24 to 26.
    let packets = [
        release(1 << 29, DATA, 0x1234_5678_9abc, 0),
        release(2 << 29, DATA + 8, 0x1234_5678_9abc, 0),
        release(3 << 29, DATA + 16, 0, 0),
        release(2 << 24, 0, 0, 0),
        release(1 << 29 | 2 << 24, DATA + 24, 7, 9),
    ];
    run(&gpu, &queue, &packets.concat());
    assert_eq!(gpu.read(DATA), 0xffff_ffff_5678_9abc);
    assert_eq!(gpu.read(DATA + 8), 0x1234_5678_9abc);
    // The fake GPU's clock starts at 1000.
    assert_eq!(gpu.read(DATA + 16), 1000);
    assert_eq!(gpu.read(DATA + 24), 7);
    assert_eq!(gpu.happened(), [Happened::Event(9)]);
}

#[test]
fn a_wait_ends_when_its_condition_holds() {
    // The function, then a value for which it is false and one for which it is true; the mask hides bits 8 on.
    for (function, before, after) in [
        (1, 5, 4),
        (2, 6, 5),
        (3, 4, 5),
        (4, 5, 6),
        (5, 4, 5),
        (6, 5, 6),
    ] {
        let (gpu, queue) = start(Target::Gfx942);
        gpu.write(DATA, 0x700 + before);
        let [low, high] = halves(DATA);
        let body = [function | 1 << 4, low, high, 5, 0xff, 4];
        let packets = [packet(WAIT_REG_MEM, &body), write(DATA + 8, &[1])];
        queue.put_pm4(&packets.concat());
        assert!(stays(|| gpu.read(DATA + 8) == 0), "function {function}");
        gpu.write(DATA, 0x900 + after);
        until("the condition holds", || gpu.read(DATA + 8) == 1);
    }
}

/// A GPU reports a fault when it reads memory that is not mapped any more.
#[test]
fn a_wait_for_freed_memory_is_a_fault() {
    let (gpu, queue) = start(Target::Gfx942);
    let address = BASE + SIZE / 2;
    let [low, high] = halves(address);
    queue.put_pm4(&packet(WAIT_REG_MEM, &[3 | 1 << 4, low, high, 5, 0xff, 4]));
    assert!(stays(|| gpu.happened().is_empty()));
    gpu.free_upper_half();
    until("the fault", || gpu.happened().len() == 2);
    let message = format!("PM4 WAIT_REG_MEM: 4 bytes at {address:#x} are not mapped on this GPU");
    let expected = [Happened::Message(message), Happened::MemoryFault(address)];
    assert_eq!(gpu.happened(), expected);
}

#[test]
fn a_dispatch_without_workgroups_does_nothing() {
    let (gpu, queue) = start(Target::Gfx1100);
    for groups in [[0, 2, 1], [3, 0, 1], [3, 2, 0]] {
        let [x, y, z] = groups;
        run(&gpu, &queue, &packet(DISPATCH_DIRECT, &[x, y, z, 5]));
    }
    assert_eq!(gpu.happened(), []);
}

/// The read index is in the program's memory, which may write any number there.
#[test]
fn read_indices_have_any_value() {
    let (gpu, queue) = start(Target::Gfx1100);
    let first = 1 << 62;
    gpu.write(READ_INDEX, first);
    let packet = write(DATA, &[1, 2]);
    store(&gpu, RING, &packet);
    let end = first + packet.len() as u64;
    queue.ring(end);
    until("the packet is read", || gpu.read(READ_INDEX) == end);
    assert_eq!(gpu.read(DATA), 2 << 32 | 1);

    // The last two dwords before the end of all indices, and a packet that is longer.
    let (gpu, queue) = start(Target::Gfx1100);
    gpu.write(READ_INDEX, u64::MAX - 2);
    store(&gpu, RING + RING_BYTES - 12, &packet[..3]);
    queue.ring(u64::MAX);
    let message = "PM4 packet WRITE_DATA: number of dwords 0x4 is not modelled";
    until(message, || gpu.happened().len() == 2);
    let expected = [Happened::Message(message.into()), Happened::Reset];
    assert_eq!(gpu.happened(), expected);
}

/// A flush of the host's writes (`regBIF_BX_PF0_GPU_HDP_FLUSH_REQ` and `_DONE`), and invalidations of caches.
#[test]
fn flushes_do_nothing() {
    let (gpu, queue) = start(Target::Gfx1201);
    let flush = [1 << 6 | 5, 0xe26, 0xe27, u32::MAX, u32::MAX, 4];
    let packets = [
        packet(WAIT_REG_MEM, &flush),
        packet(ACQUIRE_MEM, &[0, u32::MAX, u32::MAX, 0, 0, 0, 0x7fff]),
        packet(EVENT_WRITE, &[PARTIAL_FLUSH]),
    ];
    run(&gpu, &queue, &packets.concat());
    assert_eq!(gpu.happened(), []);
}

#[test]
fn data_is_written_and_copied() {
    let (gpu, queue) = start(Target::Gfx942);
    let copy = |control: u32, source: [u32; 2], target: u64| {
        let ([low, high], [to, to_high]) = (source, halves(target));
        packet(COPY_DATA, &[control, low, high, to, to_high])
    };
    let one_address = [
        vec![3 << 30 | 4 << 16 | WRITE_DATA << 8],
        [
            &[5 << 8 | 1 << 16][..],
            &halves(DATA + 24),
            &[0x66, 0x77][..],
        ]
        .concat(),
    ];
    let packets = [
        write(DATA, &[0x11, 0x22, 0x33]),
        one_address.concat(),
        // SRC_SEL 1 is memory, 5 the packet, 9 the clock. Bit 16 copies 64 bits.
        copy(1 | 5 << 8, halves(DATA + 4), DATA + 32),
        copy(2 | 2 << 8 | 1 << 16, halves(DATA), DATA + 40),
        copy(5 | 5 << 8 | 1 << 16, [0x44, 0x55], DATA + 48),
        copy(9 | 5 << 8 | 1 << 16, [0, 0], DATA + 56),
    ];
    run(&gpu, &queue, &packets.concat());
    let words: Vec<u64> = (0..8).map(|at| gpu.read(DATA + 8 * at)).collect();
    let first = 0x22 << 32 | 0x11;
    assert_eq!(
        words,
        [first, 0x33, 0, 0x77, 0x22, first, 0x55 << 32 | 0x44, 1000]
    );
}

/// A NOP has any length, or is alone with the count 0x3fff. The filler has type 2.
#[test]
fn packets_may_cross_the_end_of_the_ring() {
    let (gpu, queue) = start(Target::Gfx1100);
    for round in 0..40 {
        let nop = [&[3 << 30 | 11 << 16 | NOP << 8][..], &[0xdead; 12]].concat();
        let padding = [0x8000_0000, 3 << 30 | 0x3fff << 16 | NOP << 8];
        let packets = [nop, padding.to_vec(), write(DATA, &[round, round + 1])];
        run(&gpu, &queue, &packets.concat());
        assert_eq!(
            gpu.read(DATA),
            u64::from(round + 1) << 32 | u64::from(round)
        );
    }
    assert!(gpu.read(READ_INDEX) > 2 * RING_BYTES / 4);
}

#[test]
fn a_packet_starts_when_all_of_it_is_there() {
    let (gpu, queue) = start(Target::Gfx1100);
    let packet = write(DATA, &[1, 2]);
    queue.put_pm4(&packet[..4]);
    assert!(stays(|| gpu.read(READ_INDEX) == 0));
    queue.put_pm4(&packet[4..]);
    until("the packet is read", || gpu.read(READ_INDEX) == 6);
    assert_eq!(gpu.read(DATA), 2 << 32 | 1);
}

#[test]
fn a_buffer_may_run_another_one() {
    let (gpu, queue) = start(Target::Gfx1100);
    let inner = write(DATA, &[1]);
    store(&gpu, DATA + 0x200, &inner);
    let outer = [indirect(DATA + 0x200, inner.len()), write(DATA + 8, &[2])].concat();
    store(&gpu, DATA + 0x100, &outer);
    run(&gpu, &queue, &indirect(DATA + 0x100, outer.len()));
    assert_eq!((gpu.read(DATA), gpu.read(DATA + 8)), (1, 2));
}

/// gfx942 has 8 XCCs, gfx1100 has one.
#[test]
fn a_predicate_selects_xccs() {
    for (target, selected, skipped) in [
        (Target::Gfx942, 1 << 7, 0),
        (Target::Gfx1100, 1 << 0, 1 << 1),
    ] {
        let (gpu, queue) = start(target);
        let data = write(DATA, &[1]);
        let other = write(DATA + 8, &[1]);
        let predicate = |xccs: u32, count: usize| packet(PRED_EXEC, &[xccs << 24 | count as u32]);
        let packets = [
            predicate(selected, data.len()),
            data.clone(),
            predicate(skipped, other.len()),
            other.clone(),
            write(DATA + 16, &[1]),
        ];
        run(&gpu, &queue, &packets.concat());
        let written = [0, 8, 16].map(|offset| gpu.read(DATA + offset));
        assert_eq!(written, [1, 0, 1], "{target}");
    }
}

#[test]
fn aql_queues_run_buffers_of_packets() {
    let gpu = FakeGpu::with_target(Target::Gfx942);
    let queue = Queue::start(&gpu, QueueKind::Aql);
    let done = gpu.signal(0, 1, 0);
    let buffer = write(DATA, &[5, 6]);
    store(&gpu, DATA + 0x100, &buffer);
    // The vendor packet 1 has an INDIRECT_BUFFER packet from byte 4 on.
    let jump = u64::from(indirect(DATA, 0)[0]) << 32;
    let size = buffer.len() as u64 | 1 << 23;
    queue.put([
        1 << 16 | jump,
        DATA + 0x100,
        size | 10 << 32,
        0,
        0,
        0,
        0,
        done,
    ]);
    queue.ring_all();
    until("the packet is complete", || gpu.value(done) == 0);
    assert_eq!(gpu.read(DATA), 6 << 32 | 5);
}

/// A queue that cannot process a packet prints why, the GPU is reset, and the queue stands still.
#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let [low, high] = halves(DATA);
    for (packets, message) in [
        (packet(0x50, &[0; 6]), "PM4 packet DMA_DATA is not modelled"),
        (packet(0xf3, &[0]), "unknown PM4 packet 0xf3"),
        (vec![0x1234], "PM4 header 0x1234 is not modelled"),
        (
            packet(SET_UCONFIG_REG, &[0x200, 0]),
            "PM4 packet SET_UCONFIG_REG: register 0xc200 is not modelled",
        ),
        // COMPUTE_PERFCOUNT_ENABLE, COMPUTE_VMID.
        (
            set(0x2e0b, &[1]),
            "PM4 packet SET_SH_REG: register 0x2e0b with value 0x1 is not modelled",
        ),
        (
            set(0x2e14, &[7]),
            "PM4 packet SET_SH_REG: register 0x2e14 with value 0x7 is not modelled",
        ),
        (
            set(COMPUTE_START_X, &[3]),
            "PM4 packet SET_SH_REG: register 0x2e04 with value 0x3 is not modelled",
        ),
        // A dispatch without a kernel, and with the thread dimensions of bit 5.
        (
            packet(DISPATCH_DIRECT, &[1, 1, 1, 0]),
            "PM4 packet DISPATCH_DIRECT: initiator 0x0 is not modelled",
        ),
        (
            packet(DISPATCH_DIRECT, &[1, 1, 1, 0x21]),
            "PM4 packet DISPATCH_DIRECT: initiator 0x21 is not modelled",
        ),
        (
            packet(DISPATCH_DIRECT, &[1, 1]),
            "PM4 packet DISPATCH_DIRECT: number of dwords 0x2 is not modelled",
        ),
        (
            packet(EVENT_WRITE, &[0x36]),
            "PM4 packet EVENT_WRITE: EVENT_TYPE 0x36 is not modelled",
        ),
        (
            release(5 << 29, DATA, 0, 0),
            "PM4 packet RELEASE_MEM: DATA_SEL 0x5 is not modelled",
        ),
        (
            release(4 << 24, DATA, 0, 0),
            "PM4 packet RELEASE_MEM: INT_SEL 0x4 is not modelled",
        ),
        // A register, and the function that does not exist.
        (
            packet(WAIT_REG_MEM, &[3, 0x1234, 0, 0, 0, 4]),
            "PM4 packet WAIT_REG_MEM: register 0x1234 is not modelled",
        ),
        (
            packet(WAIT_REG_MEM, &[7 | 1 << 4, low, high, 0, 0, 4]),
            "PM4 packet WAIT_REG_MEM: FUNCTION 0x7 is not modelled",
        ),
        // A performance counter.
        (
            packet(COPY_DATA, &[4 | 2 << 8, 0x1234, 0, low, high]),
            "PM4 packet COPY_DATA: SRC_SEL 0x4 is not modelled",
        ),
        (
            packet(WRITE_DATA, &[0, low, high, 1]),
            "PM4 packet WRITE_DATA: DST_SEL 0x0 is not modelled",
        ),
        (
            write(0x1000, &[1]),
            "PM4 WRITE_DATA: 4 bytes at 0x1000 are not mapped on this GPU",
        ),
        (
            packet(INDIRECT_BUFFER, &[low, high, 4 | 1 << 20]),
            "PM4 packet INDIRECT_BUFFER: control 0x100004 is not modelled",
        ),
    ] {
        let (gpu, queue) = start(Target::Gfx1100);
        queue.put_pm4(&packets);
        until(message, || gpu.happened().len() == 2);
        let [first, second] = &gpu.happened()[..] else {
            unreachable!("two things happened");
        };
        assert_eq!(first, &Happened::Message(message.into()));
        let is_reported = matches!(second, Happened::Reset | Happened::MemoryFault(0x1000));
        assert!(is_reported, "{message}: {second:?}");
        assert_eq!(gpu.read(READ_INDEX), 0, "{message}");
    }
}

/// Buffers end with a whole packet, and do not run themselves.
#[test]
fn damaged_buffers_are_refused() {
    let (gpu, queue) = start(Target::Gfx1100);
    let buffer = write(DATA, &[1, 2]);
    store(&gpu, DATA + 0x100, &buffer);
    queue.put_pm4(&indirect(DATA + 0x100, buffer.len() - 1));
    let message = "PM4 packet INDIRECT_BUFFER: number of dwords 0x5 is not modelled";
    until(message, || gpu.happened().len() == 2);
    assert_eq!(gpu.happened()[0], Happened::Message(message.into()));

    let (gpu, queue) = start(Target::Gfx1100);
    store(&gpu, DATA + 0x100, &indirect(DATA + 0x100, 4));
    queue.put_pm4(&indirect(DATA + 0x100, 4));
    let message = "PM4 packet INDIRECT_BUFFER: depth 0x3 is not modelled";
    until(message, || gpu.happened().len() == 2);
    assert_eq!(gpu.happened()[0], Happened::Message(message.into()));
}
