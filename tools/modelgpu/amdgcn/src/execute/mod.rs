//! The semantics of instructions, one module per family. Each module has a table from mnemonics to
//! operations. Together the tables list the modelled instructions. `testing/tests/instructions`
//! fails if no test executes an entry.

mod control;
mod dual;
mod float;
mod grid;
mod lane;
mod memory;
mod names;
mod operands;
mod operation;
mod pull;
mod refused;
mod scalar;
mod scalar_memory;
mod simd;
mod surroundings;
pub(crate) mod value;
mod vector;

use std::collections::HashMap;
use std::sync::OnceLock;

use modelgpu_isa::{Instruction, Target};

use crate::error::Fault;
use crate::wave::Wave;

pub(crate) use dual::Dual;
pub(crate) use memory::{LdsWatch, PRIVATE_SEGMENT_BUFFER, Sighting};
pub(crate) use names::canonical;
pub(crate) use operands::{scalar_source, unmodelled};
pub(crate) use operation::{Operation, Table, Wait};
pub use simd::Simd;
pub(crate) use simd::{Fitted, Leveled};
pub(crate) use surroundings::{LdsAccess, Surroundings};

impl Operation {
    /// The way in which a wave may wait by the instruction.
    pub(crate) fn wait(&self, instruction: &Instruction) -> Wait {
        match (self, instruction.mnemonic) {
            (_, "s_sleep" | "s_sleep_var" | "ds_gws_barrier") => Wait::Sleep,
            (Self::ScalarMemory(memory), _) if memory.reads_clock() => Wait::Clock,
            (Self::Control(control), _) if control.reads_clock(instruction) => Wait::Clock,
            (Self::Memory(memory), _) if instruction.coherent && memory.looks(instruction) => {
                Wait::Poll
            }
            // RDNA 4 invalidates a cache between two looks, by an instruction that has a scope, too.
            _ => Wait::No,
        }
    }
}

/// All families' tables.
fn tables() -> impl Iterator<Item = Table> {
    [
        control::OPERATIONS,
        grid::OPERATIONS,
        lane::OPERATIONS,
        refused::OPERATIONS,
    ]
    .into_iter()
    .chain(scalar::TABLES)
    .chain(scalar_memory::TABLES)
    .chain(memory::tables())
    .chain(vector::tables())
}

/// The modelled mnemonics, in no particular order.
pub(crate) fn modelled() -> impl Iterator<Item = &'static str> {
    tables()
        .flatten()
        .filter(|(_, operation)| !matches!(operation, Operation::Refused(_)))
        .map(|(mnemonic, _)| *mnemonic)
}

/// The semantics of a mnemonic on a target; `None` if no table has it.
pub(crate) fn resolve(mnemonic: &str, target: Target) -> Option<&'static Operation> {
    if let Some(refusal) = refused::on_target(mnemonic, target) {
        return Some(refusal);
    }
    if let Some(operation) = vector::on_target(mnemonic, target) {
        return Some(operation);
    }
    operation(&canonical(mnemonic))
}

/// The semantics of a name in the tables.
fn operation(name: &str) -> Option<&'static Operation> {
    static OPERATIONS: OnceLock<HashMap<&str, &Operation>> = OnceLock::new();
    OPERATIONS
        .get_or_init(|| {
            tables()
                .flatten()
                .map(|(mnemonic, operation)| (*mnemonic, operation))
                .collect()
        })
        .get(name)
        .copied()
}

/// An instruction that is ready to run: the frequent forms have resolved operands.
pub(crate) enum Step {
    Vector(vector::VectorStep),
    Scalar(scalar::ScalarStep),
    Control(control::ControlStep),
    /// [`execute`] resolves the operands each time.
    Other,
}

impl Step {
    pub(crate) fn new(operation: &Operation, instruction: &Instruction, simd: Simd) -> Self {
        let step = match operation {
            Operation::Vector(vector) => {
                vector::VectorStep::new(vector, instruction, simd).map(Self::Vector)
            }
            Operation::Lane(lane) => lane.step(instruction, simd).map(Self::Vector),
            Operation::Control(control) => control.step(instruction).map(Self::Control),
            Operation::Scalar(scalar) => {
                scalar::ScalarStep::new(scalar, instruction).map(Self::Scalar)
            }
            _ => None,
        };
        step.unwrap_or(Self::Other)
    }

    /// Executes the instruction. Returns `false`, without an effect, if [`execute`] must do it.
    #[inline(always)]
    pub(crate) fn execute(&self, wave: &mut Wave) -> bool {
        match self {
            Self::Vector(step) => step.execute(wave),
            Self::Scalar(step) => {
                step.execute(wave);
                true
            }
            Self::Control(step) => {
                step.execute(wave);
                true
            }
            Self::Other => false,
        }
    }
}

/// Executes one instruction. The program counter already points behind it.
pub(crate) fn execute(
    operation: &Operation,
    instruction: &Instruction,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Fault> {
    match *operation {
        Operation::Control(control) => control.execute(instruction, wave, surroundings),
        Operation::Grid(grid) => grid.execute(instruction, wave, surroundings),
        Operation::Lane(lane) => lane.execute(instruction, wave),
        Operation::Memory(memory) => memory.execute(instruction, wave, surroundings),
        Operation::Scalar(scalar) => scalar.execute(instruction, wave),
        Operation::ScalarMemory(memory) => memory.execute(instruction, wave, surroundings),
        Operation::Vector(vector) => vector.execute(instruction, wave),
        Operation::Refused(reason) => Err(Fault::Refused {
            mnemonic: instruction.mnemonic,
            reason,
        }),
    }
}
