//! Vector arithmetic. An operation computes all 64 lanes at once from gathered sources. EXEC and
//! the modifiers decide which lanes keep the result: see `gather.rs` and `scatter.rs`.

mod compare;
mod convert;
mod divide;
mod dot;
mod dpp;
mod eight;
mod gather;
mod half;
mod integer;
mod macros;
mod matrix;
mod media;
mod mixed;
mod operands;
mod operation;
mod packed;
mod prepared;
mod product;
mod real;
mod rounding;
mod scaled;
mod scatter;
mod small;
mod trigonometry;
mod wide;
mod wmma;

use std::collections::HashMap;
use std::sync::OnceLock;

use modelgpu_isa::{Instruction, Operand, Target};

use super::value::Kind;
use super::{Operation, Table, unmodelled};
use crate::error::Fault;
use crate::lanes::{LANES, Longs, Words, active};
use crate::wave::Wave;
use gather::Gather;
use operands::{indexed, wide, write_mask};

pub(crate) use operation::{CarryDirection, VectorOperation};
pub(crate) use prepared::VectorStep;

pub(super) fn tables() -> impl Iterator<Item = Table> {
    [
        convert::OPERATIONS,
        divide::OPERATIONS,
        dot::OPERATIONS,
        eight::OPERATIONS,
        half::OPERATIONS,
        integer::OPERATIONS,
        media::OPERATIONS,
        mixed::OPERATIONS,
        packed::OPERATIONS,
        real::OPERATIONS,
        scaled::OPERATIONS,
        trigonometry::OPERATIONS,
        wide::OPERATIONS,
        wmma::OPERATIONS,
        wmma::SPARSE,
        OF_SCALARS,
    ]
    .into_iter()
    .chain(compare::TABLES)
    .chain(matrix::TABLES)
}

/// The semantics of a mnemonic that a target has instead of those in [`tables`].
pub(super) fn on_target(mnemonic: &str, target: Target) -> Option<&'static Operation> {
    let tables: &[Table] = match target {
        Target::Gfx906 | Target::Gfx90a | Target::Gfx942 | Target::Gfx1030 | Target::Gfx1100 => &[],
        Target::Gfx908 => &[matrix::GFX908],
        Target::Gfx950 => &[eight::OF_OCP, matrix::OF_OCP],
        Target::Gfx1201 => &[eight::OF_OCP, wmma::OF_RDNA4],
        Target::Gfx1250 => &[eight::OF_OCP],
    };
    let found = tables.iter().copied().flatten();
    found
        .filter(|(name, _)| *name == mnemonic)
        .map(|(_, operation)| operation)
        .next()
}

const fn of_scalar(mnemonic: &'static str) -> Operation {
    Operation::Vector(VectorOperation::OfScalars(mnemonic))
}

const OF_SCALARS: &[(&str, Operation)] = &[
    ("v_s_exp_f32", of_scalar("v_exp_f32")),
    ("v_s_exp_f16", of_scalar("v_exp_f16")),
    ("v_s_log_f32", of_scalar("v_log_f32")),
    ("v_s_log_f16", of_scalar("v_log_f16")),
    ("v_s_rcp_f32", of_scalar("v_rcp_f32")),
    ("v_s_rcp_f16", of_scalar("v_rcp_f16")),
    ("v_s_rsq_f32", of_scalar("v_rsq_f32")),
    ("v_s_rsq_f16", of_scalar("v_rsq_f16")),
    ("v_s_sqrt_f32", of_scalar("v_sqrt_f32")),
    ("v_s_sqrt_f16", of_scalar("v_sqrt_f16")),
];

