//! The semantics of instructions, one module per family. Each module has a table from mnemonics to
//! operations. Together the tables list the modelled instructions. `tests/instructions` fails if
//! no test executes an entry.

mod control;
mod dual;
mod float;
mod grid;
mod lane;
mod memory;
mod names;
mod refused;
mod scalar;
mod scalar_memory;
mod simd;
pub(crate) mod value;
mod vector;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::error::{Access, Fault};
use crate::isa::Instruction;
use crate::memory::View;
use crate::target::Target;
use crate::wave::Wave;

pub(crate) use dual::Dual;
pub(crate) use grid::{GridBarriers, GridWait};
pub(crate) use memory::{LdsWatch, PRIVATE_SEGMENT_BUFFER, Sighting, Span};
pub(crate) use names::canonical;
pub use simd::Simd;

/// The semantics of a mnemonic.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    Control(control::Control),
    Grid(grid::GridOperation),
    Lane(lane::LaneOperation),
    Memory(memory::MemoryOperation),
    Scalar(scalar::ScalarOperation),
    ScalarMemory(scalar_memory::ScalarMemoryOperation),
    Vector(vector::VectorOperation),
    /// Ends the kernel with this reason.
    Refused(&'static str),
}

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

/// The way in which a wave waits by an instruction, if it executes it again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    /// It lets others go first.
    Sleep,
    /// It looks at memory that other workgroups or the host may write.
    Poll,
    /// It looks at the clock.
    Clock,
}

type Table = &'static [(&'static str, Operation)];

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

/// The state that a wave shares with other waves while it executes.
pub(crate) struct Surroundings<'a> {
    pub memory: View<'a>,
    /// A buffer for the addresses of a wave.
    pub span: Box<Span>,
    /// The workgroup's local data share.
    pub lds: Vec<u8>,
    /// Looks for mistakes with `lds`, if the user asks for it.
    pub watch: Option<Box<LdsWatch>>,
    /// The interpreter calls this when an access goes beyond `lds`.
    pub beyond_lds: &'a dyn Fn(LdsAccess),
    /// The interpreter calls this with M0 when a wave interrupts the host.
    pub interrupt: &'a dyn Fn(u32),
    /// The GPU's clock, in ticks of 10 ns.
    pub clock: &'a dyn Fn() -> u64,
    /// The barriers of the queue's cooperative launches.
    pub barriers: &'a GridBarriers,
    /// The processor.
    pub target: Target,
    /// Instructions executed so far in this dispatch.
    pub instructions: u64,
}

/// An access that goes beyond LDS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LdsAccess {
    /// Address of the instruction.
    pub pc: u64,
    pub mnemonic: &'static str,
    pub access: Access,
    pub size: u64,
    pub address: u64,
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

/// The error for an operand or modifier that is not modelled.
fn unmodelled(instruction: &Instruction, detail: &'static str) -> Fault {
    Fault::Unmodelled {
        mnemonic: instruction.mnemonic,
        detail: Some(detail),
    }
}

/// A scalar source operand's value.
fn scalar_source(
    instruction: &Instruction,
    place: usize,
    kind: value::Kind,
    wave: &Wave,
) -> Result<u64, Fault> {
    wave.scalar(instruction.src[place], kind, instruction.literal)
        .ok_or_else(|| unmodelled(instruction, "this scalar operand"))
}
