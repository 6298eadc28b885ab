//! LDS accesses of other kinds: exchanges of two numbers, masks and limits, addresses from the lane's
//! number, and counters of lanes.

use modelgpu_isa::{Instruction, Operand};

use super::super::{Operation, Surroundings};
use super::lds::words_at;
use super::operation::{Action, Local, MemoryOperation, Segment};
use super::segment::two_offsets;
use crate::error::Access;
use crate::lanes::active;
use crate::wave::Wave;

const fn local(local: Local) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Lds,
        action: Action::Local(local),
    })
}

const fn masked(bytes: u8, returns: bool) -> Operation {
    local(Local::Masked { bytes, returns })
}

const fn float_compare(bytes: u8, returns: bool) -> Operation {
    local(Local::FloatCompareSwap { bytes, returns })
}

const fn exchange_two(bytes: u8, stride: u8) -> Operation {
    local(Local::ExchangeTwo { bytes, stride })
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("ds_mskor_b32", masked(4, false)),
    ("ds_mskor_rtn_b32", masked(4, true)),
    ("ds_mskor_b64", masked(8, false)),
    ("ds_mskor_rtn_b64", masked(8, true)),
    ("ds_cmpst_f32", float_compare(4, false)),
    ("ds_cmpst_rtn_f32", float_compare(4, true)),
    ("ds_cmpst_f64", float_compare(8, false)),
    ("ds_cmpst_rtn_f64", float_compare(8, true)),
    ("ds_wrap_rtn_b32", local(Local::Wrap)),
    ("ds_wrxchg2_rtn_b32", exchange_two(4, 1)),
    ("ds_wrxchg2_rtn_b64", exchange_two(8, 1)),
    ("ds_wrxchg2st64_rtn_b32", exchange_two(4, 64)),
    ("ds_wrxchg2st64_rtn_b64", exchange_two(8, 64)),
    ("ds_condxchg32_rtn_b64", local(Local::ExchangeMarked)),
    ("ds_read_addtid_b32", local(Local::ReadByLane)),
    ("ds_write_addtid_b32", local(Local::WriteByLane)),
    ("ds_append", local(Local::Append)),
    ("ds_consume", local(Local::Consume)),
];

impl Local {
    pub(super) fn execute(
        self,
        lanes: u64,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) {
        let [address, first, second] = instruction.src;
        let offset = instruction.immediate as u32;
        if let Self::Append | Self::Consume = self {
            // M0 may be negative: LLVM folds into the offset what makes an address of it.
            let addresses = surroundings.target.max_lds().next_power_of_two();
            let at = wave.m0().wrapping_add(offset) & (addresses - 1);
            let count = lanes.count_ones();
            let mut old = 0;
            change(instruction, wave, surroundings, at, 4, |value| {
                old = value as u32;
                u64::from(match self {
                    Self::Append => old.wrapping_add(count),
                    _ => old.wrapping_sub(count),
                })
            });
            for lane in active(lanes) {
                wave.set_lane_at(instruction.dst, 0, lane, old);
            }
            return;
        }
        let from_m0 = (wave.m0() & 0xffff).wrapping_add(offset);
        for lane in active(lanes) {
            let read = |register: Operand, bytes: u8| match bytes {
                4 => u64::from(wave.lane(register, lane)),
                _ => wave.lane_pair(register, lane),
            };
            let base = wave.lane(address, lane);
            let at = base.wrapping_add(offset);
            match self {
                Self::Masked { bytes, returns } => {
                    let (mask, bits) = (read(first, bytes), read(second, bytes));
                    let old = change(instruction, wave, surroundings, at, bytes, |old| {
                        old & !mask | bits
                    });
                    if returns {
                        set(instruction, wave, lane, 0, bytes, old);
                    }
                }
                Self::FloatCompareSwap { bytes, returns } => {
                    let (compared, new) = (read(first, bytes), read(second, bytes));
                    let old = change(instruction, wave, surroundings, at, bytes, |old| {
                        if number(old, bytes) == number(compared, bytes) {
                            new
                        } else {
                            old
                        }
                    });
                    if returns {
                        set(instruction, wave, lane, 0, bytes, old);
                    }
                }
                Self::Wrap => {
                    let (limit, more) = (read(first, 4), read(second, 4));
                    let old = change(instruction, wave, surroundings, at, 4, |old| {
                        if old >= limit {
                            old - limit
                        } else {
                            old + more
                        }
                    });
                    set(instruction, wave, lane, 0, 4, old);
                }
                Self::ExchangeTwo { bytes, stride } => {
                    let offsets = two_offsets(instruction, bytes, stride);
                    let new = [read(first, bytes), read(second, bytes)];
                    for (place, new) in new.into_iter().enumerate() {
                        let at = base.wrapping_add(offsets[place]);
                        let old = change(instruction, wave, surroundings, at, bytes, |_| new);
                        let register = place * usize::from(bytes / 4);
                        set(instruction, wave, lane, register, bytes, old);
                    }
                }
                Self::ExchangeMarked => {
                    const MARK: u64 = 1 << 31;
                    let new = read(first, 8);
                    for place in 0..2 {
                        let new = new >> (32 * place) & 0xffff_ffff;
                        let at = (at & !7) + 4 * place;
                        let old = change(instruction, wave, surroundings, at, 4, |old| {
                            if new & MARK != 0 { new & !MARK } else { old }
                        });
                        set(instruction, wave, lane, place as usize, 4, old);
                    }
                }
                Self::ReadByLane => {
                    let at = from_m0.wrapping_add(4 * lane as u32);
                    let place = words_at(instruction, wave, surroundings, Access::Read, at, 4);
                    let value = place.map_or(0, |bytes| from_bytes(bytes));
                    set(instruction, wave, lane, 0, 4, value);
                }
                Self::WriteByLane => {
                    let at = from_m0.wrapping_add(4 * lane as u32);
                    let value = wave.lane(first, lane);
                    let place = words_at(instruction, wave, surroundings, Access::Write, at, 4);
                    if let Some(bytes) = place {
                        bytes.copy_from_slice(&value.to_le_bytes());
                    }
                }
                Self::Append | Self::Consume => {}
            }
        }
    }
}

/// Replaces a number of 4 or 8 bytes and returns the old one.
fn change(
    instruction: &Instruction,
    wave: &Wave,
    surroundings: &mut Surroundings<'_>,
    address: u32,
    bytes: u8,
    new: impl FnOnce(u64) -> u64,
) -> u64 {
    let size = bytes.into();
    match words_at(
        instruction,
        wave,
        surroundings,
        Access::Atomic,
        address,
        size,
    ) {
        None => 0,
        Some(place) => {
            let old = from_bytes(place);
            place.copy_from_slice(&new(old).to_le_bytes()[..size]);
            old
        }
    }
}

fn from_bytes(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn set(
    instruction: &Instruction,
    wave: &mut Wave,
    lane: usize,
    register: usize,
    bytes: u8,
    value: u64,
) {
    wave.set_lane_at(instruction.dst, register, lane, value as u32);
    if bytes == 8 {
        wave.set_lane_at(instruction.dst, register + 1, lane, (value >> 32) as u32);
    }
}

fn number(bits: u64, bytes: u8) -> f64 {
    match bytes {
        4 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}