impl VectorOperation {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        if !wave.mode.rounds_to_nearest()
            && let Some(done) = rounding::execute(instruction, wave)
        {
            return done;
        }
        match self {
            Self::Words {
                run,
                clamped,
                sources,
                result,
            } => {
                let run = saturating(instruction, result, run, clamped)?;
                let gather = Gather::new(instruction, wave)?;
                let mut gathered = [[0; LANES]; 3];
                for (place, kind) in sources.into_iter().enumerate() {
                    gather.words(place, kind, &mut gathered[place])?;
                }
                let lanes = gather.lanes();
                let mut results = [0; LANES];
                run.for_wave(wave).call(gathered.each_ref(), &mut results);
                scatter::words(instruction, wave, lanes, result, &mut results)
            }
            Self::Longs {
                run,
                sources,
                result,
            } => {
                let run = saturating(instruction, result, run, None)?;
                let gather = Gather::new(instruction, wave)?;
                let gathered = gather.all_halves(sources)?;
                let lanes = gather.lanes();
                let mut results = [[0; LANES]; 4];
                run.for_wave(wave).call(wide(&gathered), &mut results);
                scatter::longs(instruction, wave, lanes, result, &mut join(&results))
            }
            Self::Carry {
                run,
                clamped,
                sources,
                result,
                direction,
            } => {
                let run = saturating(instruction, result, run, clamped)?;
                let gather = Gather::new(instruction, wave)?;
                let gathered = gather.all_halves(sources)?;
                let lanes = gather.lanes();
                let carry_in = match direction {
                    CarryDirection::Out => 0,
                    // v_div_fmas has three sources and also reads VCC.
                    _ if sources[2] != Kind::None => wave.mask(instruction.sdst),
                    _ => wave.mask(instruction.src[2]),
                };
                let (mut carry, mut out) = ([0; LANES], [0; LANES]);
                wave.simd.spread(carry_in, &mut carry);
                let mut results = [[0; LANES]; 4];
                run.for_wave(wave)
                    .call(wide(&gathered), &carry, &mut results, &mut out);
                let carry_out = wave.simd.pack(&out);
                scatter::longs(instruction, wave, lanes, result, &mut join(&results))?;
                if direction != CarryDirection::In {
                    write_mask(instruction, wave, carry_out & lanes);
                }
                Ok(())
            }
            Self::Compare(comparison) => comparison.execute(instruction, wave),
            Self::Packed(packed) => packed.execute(instruction, wave),
            Self::Mixed { result, is_brain } => result.execute(is_brain, instruction, wave),
            Self::Dot(dot) => dot.execute(instruction, wave),
            Self::Matrix(matrix) => matrix.execute(instruction, wave),
            Self::WaveMatrix(matrix) => matrix.execute(instruction, wave),
            Self::Scaled(conversion) => conversion.execute(instruction, wave),
            Self::Swap => swap(instruction, wave),
            Self::SwapHalves => swap_halves(instruction, wave),
            Self::MoveRelative { source } => move_relative(instruction, wave, source),
            Self::TruthTable(kind) => truth_table(instruction, wave, kind),
            Self::SwapGroups(lanes) => swap_groups(instruction, wave, lanes),
            Self::OfScalars(mnemonic) => of_scalars(mnemonic, instruction, wave),
            Self::FourSums => media::four_wide_sums(instruction, wave),
        }
    }
}

/// The vector operation with this mnemonic.
fn operation(mnemonic: &str) -> Option<&'static Operation> {
    static OPERATIONS: OnceLock<HashMap<&str, &Operation>> = OnceLock::new();
    OPERATIONS
        .get_or_init(|| {
            let all = tables().flatten();
            all.map(|(name, operation)| (*name, operation)).collect()
        })
        .get(mnemonic)
        .copied()
}

/// Computes an operation of one source on a scalar. A result of 16 bits clears the other half.
fn of_scalars(mnemonic: &str, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let operation = operation(mnemonic);
    let Some(Operation::Vector(VectorOperation::Words {
        run,
        sources,
        result,
        ..
    })) = operation
    else {
        return Err(unmodelled(instruction, "this operation"));
    };
    let mut gathered = [[0; LANES]; 3];
    Gather::new(instruction, wave)?.words(0, sources[0], &mut gathered[0])?;
    let mut results = [0; LANES];
    run.for_wave(wave).call(gathered.each_ref(), &mut results);
    let value = match scatter::Output::new(instruction, wave, *result) {
        Some(output) => output.apply(results[0].into()) as u32,
        None => results[0],
    };
    wave.set_word(instruction.dst, value);
    Ok(())
}

fn join(halves: &[Words; 4]) -> Longs {
    std::array::from_fn(|lane| u64::from(halves[0][lane]) | u64::from(halves[1][lane]) << 32)
}

