//! Dual instructions of RDNA: two vector instructions that read their sources before either writes its
//! result.

use modelgpu_isa::{Instruction, Target};

use super::{Operation, Simd, Step, Surroundings, execute, resolve};
use crate::error::Fault;
use crate::wave::Wave;

/// Both parts of a dual instruction.
pub(crate) struct Dual {
    first: Part,
    second: Part,
    /// The result register of the first part, if the second one reads it.
    shared: Option<usize>,
}

struct Part {
    instruction: Instruction,
    operation: Option<&'static Operation>,
    step: Step,
}

impl Dual {
    pub(crate) fn new(first: Instruction, second: Instruction, target: Target, simd: Simd) -> Self {
        let reads_result = second.src.contains(&first.dst);
        Self {
            shared: first.dst.vector_index().filter(|_| reads_result),
            first: Part::new(first, target, simd),
            second: Part::new(second, target, simd),
        }
    }

    pub(crate) fn execute(
        &self,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        let Some(register) = self.shared else {
            self.first.execute(wave, surroundings)?;
            return self.second.execute(wave, surroundings);
        };
        // The second part sees the register as it was.
        let old = wave.vectors[register];
        self.first.execute(wave, surroundings)?;
        let new = std::mem::replace(&mut wave.vectors[register], old);
        self.second.execute(wave, surroundings)?;
        wave.vectors[register] = new;
        Ok(())
    }
}

impl Part {
    fn new(instruction: Instruction, target: Target, simd: Simd) -> Self {
        let operation = resolve(instruction.mnemonic, target);
        Self {
            step: operation.map_or(Step::Other, |operation| {
                Step::new(operation, &instruction, simd)
            }),
            operation,
            instruction,
        }
    }

    fn execute(&self, wave: &mut Wave, surroundings: &mut Surroundings<'_>) -> Result<(), Fault> {
        if self.step.execute(wave) {
            return Ok(());
        }
        let operation = self.operation.ok_or(Fault::Unmodelled {
            mnemonic: self.instruction.mnemonic,
            detail: None,
        })?;
        execute(operation, &self.instruction, wave, surroundings)
    }
}
