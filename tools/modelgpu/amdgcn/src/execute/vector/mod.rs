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
mod matrix;
mod media;
mod mixed;
mod packed;
mod prepared;
mod real;
mod rounding;
mod scaled;
mod scatter;
mod small;
mod trigonometry;
mod wmma;

use super::simd::{CarryFunction, Leveled, LongsFunction, Wide, WordsFunction};
use super::value::Kind;
use super::{Operation, Table, operation, unmodelled};
use crate::error::Fault;
use crate::isa::{Instruction, Operand};
use crate::target::Target;
use crate::wave::{LANES, Longs, Wave, Words, active};
use gather::Gather;

pub(crate) use prepared::VectorStep;

/// The semantics of a vector instruction, for one whole wave.
#[derive(Clone, Copy)]
pub(crate) enum VectorOperation {
    /// Sources and result of at most 32 bits.
    Words {
        run: Leveled<WordsFunction>,
        /// The saturating form, for an integer operation with the clamp modifier.
        clamped: Option<Leveled<WordsFunction>>,
        sources: [Kind; 3],
        result: Kind,
    },
    /// At least one source or the result has 64 bits.
    Longs {
        run: Leveled<LongsFunction>,
        sources: [Kind; 3],
        result: Kind,
    },
    /// Has a carry bit per lane in a scalar register pair.
    Carry {
        run: Leveled<CarryFunction>,
        /// The saturating form, for the clamp modifier.
        clamped: Option<Leveled<CarryFunction>>,
        sources: [Kind; 3],
        result: Kind,
        direction: CarryDirection,
    },
    Compare(compare::Comparison),
    Packed(packed::Packed),
    Mixed(mixed::MixedResult),
    Dot(dot::Dot),
    Matrix(matrix::Matrix),
    WaveMatrix(wmma::WaveMatrix),
    Scaled(scaled::Scaled),
    /// v_swap_b32: exchanges two registers.
    Swap,
    /// v_swap_b16: exchanges halves of two registers.
    SwapHalves,
    /// v_bitop3: a function of three bits for each bit, whose table is the immediate.
    TruthTable(Kind),
    /// Exchanges the odd groups of this many lanes in the first register with the even groups in the
    /// second one.
    SwapGroups(usize),
    /// Moves between registers, of which M0 is added to the source's or the result's number.
    MoveRelative {
        source: bool,
    },
    /// Computes the vector instruction with this mnemonic on scalars.
    OfScalars(&'static str),
    /// v_mqsad_u32_u8: has a result and a source of four registers.
    FourSums,
}

/// The direction of the carry bit per lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarryDirection {
    In,
    Out,
    InOut,
}

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
        Target::Gfx90a | Target::Gfx942 | Target::Gfx1100 => &[],
        Target::Gfx950 => &[eight::OF_OCP, matrix::OF_OCP],
        Target::Gfx1201 => &[eight::OF_OCP, wmma::OF_RDNA4],
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

