//! Instructions that move values between lanes and scalar registers, or count lanes. Data-parallel
//! primitives are a modifier of vector instructions, in `vector/dpp.rs`. The LDS unit's
//! permutations are in `memory/lds.rs`.

use modelgpu_isa::Instruction;

use super::operation::LaneOperation;
use super::value::Kind;
use super::vector::VectorStep;
use super::{Operation, Simd, scalar_source, unmodelled};
use crate::error::Fault;
use crate::lanes::{LANES, WaveSize, Words, active};
use crate::wave::Wave;

const fn lane(operation: LaneOperation) -> Operation {
    Operation::Lane(operation)
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("v_readfirstlane_b32", lane(LaneOperation::ReadFirst)),
    ("v_readlane_b32", lane(LaneOperation::Read)),
    ("v_writelane_b32", lane(LaneOperation::Write)),
    (
        "v_permlane16_b32",
        lane(LaneOperation::Rows { crosses: false }),
    ),
    (
        "v_permlanex16_b32",
        lane(LaneOperation::Rows { crosses: true }),
    ),
    (
        "v_permlane16_var_b32",
        lane(LaneOperation::RowsByLane { crosses: false }),
    ),
    (
        "v_permlanex16_var_b32",
        lane(LaneOperation::RowsByLane { crosses: true }),
    ),
    ("v_permlane64_b32", lane(LaneOperation::Halves)),
    (
        "v_mbcnt_lo_u32_b32",
        lane(LaneOperation::CountBelow { high: false }),
    ),
    (
        "v_mbcnt_hi_u32_b32",
        lane(LaneOperation::CountBelow { high: true }),
    ),
];

impl LaneOperation {
    /// The instruction with resolved operands; `None` if its form has none.
    pub(super) fn step(self, instruction: &Instruction, simd: Simd) -> Option<VectorStep> {
        match self {
            Self::CountBelow { high } => VectorStep::count_below(high, instruction, simd),
            _ => None,
        }
    }

    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        if instruction.sdwa.is_some() || instruction.dpp.is_some() {
            return Err(unmodelled(instruction, "SDWA or DPP"));
        }
        match self {
            Self::ReadFirst => {
                // If no lane is active, hardware reads lane 0.
                let lane = wave.exec().trailing_zeros() as usize % LANES;
                wave.set_word(instruction.dst, vector_source(instruction, 0, lane, wave)?);
            }
            Self::Read => {
                let lane = selected_lane(instruction, wave)?;
                wave.set_word(instruction.dst, vector_source(instruction, 0, lane, wave)?);
            }
            Self::Write => {
                let lane = selected_lane(instruction, wave)?;
                let value = scalar_source(instruction, 0, Kind::B32, wave)?;
                wave.set_lane_at(instruction.dst, 0, lane, value as u32);
            }
            Self::Rows { crosses } => {
                let numbers =
                    [1, 2].map(|place| scalar_source(instruction, place, Kind::B32, wave));
                let [low, high] = numbers;
                let numbers = low? & 0xffff_ffff | high? << 32;
                let places: Words =
                    std::array::from_fn(|lane| (numbers >> (4 * (lane & 15))) as u32);
                permute_rows(instruction, wave, crosses, &places);
            }
            Self::RowsByLane { crosses } => {
                let places: Words = std::array::from_fn(|l| wave.lane(instruction.src[1], l));
                permute_rows(instruction, wave, crosses, &places);
            }
            Self::Halves => {
                // A wave of 32 has no other half: nothing happens. EXEC counts for the result alone.
                if wave.size == WaveSize::Wave64 {
                    let exec = wave.exec();
                    let values: Words = std::array::from_fn(|l| wave.lane(instruction.src[0], l));
                    for lane in active(exec) {
                        wave.set_lane_at(instruction.dst, 0, lane, values[lane ^ 32]);
                    }
                }
            }
            Self::CountBelow { high } => {
                for lane in 0..LANES {
                    if wave.exec() >> lane & 1 == 0 {
                        continue;
                    }
                    let below = (1u64 << lane) - 1;
                    let below = if high { below >> 32 } else { below } as u32;
                    let mask = vector_source(instruction, 0, lane, wave)?;
                    let addend = vector_source(instruction, 1, lane, wave)?;
                    let count = (mask & below).count_ones();
                    wave.set_lane_at(instruction.dst, 0, lane, addend.wrapping_add(count));
                }
            }
        }
        Ok(())
    }
}

/// Each lane reads the first source of the lane with a place, of which four bits count, in its row of 16,
/// or in the other row of two.
fn permute_rows(instruction: &Instruction, wave: &mut Wave, crosses: bool, places: &Words) {
    // The bits of op_sel: inactive lanes are sources, and a lane without a source reads 0.
    let fetches_inactive = instruction.modifiers.op_sel & 1 == 1;
    let bound_control = instruction.modifiers.op_sel & 2 == 2;
    let exec = wave.exec();
    let values: Words = std::array::from_fn(|l| wave.lane(instruction.src[0], l));
    for lane in active(exec) {
        let row = if crosses { lane & !15 ^ 16 } else { lane & !15 };
        let from = row + (places[lane] & 15) as usize;
        if fetches_inactive || exec >> from & 1 == 1 {
            wave.set_lane_at(instruction.dst, 0, lane, values[from]);
        } else if bound_control {
            wave.set_lane_at(instruction.dst, 0, lane, 0);
        }
    }
}

/// The lane number in the second source, which uses as many bits as the wave needs.
fn selected_lane(instruction: &Instruction, wave: &Wave) -> Result<usize, Fault> {
    let number = scalar_source(instruction, 1, Kind::B32, wave)? as usize;
    Ok(wave.lane_number(number))
}

/// A 32-bit source in one lane: a vector register or a scalar operand.
fn vector_source(
    instruction: &Instruction,
    place: usize,
    lane: usize,
    wave: &Wave,
) -> Result<u32, Fault> {
    let operand = instruction.src[place];
    if operand.vector_index().is_some() {
        return Ok(wave.lane(operand, lane));
    }
    Ok(scalar_source(instruction, place, Kind::B32, wave)? as u32)
}
