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
mod real;
mod scatter;
mod trigonometry;

use super::value::Kind;
use super::{Table, unmodelled};
use crate::error::Fault;
use crate::isa::{Instruction, Operand};
use crate::wave::{LANES, Longs, Wave, Words};
use gather::Gather;

/// Maps all lanes' sources to their results.
type RunWords = fn(&[Words; 3], &mut Words);
type RunLongs = fn(&[Longs; 3], &mut Longs);
/// Maps all lanes' sources, with one carry bit in and one out per lane.
type RunCarry = fn(&[Longs; 3], u64, &mut Longs) -> u64;

/// The semantics of a vector instruction, for one whole wave.
#[derive(Clone, Copy)]
pub(crate) enum VectorOperation {
    /// Sources and result of at most 32 bits.
    Words {
        run: RunWords,
        /// The saturating form, for an integer operation with the clamp modifier.
        clamped: Option<RunWords>,
        sources: [Kind; 3],
        result: Kind,
    },
    /// At least one source or the result has 64 bits.
    Longs {
        run: RunLongs,
        sources: [Kind; 3],
        result: Kind,
    },
    /// Has a carry bit per lane in a scalar register pair.
    Carry {
        run: RunCarry,
        /// The saturating form, for the clamp modifier.
        clamped: Option<RunCarry>,
        sources: [Kind; 3],
        result: Kind,
        direction: CarryDirection,
    },
    Compare(compare::Comparison),
    Packed(packed::Packed),
    Mixed(mixed::MixedResult),
    Dot(dot::Dot),
    Matrix(matrix::Matrix),
    /// v_swap_b32: exchanges two registers.
    Swap,
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
        trigonometry::OPERATIONS,
    ]
    .into_iter()
    .chain(compare::TABLES)
    .chain(matrix::TABLES)
}