/// Makes a vector operation from a closure over one lane. The types give the kinds of the operands.
/// `Word` if nothing is wider than 32 bits, `Long` otherwise.
macro_rules! vector {
    ($size:ident, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits($crate::execute::vector::bits!($size, first, lane));
            $body
        })
    };
    ($size:ident, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A, $B], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits($crate::execute::vector::bits!($size, first, lane));
            let $b = <$B as Value>::from_bits($crate::execute::vector::bits!($size, second, lane));
            $body
        })
    };
    ($size:ident, |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A, $B, $C], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits($crate::execute::vector::bits!($size, first, lane));
            let $b = <$B as Value>::from_bits($crate::execute::vector::bits!($size, second, lane));
            let $c = <$C as Value>::from_bits($crate::execute::vector::bits!($size, third, lane));
            $body
        })
    };
    (
        @ Word, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Words {
            run: $crate::execute::vector::words!($R, |$first, $second, $third, $lane| $body),
            clamped: None,
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
    (
        @ Long, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Longs {
            run: $crate::execute::simd::leveled!(|
                $first: $crate::execute::simd::Wide<'_>,
                $second: $crate::execute::simd::Wide<'_>,
                $third: $crate::execute::simd::Wide<'_>,
                results: &mut [$crate::wave::Words; 4]
            | -> () {
                for $lane in 0..LANES {
                    let result: $R = $body;
                    $crate::execute::vector::put_bits!($R, results, $lane, result);
                }
            }),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
}

/// The bits of a source in a lane.
macro_rules! bits {
    (Word, $source:ident, $lane:ident) => {
        u64::from($source[$lane])
    };
    (Long, $source:ident, $lane:ident) => {
        $source.bits($lane)
    };
}

/// Sets a result of up to 64 bits in a lane.
macro_rules! put_bits {
    ($R:ty, $results:ident, $lane:ident, $result:expr) => {
        let bits = <$R as Value>::to_bits($result);
        $results[0][$lane] = bits as u32;
        if const { <$R as Value>::KIND.is_long() } {
            $results[1][$lane] = (bits >> 32) as u32;
        }
    };
}

/// A function of words from a block over one lane.
macro_rules! words {
    ($R:ty, |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block) => {
        $crate::execute::simd::leveled!(|$first: &$crate::wave::Words,
                                         $second: &$crate::wave::Words,
                                         $third: &$crate::wave::Words,
                                         results: &mut $crate::wave::Words|
         -> () {
            for $lane in 0..LANES {
                let result: $R = $body;
                results[$lane] = <$R as Value>::to_bits(result) as u32;
            }
        })
    };
}

/// Makes a vector operation with a carry. The closure's last argument is the lane's carry in (false
/// without one). Its second result is the carry out (ignored without one).
macro_rules! carry {
    (
        $direction:ident,
        |$a:ident: $A:ty, $b:ident: $B:ty, $in:ident: bool| -> ($R:ty, bool) $body:block
    ) => {
        carry!(@ $direction, [$A, $B], $R, |first, second, third, lane, $in| {
            let $a = <$A as Value>::from_bits(first.bits(lane));
            let $b = <$B as Value>::from_bits(second.bits(lane));
            $body
        })
    };
    (
        $direction:ident,
        |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $in:ident: bool|
            -> ($R:ty, bool) $body:block
    ) => {
        carry!(@ $direction, [$A, $B, $C], $R, |first, second, third, lane, $in| {
            let $a = <$A as Value>::from_bits(first.bits(lane));
            let $b = <$B as Value>::from_bits(second.bits(lane));
            let $c = <$C as Value>::from_bits(third.bits(lane));
            $body
        })
    };
    (
        @ $direction:ident, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident, $in:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: $crate::execute::vector::carries!($R, |$first, $second, $third, $lane, $in| $body),
            clamped: None,
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::$direction,
        })
    };
}

/// A function with a carry from a block over one lane, which gives the result and the carry.
macro_rules! carries {
    (
        $R:ty, |$first:ident, $second:ident, $third:ident, $lane:ident, $in:ident| $body:block
    ) => {
        $crate::execute::simd::leveled!(|$first: $crate::execute::simd::Wide<'_>,
                                         $second: $crate::execute::simd::Wide<'_>,
                                         $third: $crate::execute::simd::Wide<'_>,
                                         carry: &$crate::wave::Words,
                                         results: &mut [$crate::wave::Words; 4],
                                         out: &mut $crate::wave::Words|
         -> () {
            for $lane in 0..LANES {
                let $in = carry[$lane] != 0;
                let (result, carry): ($R, bool) = $body;
                $crate::execute::vector::put_bits!($R, results, $lane, result);
                out[$lane] = 0u32.wrapping_sub(carry.into());
            }
        })
    };
}

/// Makes an integer operation of at most 32 bits from a closure that gives the exact result. The
/// result wraps to its type, or saturates with the clamp modifier.
macro_rules! exact {
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        exact!(@ [$A, $B], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits(first[lane].into());
            let $b = <$B as Value>::from_bits(second[lane].into());
            $body
        })
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        exact!(@ [$A, $B, $C], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits(first[lane].into());
            let $b = <$B as Value>::from_bits(second[lane].into());
            let $c = <$C as Value>::from_bits(third[lane].into());
            $body
        })
    };
    (
        @ $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Words {
            run: $crate::execute::vector::words!($R, |$first, $second, $third, $lane| {
                let exact: i64 = $body;
                exact as $R
            }),
            clamped: Some($crate::execute::vector::words!($R, |$first, $second, $third, $lane| {
                let exact: i64 = $body;
                exact.clamp(<$R>::MIN.into(), <$R>::MAX.into()) as $R
            })),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
}

/// Makes an integer operation with a carry from a closure that gives the exact result as a number
/// of the preceding type. The carry out reports that the result's type cannot hold it.
macro_rules! exact_carry {
    (
        $direction:ident, $exact:ty,
        |$a:ident: $A:ty, $b:ident: $B:ty, $in:ident: bool| -> $R:ty $body:block
    ) => {
        exact_carry!(
            @operation $direction, $exact, [$A, $B], $R,
            |first, second, third, lane, $in| {
                let $a = <$A as Value>::from_bits(first.bits(lane));
                let $b = <$B as Value>::from_bits(second.bits(lane));
                $body
            }
        )
    };
    (
        $direction:ident, $exact:ty,
        |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block
    ) => {
        exact_carry!(
            @operation $direction, $exact, [$A, $B, $C], $R,
            |first, second, third, lane, _carry| {
                let $a = <$A as Value>::from_bits(first.bits(lane));
                let $b = <$B as Value>::from_bits(second.bits(lane));
                let $c = <$C as Value>::from_bits(third.bits(lane));
                $body
            }
        )
    };
    (
        @operation $direction:ident, $exact:ty, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident, $in:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: $crate::execute::vector::carries!($R, |$first, $second, $third, $lane, $in| {
                let exact: $exact = $body;
                let fits = exact >= <$R>::MIN.into() && exact <= <$R>::MAX.into();
                (exact as $R, !fits)
            }),
            clamped: Some($crate::execute::vector::carries!($R, |$first, $second, $third, $lane, $in| {
                let exact: $exact = $body;
                let fits = exact >= <$R>::MIN.into() && exact <= <$R>::MAX.into();
                (exact.clamp(<$R>::MIN.into(), <$R>::MAX.into()) as $R, !fits)
            })),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::$direction,
        })
    };
}

