//! Scalar arithmetic, logic and comparisons: SOP1, SOP2, SOPC, SOPK.

mod arithmetic;
mod bits;
mod compare;
mod float;
mod logic;
mod operation;
mod prepared;

use modelgpu_isa::{Instruction, Operand};

use super::value::Kind;
use super::{Table, scalar_source, unmodelled};
use crate::error::Fault;
use crate::wave::Wave;

pub(crate) use operation::{ExecResult, ScalarOperation};
pub(crate) use prepared::ScalarStep;

pub(super) const TABLES: [Table; 9] = [
    arithmetic::OPERATIONS,
    bits::OPERATIONS,
    compare::OPERATIONS,
    float::COMPARISONS_OF_HALVES,
    float::COMPARISONS_OF_SINGLES,
    float::OPERATIONS,
    logic::OPERATIONS,
    logic::UPDATES_64,
    logic::UPDATES_32,
];

impl ScalarOperation {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        match self {
            Self::Compute {
                run,
                sources,
                result,
                writes_scc,
            } => {
                let a = scalar_source(instruction, 0, sources[0], wave)?;
                let b = match sources[1] {
                    Kind::None => 0,
                    kind => scalar_source(instruction, 1, kind, wave)?,
                };
                let (value, scc) = run(a, b, wave.scc);
                wave.set_scalar(instruction.dst, result, value);
                if writes_scc {
                    wave.scc = scc;
                }
            }
            Self::ConditionalMove(kind) => {
                let value = scalar_source(instruction, 0, kind, wave)?;
                if wave.scc {
                    wave.set_scalar(instruction.dst, kind, value);
                }
            }
            Self::MoveRelative { kind, source } => {
                let moved = |operand: Operand| Operand(operand.0.wrapping_add(wave.m0() as u16));
                let mut instruction = *instruction;
                if source {
                    instruction.src[0] = moved(instruction.src[0]);
                } else {
                    instruction.dst = moved(instruction.dst);
                }
                let value = scalar_source(&instruction, 0, kind, wave)?;
                wave.set_scalar(instruction.dst, kind, value);
            }
            Self::SetBit { set, result } => {
                let place = scalar_source(instruction, 0, Kind::B32, wave)?;
                if result == Kind::B64 {
                    let place = place & 63;
                    let others = wave.pair(instruction.dst) & !(1 << place);
                    wave.set_pair(instruction.dst, others | u64::from(set) << place);
                } else {
                    let place = place & 31;
                    let others = wave.word(instruction.dst) & !(1 << place);
                    wave.set_word(instruction.dst, others | u32::from(set) << place);
                }
            }
            Self::Float {
                run,
                sources,
                result,
            } => {
                if result.is_float() && !wave.mode.rounds_to_nearest() {
                    return Err(unmodelled(instruction, "this rounding mode"));
                }
                let mut values = [0; 3];
                for (place, kind) in sources.into_iter().enumerate() {
                    if kind == Kind::None {
                        continue;
                    }
                    let value = scalar_source(instruction, place, kind, wave)?;
                    values[place] = if wave.mode.flushes_sources(kind) {
                        kind.flushed(value)
                    } else {
                        value
                    };
                }
                let value = run(values);
                match result {
                    Kind::None => wave.scc = value != 0,
                    _ if wave.mode.flushes_results(result) => {
                        wave.set_scalar(instruction.dst, result, result.flushed(value));
                    }
                    _ => wave.set_scalar(instruction.dst, result, value),
                }
            }
            Self::UpdateExec { run, result, kind } => {
                let old = wave.scalar(Operand::EXEC, kind, 0).unwrap_or_default();
                let new = run(scalar_source(instruction, 0, kind, wave)?, old) & kind.all_bits();
                let value = match result {
                    ExecResult::Old => old,
                    ExecResult::New => new,
                };
                wave.set_scalar(instruction.dst, kind, value);
                wave.set_scalar(Operand::EXEC, kind, new);
                wave.scc = new != 0;
            }
        }
        Ok(())
    }
}