/// Makes a vector operation from a closure over one lane. The types give the kinds of the operands.
/// `Word` if nothing is wider than 32 bits, `Long` otherwise.
macro_rules! vector {
    ($size:ident, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A], $R, |sources, lane| {
            let $a = <$A as Value>::from_bits(sources[0][lane].into());
            $body
        })
    };
    ($size:ident, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A, $B], $R, |sources, lane| {
            let $a = <$A as Value>::from_bits(sources[0][lane].into());
            let $b = <$B as Value>::from_bits(sources[1][lane].into());
            $body
        })
    };
    ($size:ident, |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A, $B, $C], $R, |sources, lane| {
            let $a = <$A as Value>::from_bits(sources[0][lane].into());
            let $b = <$B as Value>::from_bits(sources[1][lane].into());
            let $c = <$C as Value>::from_bits(sources[2][lane].into());
            $body
        })
    };
    (@ Word, $types:tt, $R:ty, |$sources:ident, $lane:ident| $body:block) => {
        Operation::Vector(VectorOperation::Words {
            run: |$sources, results| {
                for $lane in 0..LANES {
                    let result: $R = $body;
                    results[$lane] = <$R as Value>::to_bits(result) as u32;
                }
            },
            clamped: None,
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
    (@ Long, $types:tt, $R:ty, |$sources:ident, $lane:ident| $body:block) => {
        Operation::Vector(VectorOperation::Longs {
            run: |$sources, results| {
                for $lane in 0..LANES {
                    let result: $R = $body;
                    results[$lane] = <$R as Value>::to_bits(result);
                }
            },
            sources: kinds!($types),
            result: <$R as Value>::KIND,
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
        carry!(@ $direction, [$A, $B], $R, |sources, lane, $in| {
            let $a = <$A as Value>::from_bits(sources[0][lane]);
            let $b = <$B as Value>::from_bits(sources[1][lane]);
            $body
        })
    };
    (
        $direction:ident,
        |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $in:ident: bool|
            -> ($R:ty, bool) $body:block
    ) => {
        carry!(@ $direction, [$A, $B, $C], $R, |sources, lane, $in| {
            let $a = <$A as Value>::from_bits(sources[0][lane]);
            let $b = <$B as Value>::from_bits(sources[1][lane]);
            let $c = <$C as Value>::from_bits(sources[2][lane]);
            $body
        })
    };
    (
        @ $direction:ident, $types:tt, $R:ty,
        |$sources:ident, $lane:ident, $in:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: |$sources, mask, results| {
                let mut out = 0;
                for $lane in 0..LANES {
                    let $in = mask >> $lane & 1 == 1;
                    let (result, carry): ($R, bool) = $body;
                    results[$lane] = <$R as Value>::to_bits(result);
                    out |= u64::from(carry) << $lane;
                }
                out
            },
            clamped: None,
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::$direction,
        })
    };
}

/// Makes an integer operation of at most 32 bits from a closure that gives the exact result. The
/// result wraps to its type, or saturates with the clamp modifier.
macro_rules! exact {
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        exact!(@ [$A, $B], $R, |sources, lane| {
            let $a = <$A as Value>::from_bits(sources[0][lane].into());
            let $b = <$B as Value>::from_bits(sources[1][lane].into());
            $body
        })
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        exact!(@ [$A, $B, $C], $R, |sources, lane| {
            let $a = <$A as Value>::from_bits(sources[0][lane].into());
            let $b = <$B as Value>::from_bits(sources[1][lane].into());
            let $c = <$C as Value>::from_bits(sources[2][lane].into());
            $body
        })
    };
    (@ $types:tt, $R:ty, |$sources:ident, $lane:ident| $body:block) => {
        Operation::Vector(VectorOperation::Words {
            run: |$sources, results| {
                for $lane in 0..LANES {
                    let exact: i64 = $body;
                    results[$lane] = <$R as Value>::to_bits(exact as $R) as u32;
                }
            },
            clamped: Some(|$sources, results| {
                for $lane in 0..LANES {
                    let exact: i64 = $body;
                    let limited = exact.clamp(<$R>::MIN.into(), <$R>::MAX.into());
                    results[$lane] = <$R as Value>::to_bits(limited as $R) as u32;
                }
            }),
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
        exact_carry!(@operation $direction, $exact, [$A, $B], $R, |sources, lane, $in| {
            let $a = <$A as Value>::from_bits(sources[0][lane]);
            let $b = <$B as Value>::from_bits(sources[1][lane]);
            $body
        })
    };
    (
        $direction:ident, $exact:ty,
        |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block
    ) => {
        exact_carry!(@operation $direction, $exact, [$A, $B, $C], $R, |sources, lane, _carry| {
            let $a = <$A as Value>::from_bits(sources[0][lane]);
            let $b = <$B as Value>::from_bits(sources[1][lane]);
            let $c = <$C as Value>::from_bits(sources[2][lane]);
            $body
        })
    };
    (
        @operation $direction:ident, $exact:ty, $types:tt, $R:ty,
        |$sources:ident, $lane:ident, $in:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: |$sources, mask, results| {
                exact_carry!(@lanes $exact, $R, $lane, $in, mask, results, $body, |exact| exact)
            },
            clamped: Some(|$sources, mask, results| {
                exact_carry!(@lanes $exact, $R, $lane, $in, mask, results, $body, |exact| {
                    exact.clamp(<$R>::MIN.into(), <$R>::MAX.into())
                })
            }),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::$direction,
        })
    };
    (
        @lanes $exact:ty, $R:ty, $lane:ident, $in:ident, $mask:ident, $results:ident, $body:block,
        |$number:ident| $limited:expr
    ) => {{
        let mut out = 0;
        for $lane in 0..LANES {
            let $in = $mask >> $lane & 1 == 1;
            let $number: $exact = $body;
            let fits = (<$exact>::from(<$R>::MIN)..=<$R>::MAX.into()).contains(&$number);
            $results[$lane] = <$R as Value>::to_bits($limited as $R);
            out |= u64::from(!fits) << $lane;
        }
        out
    }};
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

use {carry, exact, exact_carry, kinds, vector};

impl VectorOperation {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
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
                run(&gathered, &mut results);
                scatter::words(instruction, wave, lanes, result, &mut results)
            }
            Self::Longs {
                run,
                sources,
                result,
            } => {
                let run = saturating(instruction, result, run, None)?;
                let gather = Gather::new(instruction, wave)?;
                let gathered = gather.all_longs(sources)?;
                let lanes = gather.lanes();
                let mut results = [0; LANES];
                run(&gathered, &mut results);
                scatter::longs(instruction, wave, lanes, result, &mut results)
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
                let gathered = gather.all_longs(sources)?;
                let lanes = gather.lanes();
                let carry_in = match direction {
                    CarryDirection::Out => 0,
                    // v_div_fmas has three sources and also reads VCC.
                    _ if sources[2] != Kind::None => wave.pair(instruction.sdst),
                    _ => wave.pair(instruction.src[2]),
                };
                let mut results = [0; LANES];
                let carry_out = run(&gathered, carry_in, &mut results);
                scatter::longs(instruction, wave, lanes, result, &mut results)?;
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
            Self::Swap => swap(instruction, wave),
            Self::FourSums => media::four_wide_sums(instruction, wave),
        }
    }
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
    let exec = wave.exec();
    for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
        let kept = wave.vectors[first][lane];
        wave.vectors[first][lane] = wave.vectors[second][lane];
        wave.vectors[second][lane] = kept;
    }
    Ok(())
}

/// Writes a bit per lane to the instruction's scalar destination; inactive lanes' bits are 0.
fn write_mask(instruction: &Instruction, wave: &mut Wave, mask: u64) {
    wave.set_pair(instruction.sdst, mask);
}

/// The operand that M0 selects instead while VGPR indexing is on.
fn indexed(operand: Operand, place: u8, wave: &Wave) -> Operand {
    if wave.indexed >> place & 1 == 1 && operand.vector_index().is_some() {
        Operand(operand.0 + (wave.m0() & 0xff) as u16)
    } else {
        operand
    }
}