/// Makes a multiply-add of 64 bits from a closure that gives the sum, whether it overflows, and its
/// limit then: the result with the clamp modifier.
macro_rules! wide_sum {
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> ($R:ty, bool, $L:ty) $body:block) => {
        wide_sum!(@ [$A, $B, $C], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits(first.bits(lane));
            let $b = <$B as Value>::from_bits(second.bits(lane));
            let $c = <$C as Value>::from_bits(third.bits(lane));
            $body
        })
    };
    (
        @ $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: $crate::execute::vector::carries!(
                $R,
                |$first, $second, $third, $lane, _carry| {
                    let (sum, overflows, _) = $body;
                    (sum, overflows)
                }
            ),
            clamped: Some($crate::execute::vector::carries!(
                $R,
                |$first, $second, $third, $lane, _carry| {
                    let (sum, overflows, limit) = $body;
                    (if overflows { limit } else { sum }, overflows)
                }
            )),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::Out,
        })
    };
}

/// The operand kinds of one to three types.
macro_rules! kinds {
    ([$A:ty]) => {
        [<$A as Value>::KIND, Kind::None, Kind::None]
    };
    ([$A:ty, $B:ty]) => {
        [<$A as Value>::KIND, <$B as Value>::KIND, Kind::None]
    };
    ([$A:ty, $B:ty, $C:ty]) => {
        [
            <$A as Value>::KIND,
            <$B as Value>::KIND,
            <$C as Value>::KIND,
        ]
    };
}

use {bits, carries, carry, exact, exact_carry, kinds, put_bits, vector, wide_sum, words};

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
            Self::Mixed(result) => result.execute(instruction, wave),
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

/// Sources of two registers each.
fn wide(halves: &[[Words; 2]; 3]) -> [Wide<'_>; 3] {
    halves.each_ref().map(|[low, high]| Wide { low, high })
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
    if wave.exec() != u64::MAX {
        return Err(unmodelled(instruction, "an inactive lane"));
    }
    for lane in (0..LANES).filter(|lane| lane / lanes % 2 == 1) {
        let kept = wave.vectors[first][lane];
        wave.vectors[first][lane] = wave.vectors[second][lane - lanes];
        wave.vectors[second][lane - lanes] = kept;
    }
    Ok(())
}

/// Writes a bit per lane to the instruction's scalar destination; inactive lanes' bits are 0.
fn write_mask(instruction: &Instruction, wave: &mut Wave, mask: u64) {
    wave.set_mask(instruction.sdst, mask);
}

/// The operand that M0 selects instead while VGPR indexing is on.
fn indexed(operand: Operand, place: u8, wave: &Wave) -> Operand {
    if wave.indexed >> place & 1 == 1 && operand.vector_index().is_some() {
        Operand(operand.0 + (wave.m0() & 0xff) as u16)
    } else {
        operand
    }
}