/// The function that an instruction needs: `clamped` if it has the clamp modifier and an integer
/// result. For a floating-point result, the write of the results applies that modifier.
fn saturating<F>(
    instruction: &Instruction,
    result: Kind,
    run: F,
    clamped: Option<F>,
) -> Result<F, Fault> {
    if instruction.modifiers.clamp && !result.is_float() {
        clamped.ok_or_else(|| unmodelled(instruction, "the integer clamp modifier"))
    } else {
        Ok(run)
    }
}

/// Exchanges two registers in the active lanes.
fn swap(instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let [first, second] = [
        indexed(instruction.dst, 3, wave),
        indexed(instruction.src[0], 0, wave),
    ];
    let (Some(first), Some(second)) = (first.vector_index(), second.vector_index()) else {
        return Err(unmodelled(instruction, "this scalar operand"));
    };
    for lane in active(wave.exec()) {
        let kept = wave.vectors[first][lane];
        wave.vectors[first][lane] = wave.vectors[second][lane];
        wave.vectors[second][lane] = kept;
    }
    Ok(())
}

fn swap_halves(instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let [first, second] = [instruction.dst, instruction.src[0]].map(Operand::vector_index);
    let (Some(first), Some(second)) = (first, second) else {
        return Err(unmodelled(instruction, "this scalar operand"));
    };
    let [to, from] = [3, 0].map(|place| 16 * u32::from(instruction.modifiers.op_sel >> place & 1));
    for lane in active(wave.exec()) {
        let half = |word: u32, shift: u32| word >> shift & 0xffff;
        let a = half(wave.vectors[first][lane], to);
        let b = half(wave.vectors[second][lane], from);
        let mut put = |index: usize, shift: u32, value: u32| {
            let word = &mut wave.vectors[index][lane];
            *word = *word & !(0xffff << shift) | value << shift;
        };
        put(first, to, b);
        put(second, from, a);
    }
    Ok(())
}

fn move_relative(instruction: &Instruction, wave: &mut Wave, source: bool) -> Result<(), Fault> {
    /// VGPRs of a wave.
    const COUNT: u32 = 256;
    let mut moved = *instruction;
    let operand = if source {
        &mut moved.src[0]
    } else {
        &mut moved.dst
    };
    let number = operand.vector_index().map(|index| index as u32);
    let number = number.and_then(|index| index.checked_add(wave.m0()));
    let Some(number) = number.filter(|number| *number < COUNT) else {
        return Err(unmodelled(
            instruction,
            "a register number beyond the last one",
        ));
    };
    *operand = Operand::vgpr(number);
    let gather = Gather::new(&moved, wave)?;
    let mut words = [0; LANES];
    gather.words(0, Kind::B32, &mut words)?;
    let lanes = gather.lanes();
    scatter::words(&moved, wave, lanes, Kind::B32, &mut words)
}

/// Looks up each bit of the result in a table of eight bits.
fn truth_table(instruction: &Instruction, wave: &mut Wave, kind: Kind) -> Result<(), Fault> {
    let gather = Gather::new(instruction, wave)?;
    let mut sources = [[0; LANES]; 3];
    for (place, words) in sources.iter_mut().enumerate() {
        gather.words(place, kind, words)?;
    }
    let lanes = gather.lanes();
    let [a, b, c] = sources;
    let table = instruction.immediate;
    let mut results: Words = std::array::from_fn(|lane| {
        (0..8)
            .filter(|entry| table >> entry & 1 == 1)
            .fold(0, |bits, entry| {
                let term =
                    |place: u32, word: u32| if entry >> place & 1 == 1 { word } else { !word };
                bits | term(2, a[lane]) & term(1, b[lane]) & term(0, c[lane])
            })
    });
    scatter::words(instruction, wave, lanes, kind, &mut results)
}

fn swap_groups(instruction: &Instruction, wave: &mut Wave, lanes: usize) -> Result<(), Fault> {
    let [first, second] = [instruction.dst, instruction.src[0]].map(Operand::vector_index);
    let (Some(first), Some(second)) = (first, second) else {
        return Err(unmodelled(instruction, "this scalar operand"));
    };
    if wave.exec() != wave.all_lanes {
        return Err(unmodelled(instruction, "an inactive lane"));
    }
    for lane in (0..wave.size.lanes()).filter(|lane| lane / lanes % 2 == 1) {
        let kept = wave.vectors[first][lane];
        wave.vectors[first][lane] = wave.vectors[second][lane - lanes];
        wave.vectors[second][lane - lanes] = kept;
    }
    Ok(())
}
