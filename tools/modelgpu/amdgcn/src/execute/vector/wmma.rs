//! Matrix products of RDNA: D = A * B + C for matrices of 16 rows and columns that lie across the lanes of a
//! wave. EXEC does not matter.
//!
//! Source of the layouts: AMD's RDNA 3 and RDNA 4 instruction set guides, "Wave Matrix Multiply Accumulate".
//! The order in which hardware adds products is not documented; the model adds them in the order of k.

use super::super::value::{Half, Kind};
use super::super::{Operation, scalar_source, unmodelled};
use super::VectorOperation;
use crate::error::Fault;
use crate::isa::{Instruction, Operand};
use crate::wave::{Wave, WaveSize};

/// Rows of A, columns of B.
const SIZE: usize = 16;

#[derive(Clone, Copy)]
pub(crate) struct WaveMatrix {
    /// Columns of A and rows of B.
    depth: usize,
    element: Element,
    sum: Sum,
    /// RDNA 4's layouts.
    is_split: bool,
}

/// The elements of A and B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Half,
    Brain,
    Byte,
    Nibble,
}

/// The elements of C and D.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Single,
    Half,
    Brain,
    Integer,
}

const fn product(is_split: bool, depth: usize, element: Element, sum: Sum) -> Operation {
    Operation::Vector(VectorOperation::WaveMatrix(WaveMatrix {
        depth,
        element,
        sum,
        is_split,
    }))
}

macro_rules! products {
    ($is_split:literal, $($more:expr),*) => {
        &[
            ("v_wmma_f32_16x16x16_f16", product($is_split, 16, Element::Half, Sum::Single)),
            ("v_wmma_f32_16x16x16_bf16", product($is_split, 16, Element::Brain, Sum::Single)),
            ("v_wmma_f16_16x16x16_f16", product($is_split, 16, Element::Half, Sum::Half)),
            ("v_wmma_bf16_16x16x16_bf16", product($is_split, 16, Element::Brain, Sum::Brain)),
            ("v_wmma_i32_16x16x16_iu8", product($is_split, 16, Element::Byte, Sum::Integer)),
            ("v_wmma_i32_16x16x16_iu4", product($is_split, 16, Element::Nibble, Sum::Integer)),
            $($more),*
        ]
    };
}

/// RDNA 3's products.
pub(super) const OPERATIONS: &[(&str, Operation)] = products!(false,);

/// RDNA 4's, which have other layouts under the names of RDNA 3.
pub(super) const OF_RDNA4: &[(&str, Operation)] = products!(
    true,
    (
        "v_wmma_i32_16x16x32_iu4",
        product(true, 32, Element::Nibble, Sum::Integer)
    )
);

impl Element {
    fn width(self) -> usize {
        match self {
            Self::Half | Self::Brain => 16,
            Self::Byte => 8,
            Self::Nibble => 4,
        }
    }
}

/// The place of an element: its lane, its register behind the first one, and its first bit there.
type Place = (usize, usize, usize);

