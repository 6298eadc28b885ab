//! The state of a compute pipe, and the packets that use it.

use std::sync::atomic::{AtomicBool, Ordering};

use modelgpu_amdgcn::{ComputeUnits, Target};

use super::packet::Packet;
use super::registers::Registers;
use crate::fault::Fault;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::wait::Comparison;

const DISPATCH_DIRECT: u32 = 0x15;
const WRITE_DATA: u32 = 0x37;
const WAIT_REG_MEM: u32 = 0x3c;
const COPY_DATA: u32 = 0x40;
const EVENT_WRITE: u32 = 0x46;
const RELEASE_MEM: u32 = 0x49;
const ACQUIRE_MEM: u32 = 0x58;
const SET_SH_REG: u32 = 0x76;
const SET_UCONFIG_REG: u32 = 0x79;

/// The first register that SET_UCONFIG_REG can set.
const UCONFIG_START: u32 = 0xc000;

/// `BIF_BX_PF0_GPU_HDP_FLUSH_REQ` and `_DONE`, by which a packet flushes writes of the host: the same registers
/// in NBIO 4.3.0, 7.4.0 and 7.9.0 and in NBIF 6.3.1 (AMD's `nbio_*_offset.h`, with the base 0xd20 of segment 2).
const HDP_FLUSH: [u32; 2] = [0xe26, 0xe27];

/// Events that wait for kernels or write caches back: CS_PARTIAL_FLUSH, CACHE_FLUSH_AND_INV_EVENT.
const PLAIN_EVENTS: [u32; 2] = [0x07, 0x16];
/// Events after which a packet writes memory: CACHE_FLUSH_TS, CACHE_FLUSH_AND_INV_TS_EVENT, BOTTOM_OF_PIPE_TS, CS_DONE.
const END_EVENTS: [u32; 4] = [0x04, 0x14, 0x28, 0x2f];

/// The queue of a packet.
#[derive(Clone, Copy)]
pub struct PipeContext<'a> {
    /// The GPU.
    pub gpu: &'a dyn Gpu,
    /// The queue's name in the log.
    pub queue: u32,
    /// True once the queue is being destroyed.
    pub cancelled: &'a AtomicBool,
}

/// The state of the pipe that a queue's packets set.
pub struct Pipe {
    pub(super) registers: Registers,
    /// The number of kernels so far.
    pub(super) dispatches: u64,
}

impl Pipe {
    /// The state of a new queue: all registers are 0.
    pub fn new(target: Target) -> Self {
        Self {
            registers: Registers::new(target),
            dispatches: 0,
        }
    }

