//! Scalar arithmetic with operands that are resolved when the instruction is decoded.

use super::super::value::Kind;
use super::ScalarOperation;
use crate::isa::{Instruction, Operand};
use crate::wave::{Wave, constant};

/// A scalar instruction that is ready to run.
#[derive(Clone, Copy)]
pub(crate) struct ScalarStep {
    run: fn(u64, u64, bool) -> (u64, bool),
    sources: [Source; 2],
    result: Operand,
    kind: Kind,
    writes_scc: bool,
}

#[derive(Clone, Copy)]
enum Source {
    Word(Operand),
    Pair(Operand),
    Constant(u64),
}

impl ScalarStep {
    /// Prepares an instruction; `None` if it has another form.
    pub(crate) fn new(operation: &ScalarOperation, instruction: &Instruction) -> Option<Self> {
        let ScalarOperation::Compute {
            run,
            sources,
            result,
            writes_scc,
        } = *operation
        else {
            return None;
        };
        let source = |place: usize| Source::new(instruction, place, sources[place]);
        Some(Self {
            run,
            sources: [source(0)?, source(1)?],
            result: instruction.dst,
            kind: result,
            writes_scc,
        })
    }

    #[inline(always)]
    pub(crate) fn execute(&self, wave: &mut Wave) {
        let [a, b] = self.sources.map(|source| source.value(wave));
        let (value, scc) = (self.run)(a, b, wave.scc);
        wave.set_scalar(self.result, self.kind, value);
        if self.writes_scc {
            wave.scc = scc;
        }
    }
}

impl Source {
    fn new(instruction: &Instruction, place: usize, kind: Kind) -> Option<Self> {
        let operand = instruction.src[place];
        if kind == Kind::None {
            return Some(Self::Constant(0));
        }
        if operand.scalar_index().is_some() {
            return Some(match kind.is_long() {
                true => Self::Pair(operand),
                false => Self::Word(operand),
            });
        }
        constant(operand, kind, instruction.literal).map(Self::Constant)
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