impl WaveMatrix {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        if self.is_split && wave.size == WaveSize::Wave64 {
            return Err(unmodelled(instruction, "waves of 64"));
        }
        if self.sum == Sum::Integer {
            return self.integers(instruction, wave);
        }
        // Bits for A, B and C: the signs of elements with even and with odd numbers. For C in single
        // precision, the second bit takes the absolute value.
        let (even, odd) = (instruction.modifiers.neg, instruction.modifiers.neg_hi);
        let has_packed_signs = (even | odd) >> 2 & 1 == 1 && self.sum != Sum::Single;
        if has_packed_signs || instruction.modifiers.clamp {
            return Err(unmodelled(instruction, "this modifier of the addend"));
        }
        let factor = |source: usize, line: usize, k: usize, wave: &Wave| {
            let bits = self.factor(instruction.src[source], line, k, wave);
            let value = match self.element {
                Element::Brain => f32::from_bits(bits << 16),
                _ => Half(bits as u16).to_f32(),
            };
            let signs = if k.is_multiple_of(2) { even } else { odd };
            if signs >> source & 1 == 1 {
                -value
            } else {
                value
            }
        };
        let mut results = [[0; SIZE]; SIZE];
        for (row, results) in results.iter_mut().enumerate() {
            for (column, result) in results.iter_mut().enumerate() {
                let bits = self.addend(instruction, row, column, wave)?;
                let mut sum = match self.sum {
                    Sum::Half => Half(bits as u16).to_f32(),
                    Sum::Brain => f32::from_bits(bits << 16),
                    _ => f32::from_bits(bits),
                };
                if odd >> 2 & 1 == 1 {
                    sum = sum.abs();
                }
                if even >> 2 & 1 == 1 {
                    sum = -sum;
                }
                for k in 0..self.depth {
                    sum = factor(0, row, k, wave).mul_add(factor(1, column, k, wave), sum);
                }
                *result = match self.sum {
                    Sum::Half => Half::from_f64(sum.into()).0.into(),
                    Sum::Brain => brain(sum),
                    _ => sum.to_bits(),
                };
            }
        }
        self.write(instruction, &results, wave);
        Ok(())
    }

    /// The sign bits of A and B say that their numbers have a sign.
    fn integers(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let factor = |source: usize, line: usize, k: usize, wave: &Wave| {
            let bits = self.factor(instruction.src[source], line, k, wave);
            let unused = 32 - self.element.width();
            if instruction.modifiers.neg >> source & 1 == 1 {
                i64::from((bits << unused) as i32 >> unused)
            } else {
                i64::from(bits)
            }
        };
        let mut results = [[0; SIZE]; SIZE];
        for (row, results) in results.iter_mut().enumerate() {
            for (column, result) in results.iter_mut().enumerate() {
                let addend = self.addend(instruction, row, column, wave)? as i32;
                let sum = (0..self.depth).fold(i64::from(addend), |sum, k| {
                    sum + factor(0, row, k, wave) * factor(1, column, k, wave)
                });
                *result = if instruction.modifiers.clamp {
                    sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32
                } else {
                    sum as u32
                };
            }
        }
        self.write(instruction, &results, wave);
        Ok(())
    }

    /// An element of a row of A, or of a column of B. On RDNA 3, each lane has a whole line, and the lanes
    /// of each 16 have the lines of the first 16. On RDNA 4, the second 16 lanes have the second halves.
    fn factor(self, operand: Operand, line: usize, k: usize, wave: &Wave) -> u32 {
        let count = if self.is_split {
            self.depth / 2
        } else {
            self.depth
        };
        let bit = k % count * self.element.width();
        let lane = line + SIZE * (k / count);
        wave.lane_at(operand, bit / 32, lane) >> (bit % 32)
            & u32::MAX >> (32 - self.element.width())
    }

    /// The place of an element of C and D. On RDNA 3, the rows go round the groups of 16 lanes, and a
    /// register has one element, in a half that op_sel selects. On RDNA 4, a group of lanes has the rows of a
    /// half of the matrix.
    fn place(self, instruction: &Instruction, row: usize, column: usize, wave: &Wave) -> Place {
        let is_short = matches!(self.sum, Sum::Half | Sum::Brain);
        if self.is_split {
            let (lane, number) = (column + SIZE * (row / 8), row % 8);
            return match is_short {
                true => (lane, number / 2, 16 * (number % 2)),
                false => (lane, number, 0),
            };
        }
        let groups = wave.size.lanes() / SIZE;
        let half = usize::from(instruction.modifiers.op_sel >> 2 & 1);
        let bit = if is_short { 16 * half } else { 0 };
        (column + SIZE * (row % groups), row / groups, bit)
    }

    fn addend(
        self,
        instruction: &Instruction,
        row: usize,
        column: usize,
        wave: &Wave,
    ) -> Result<u32, Fault> {
        let operand = instruction.src[2];
        let kind = match self.sum {
            Sum::Single => Kind::F32,
            Sum::Integer => Kind::B32,
            Sum::Half | Sum::Brain => Kind::F16,
        };
        if operand.vector_index().is_none() {
            if self.sum == Sum::Brain {
                return Err(unmodelled(instruction, "a constant addend"));
            }
            return Ok(scalar_source(instruction, 2, kind, wave)? as u32);
        }
        let (lane, register, bit) = self.place(instruction, row, column, wave);
        let bits = wave.lane_at(operand, register, lane) >> bit;
        Ok(if kind.is_half() { bits & 0xffff } else { bits })
    }

    /// Writes D. A result of 16 bits keeps the other half of its register.
    fn write(self, instruction: &Instruction, results: &[[u32; SIZE]; SIZE], wave: &mut Wave) {
        let mask = match self.sum {
            Sum::Half | Sum::Brain => 0xffff,
            Sum::Single | Sum::Integer => u32::MAX,
        };
        for (row, results) in results.iter().enumerate() {
            for (column, result) in results.iter().enumerate() {
                let (lane, register, bit) = self.place(instruction, row, column, wave);
                let old = wave.lane_at(instruction.dst, register, lane);
                let new = old & !(mask << bit) | result << bit;
                wave.set_lane_at(instruction.dst, register, lane, new);
            }
        }
    }
}

/// The bits of the bfloat16 nearest to a number, ties to even.
fn brain(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_nan() {
        return bits >> 16 | 0x40;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}