    /// Processes a packet that has no others inside.
    pub(super) fn process(
        &mut self,
        context: &PipeContext<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Fault> {
        match packet.opcode() {
            SET_SH_REG => self.registers.set(packet),
            DISPATCH_DIRECT => self.dispatch(context, packet),
            RELEASE_MEM => release(context, packet),
            WAIT_REG_MEM => wait(context, packet),
            WRITE_DATA => write(context, packet),
            COPY_DATA => copy(context, packet),
            EVENT_WRITE => {
                let kind = packet.all()[0] & 0x3f;
                match PLAIN_EVENTS.contains(&kind) {
                    true => Ok(()),
                    false => Err(packet.field("EVENT_TYPE", kind)),
                }
            }
            ACQUIRE_MEM => Ok(()),
            SET_UCONFIG_REG => {
                let register = UCONFIG_START + (packet.all()[0] & 0xffff);
                Err(packet.field("register", register))
            }
            _ => Err(packet.unknown()),
        }
    }
}

/// PRED_EXEC: the number of dwords that only some XCCs execute, and whether one of them belongs to the GPU. The model's
/// queue works for all XCCs at once.
pub(super) fn predicate(
    context: &PipeContext<'_>,
    packet: &Packet<'_>,
) -> Result<(u64, bool), Fault> {
    let [control] = packet.body()?;
    packet.allow("control", control, 0xff00_3fff)?;
    let xccs = ComputeUnits::for_target(context.gpu.target()).xccs;
    let own = (1 << xccs) - 1;
    Ok((u64::from(control & 0x3fff), control >> 24 & own != 0))
}

/// RELEASE_MEM: writes a value when everything before it has ended, and raises an event. The model ends each packet
/// before it starts the next, so this is at once.
fn release(context: &PipeContext<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
    let memory = Memory::new(context.gpu.memory());
    let (event, select) = match packet.all() {
        // The last dword is missing in the packets of GFX 8.
        [event, select, _, _, _, _, _] | [event, select, _, _, _, _] => (*event, *select),
        body => return Err(packet.field("number of dwords", body.len() as u32)),
    };
    let kind = event & 0x3f;
    if !END_EVENTS.contains(&kind) {
        return Err(packet.field("EVENT_TYPE", kind));
    }
    // DST_SEL 0 and 1 are the memory and the cache of level 2.
    packet.allow("selection", select, 0xe701_0000)?;
    let (address, value) = (packet.address(2), packet.address(4));
    let word = || memory.word("PM4 RELEASE_MEM", address);
    let long = || memory.long("PM4 RELEASE_MEM", address);
    match select >> 29 {
        0 => {}
        1 => word()?.store(value as u32, Ordering::Release),
        2 => long()?.store(value, Ordering::Release),
        3 => long()?.store(context.gpu.clock(), Ordering::Release),
        other => return Err(packet.field("DATA_SEL", other)),
    }
    match select >> 24 & 7 {
        // 3 only waits for the write.
        0 | 3 => Ok(()),
        1 | 2 => {
            match packet.all().get(6) {
                None | Some(0) => {}
                Some(event) => context.gpu.raise_event(*event),
            }
            Ok(())
        }
        other => Err(packet.field("INT_SEL", other)),
    }
}

/// WAIT_REG_MEM: waits until a memory word meets a condition, or flushes what the host has written.
fn wait(context: &PipeContext<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
    let [control, low, high, reference, mask, _] = packet.body()?;
    packet.allow("control", control, 0xf7)?;
    let (is_memory, operation) = (control >> 4 & 1 == 1, control >> 6 & 3);
    match (is_memory, operation) {
        (true, 0) => {
            let address = packet.address(1) & !3;
            let memory = Memory::new(context.gpu.memory());
            let function = control & 7;
            let comparison = Comparison {
                function,
                mask,
                reference,
            };
            let word = || memory.word("PM4 WAIT_REG_MEM", address);
            let unknown = || packet.field("FUNCTION", function);
            comparison.wait(word, context.cancelled, unknown)
        }
        // The model has no buffer for what the host writes.
        (false, 1) if [low, high] == HDP_FLUSH => Ok(()),
        (false, _) => Err(packet.field("register", low)),
        (true, _) => Err(packet.field("OPERATION", operation)),
    }
}

/// Refuses a destination that is not memory: 1, 2 and 5 reach it in different ways.
fn to_memory(packet: &Packet<'_>, control: u32) -> Result<(), Fault> {
    match control >> 8 & 15 {
        1 | 2 | 5 => Ok(()),
        other => Err(packet.field("DST_SEL", other)),
    }
}

/// WRITE_DATA: writes dwords, to consecutive addresses or all to one.
fn write(context: &PipeContext<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
    let memory = Memory::new(context.gpu.memory());
    let [control, _, _, data @ ..] = packet.all() else {
        return Err(packet.field("number of dwords", packet.all().len() as u32));
    };
    packet.allow("control", *control, 0xc611_0f00)?;
    to_memory(packet, *control)?;
    let stride = if control >> 16 & 1 == 1 { 0 } else { 4 };
    for (at, dword) in data.iter().enumerate() {
        let address = packet.address(1).wrapping_add(stride * at as u64);
        let word = memory.word("PM4 WRITE_DATA", address)?;
        word.store(*dword, Ordering::Release);
    }
    Ok(())
}

/// COPY_DATA: copies one or two dwords to memory.
fn copy(context: &PipeContext<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
    let memory = Memory::new(context.gpu.memory());
    let [control, low, high, _, _] = packet.body()?;
    packet.allow("control", control, 0xc611_6f0f)?;
    to_memory(packet, control)?;
    let is_long = control >> 16 & 1 == 1;
    let (source, target) = (packet.address(1), packet.address(3));
    let value = match control & 15 {
        // Memory, by two ways.
        1 | 2 if is_long => memory
            .long("PM4 COPY_DATA", source)?
            .load(Ordering::Acquire),
        1 | 2 => memory
            .word("PM4 COPY_DATA", source)?
            .load(Ordering::Acquire)
            .into(),
        // The packet itself.
        5 => u64::from(low) | u64::from(high) << 32,
        9 => context.gpu.clock(),
        other => return Err(packet.field("SRC_SEL", other)),
    };
    match is_long {
        true => memory
            .long("PM4 COPY_DATA", target)?
            .store(value, Ordering::Release),
        false => memory
            .word("PM4 COPY_DATA", target)?
            .store(value as u32, Ordering::Release),
    }
    Ok(())
}
