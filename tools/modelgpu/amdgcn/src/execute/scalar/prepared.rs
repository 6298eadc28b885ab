//! Scalar arithmetic with operands that are resolved when the instruction is decoded.

use modelgpu_isa::{Instruction, Operand};

use super::super::value::Kind;
use super::operation::{ExecResult, ScalarOperation};
use crate::wave::{Wave, constant};

/// A scalar instruction that is ready to run.
#[derive(Clone, Copy)]
pub(crate) enum ScalarStep {
    Compute {
        run: fn(u64, u64, bool) -> (u64, bool),
        sources: [ScalarSource; 2],
        result: Operand,
        kind: Kind,
        writes_scc: bool,
    },
    /// Combines EXEC with a source.
    UpdateExec {
        run: fn(u64, u64) -> u64,
        source: ScalarSource,
        result: Operand,
        kind: Kind,
        keeps_old: bool,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum ScalarSource {
    Word(Operand),
    Pair(Operand),
    Constant(u64),
}

impl ScalarStep {
    /// Prepares an instruction; `None` if it has another form.
    pub(crate) fn new(operation: &ScalarOperation, instruction: &Instruction) -> Option<Self> {
        let source = |place: usize, kind| ScalarSource::new(instruction, place, kind);
        match *operation {
            ScalarOperation::Compute {
                run,
                sources,
                result,
                writes_scc,
            } => Some(Self::Compute {
                run,
                sources: [source(0, sources[0])?, source(1, sources[1])?],
                result: instruction.dst,
                kind: result,
                writes_scc,
            }),
            ScalarOperation::UpdateExec { run, result, kind } => Some(Self::UpdateExec {
                run,
                source: source(0, kind)?,
                result: instruction.dst,
                kind,
                keeps_old: matches!(result, ExecResult::Old),
            }),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn execute(&self, wave: &mut Wave) {
        match *self {
            Self::Compute {
                run,
                sources,
                result,
                kind,
                writes_scc,
            } => {
                let [a, b] = sources;
                let (value, scc) = run(a.value(wave), b.value(wave), wave.scc);
                wave.set_scalar(result, kind, value);
                if writes_scc {
                    wave.scc = scc;
                }
            }
            Self::UpdateExec {
                run,
                source,
                result,
                kind,
                keeps_old,
            } => {
                let old = ScalarSource::register(Operand::EXEC, kind).value(wave);
                let new = run(source.value(wave), old) & kind.all_bits();
                wave.set_scalar(result, kind, if keeps_old { old } else { new });
                wave.set_scalar(Operand::EXEC, kind, new);
                wave.scc = new != 0;
            }
        }
    }
}

impl ScalarSource {
    fn new(instruction: &Instruction, place: usize, kind: Kind) -> Option<Self> {
        let operand = instruction.src[place];
        if kind == Kind::None {
            return Some(Self::Constant(0));
        }
        if operand.scalar_index().is_some() {
            return Some(Self::register(operand, kind));
        }
        constant(operand, kind, instruction.literal).map(Self::Constant)
    }

    #[inline(always)]
    fn register(operand: Operand, kind: Kind) -> Self {
        match kind.is_long() {
            true => Self::Pair(operand),
            false => Self::Word(operand),
        }
    }

    #[inline(always)]
    fn value(self, wave: &Wave) -> u64 {
        match self {
            Self::Word(operand) => wave.word(operand).into(),
            Self::Pair(operand) => wave.pair(operand),
            Self::Constant(value) => value,
        }
    }
}
