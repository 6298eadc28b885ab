//! Scalar arithmetic, logic and comparisons: SOP1, SOP2, SOPC, SOPK.

mod arithmetic;
mod bits;
mod compare;
mod float;
mod logic;
mod prepared;

use super::value::Kind;
use super::{Table, scalar_source, unmodelled};
use crate::error::Fault;
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;

pub(crate) use prepared::ScalarStep;

#[derive(Clone, Copy)]
pub(crate) enum ScalarOperation {
    Compute {
        /// Maps the sources and SCC to the result and the new SCC.
        run: fn(u64, u64, bool) -> (u64, bool),
        sources: [Kind; 2],
        result: Kind,
        writes_scc: bool,
    },
    /// Writes the result only if SCC is set.
    ConditionalMove(Kind),
    /// Moves between registers, of which M0 is added to the source's or the result's number.
    MoveRelative { kind: Kind, source: bool },
    /// Sets or clears one bit of the result registers.
    SetBit { set: bool, result: Kind },
    /// Combines EXEC with the source and writes EXEC; the result is the old or the new EXEC.
    UpdateExec {
        run: fn(u64, u64) -> u64,
        result: ExecResult,
        kind: Kind,
    },
    /// Floating-point arithmetic; without a result, SCC tells whether the value is 1.
    Float {
        run: fn([u64; 3]) -> u64,
        sources: [Kind; 3],
        result: Kind,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum ExecResult {
    Old,
    New,
}

/// Makes a scalar operation from a closure. `Keep` does not change SCC. `Nonzero` sets it if the
/// result is not zero. `Flag` takes it from the closure. `Test` has no other result. `Select` reads
/// it.
macro_rules! scalar {
    (Keep, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, None, $R, false, |a, _b, scc| {
            let $a = <$A as Value>::from_bits(a);
            let result: $R = $body;
            (result.to_bits(), scc)
        })
    };
    (Keep, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, false, |a, b, scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), scc)
        })
    };
    (Nonzero, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, None, $R, true, |a, _b, _scc| {
            let $a = <$A as Value>::from_bits(a);
            let result: $R = $body;
            (result.to_bits(), result != 0)
        })
    };
    (Nonzero, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, true, |a, b, _scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), result != 0)
        })
    };
    (Flag, |$a:ident: $A:ty, $b:ident: $B:ty, $scc:ident: bool| -> ($R:ty, bool) $body:block) => {
        scalar!(@ $A, $B, $R, true, |a, b, $scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let (result, flag): ($R, bool) = $body;
            (result.to_bits(), flag)
        })
    };
    (Select, |$a:ident: $A:ty, $b:ident: $B:ty, $scc:ident: bool| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, false, |a, b, $scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), $scc)
        })
    };
    (Test, |$a:ident: $A:ty, $b:ident: $B:ty| -> bool $body:block) => {
        Operation::Scalar(ScalarOperation::Compute {
            run: |a, b, _scc| {
                let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
                (0, $body)
            },
            sources: [<$A as Value>::KIND, <$B as Value>::KIND],
            result: Kind::None,
            writes_scc: true,
        })
    };
    (@ $A:ty, None, $R:ty, $writes:literal, $run:expr) => {
        scalar!(@@ <$A as Value>::KIND, Kind::None, $R, $writes, $run)
    };
    (@ $A:ty, $B:ty, $R:ty, $writes:literal, $run:expr) => {
        scalar!(@@ <$A as Value>::KIND, <$B as Value>::KIND, $R, $writes, $run)
    };
    (@@ $a:expr, $b:expr, $R:ty, $writes:literal, $run:expr) => {
        Operation::Scalar(ScalarOperation::Compute {
            run: $run,
            sources: [$a, $b],
            result: <$R as Value>::KIND,
            writes_scc: $writes,
        })
    };
}

use scalar;

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
