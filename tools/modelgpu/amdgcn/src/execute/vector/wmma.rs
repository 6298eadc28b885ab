//! Matrix products of RDNA: D = A * B + C for matrices of 16 rows and columns that lie across the lanes of a
//! wave. EXEC does not matter.
//!
//! Sources of the layouts: AMD's RDNA 3 and RDNA 4 instruction set guides, "Wave Matrix Multiply Accumulate", and
//! AMD's software of these products (fpsan, amdgcn_swmmac_gfx12.hpp) for sparse ones and for waves of 64. The
//! order in which hardware adds products is not documented; the model adds them in the order of the registers.

use modelgpu_isa::Instruction;

use super::super::value::{self, Half, Kind};
use super::super::{Operation, scalar_source, unmodelled};
use super::operation::{VectorOperation, WaveElement, WaveLayout, WaveMatrix, WaveSum};
use super::small::{self};
use crate::error::Fault;
use crate::lanes::WaveSize;
use crate::wave::Wave;

/// Rows of A, columns of B.
const SIZE: usize = 16;

const fn product(
    layout: WaveLayout,
    depth: usize,
    element: WaveElement,
    sum: WaveSum,
) -> Operation {
    Operation::Vector(VectorOperation::WaveMatrix(WaveMatrix {
        depth,
        element,
        sum,
        layout,
    }))
}

/// Entries from a name, a depth, and the formats of elements and of sums.
macro_rules! products {
    ($layout:ident, $($name:literal: $depth:literal, $element:expr, $sum:ident;)*) => {
        &[$(($name, product(WaveLayout::$layout, $depth, $element, WaveSum::$sum)),)*]
    };
}

use super::operation::WaveElement::{Brain, Byte, Eight, Half as Halves, Nibble};

/// RDNA 3's products in a layout, and others.
macro_rules! common_products {
    ($layout:ident, $($others:tt)*) => {
        products! {
            $layout,
            "v_wmma_f32_16x16x16_f16": 16, Halves, Single;
            "v_wmma_f32_16x16x16_bf16": 16, Brain, Single;
            "v_wmma_f16_16x16x16_f16": 16, Halves, Half;
            "v_wmma_bf16_16x16x16_bf16": 16, Brain, Brain;
            "v_wmma_i32_16x16x16_iu8": 16, Byte, Integer;
            "v_wmma_i32_16x16x16_iu4": 16, Nibble, Integer;
            $($others)*
        }
    };
}

/// RDNA 3's products.
pub(super) const OPERATIONS: &[(&str, Operation)] = common_products! { Whole, };

/// RDNA 4's, which have other layouts under the names of RDNA 3.
pub(super) const OF_RDNA4: &[(&str, Operation)] = common_products! {
    Split,
    "v_wmma_f32_16x16x16_fp8_fp8": 16, Eight(small::FP8, small::FP8), Single;
    "v_wmma_f32_16x16x16_fp8_bf8": 16, Eight(small::FP8, small::BF8), Single;
    "v_wmma_f32_16x16x16_bf8_fp8": 16, Eight(small::BF8, small::FP8), Single;
    "v_wmma_f32_16x16x16_bf8_bf8": 16, Eight(small::BF8, small::BF8), Single;
    "v_wmma_i32_16x16x32_iu4": 32, Nibble, Integer;
};

pub(super) const SPARSE: &[(&str, Operation)] = products! {
    Sparse,
    "v_swmmac_f32_16x16x32_f16": 32, Halves, Single;
    "v_swmmac_f32_16x16x32_bf16": 32, Brain, Single;
    "v_swmmac_f16_16x16x32_f16": 32, Halves, Half;
    "v_swmmac_bf16_16x16x32_bf16": 32, Brain, Brain;
    "v_swmmac_f32_16x16x32_fp8_fp8": 32, Eight(small::FP8, small::FP8), Single;
    "v_swmmac_f32_16x16x32_fp8_bf8": 32, Eight(small::FP8, small::BF8), Single;
    "v_swmmac_f32_16x16x32_bf8_fp8": 32, Eight(small::BF8, small::FP8), Single;
    "v_swmmac_f32_16x16x32_bf8_bf8": 32, Eight(small::BF8, small::BF8), Single;
    "v_swmmac_i32_16x16x32_iu8": 32, Byte, Integer;
    "v_swmmac_i32_16x16x32_iu4": 32, Nibble, Integer;
    "v_swmmac_i32_16x16x64_iu4": 64, Nibble, Integer;
};

impl WaveElement {
    fn width(self) -> usize {
        match self {
            Self::Half | Self::Brain => 16,
            Self::Eight(..) | Self::Byte => 8,
            Self::Nibble => 4,
        }
    }

    /// The number of a source with these bits.
    fn decode(self, source: usize, bits: u32) -> f32 {
        match self {
            Self::Brain => value::Brain(bits as u16).to_f32(),
            Self::Eight(a, b) => [a, b][source].decode(bits) as f32,
            _ => Half(bits as u16).to_f32(),
        }
    }
}

/// The place of an element: its lane, its register behind the first one, and its first bit there.
type Place = (usize, usize, usize);

/// Two elements that are multiplied: the group of lanes that has them, and their numbers there.
#[derive(Clone, Copy)]
struct Pair {
    group: usize,
    numbers: [usize; 2],
}

impl WaveMatrix {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        if self.sum == WaveSum::Integer {
            return self.integers(instruction, wave);
        }
        // Bits for A, B and C: the signs of elements with even and with odd numbers. For C in single
        // precision, the second bit takes the absolute value.
        let (even, odd) = (instruction.modifiers.neg, instruction.modifiers.neg_hi);
        let has_packed_signs = (even | odd) >> 2 & 1 == 1 && self.sum != WaveSum::Single;
        if has_packed_signs || instruction.modifiers.clamp {
            return Err(unmodelled(instruction, "this modifier of the addend"));
        }
        let factor = |source: usize, line: usize, pair: Pair, wave: &Wave| {
            let bits = self.factor(instruction, source, line, pair, wave);
            let value = self.element.decode(source, bits);
            let signs = if pair.numbers[source].is_multiple_of(2) {
                even
            } else {
                odd
            };
            if signs >> source & 1 == 1 {
                -value
            } else {
                value
            }
        };
        let mut results = [[0; SIZE]; SIZE];
        for (row, results) in results.iter_mut().enumerate() {
            let pairs = self.pairs(instruction, row, wave);
            for (column, result) in results.iter_mut().enumerate() {
                let bits = self.addend(instruction, row, column, wave)?;
                let mut sum = match self.sum {
                    WaveSum::Half => Half(bits as u16).to_f32(),
                    WaveSum::Brain => value::Brain(bits as u16).to_f32(),
                    _ => f32::from_bits(bits),
                };
                if odd >> 2 & 1 == 1 {
                    sum = sum.abs();
                }
                if even >> 2 & 1 == 1 {
                    sum = -sum;
                }
                for pair in &pairs {
                    let [a, b] = [(0, row), (1, column)]
                        .map(|(source, line)| factor(source, line, *pair, wave));
                    sum = a.mul_add(b, sum);
                }
                *result = match self.sum {
                    WaveSum::Half => Half::from_f64(sum.into()).0.into(),
                    WaveSum::Brain => value::Brain::nearest(sum).0.into(),
                    _ => sum.to_bits(),
                };
            }
        }
        self.write(instruction, &results, wave);
        Ok(())
    }

    /// The sign bits of A and B say that their numbers have a sign.
    fn integers(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let factor = |source: usize, line: usize, pair: Pair, wave: &Wave| {
            let bits = self.factor(instruction, source, line, pair, wave);
            let unused = 32 - self.element.width();
            if instruction.modifiers.neg >> source & 1 == 1 {
                i64::from((bits << unused) as i32 >> unused)
            } else {
                i64::from(bits)
            }
        };
        let mut results = [[0; SIZE]; SIZE];
        for (row, results) in results.iter_mut().enumerate() {
            let pairs = self.pairs(instruction, row, wave);
            for (column, result) in results.iter_mut().enumerate() {
                let addend = self.addend(instruction, row, column, wave)? as i32;
                let sum = pairs.iter().fold(i64::from(addend), |sum, pair| {
                    sum + factor(0, row, *pair, wave) * factor(1, column, *pair, wave)
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

    /// The elements of a row of A with those of B that they are multiplied with.
    fn pairs(self, instruction: &Instruction, row: usize, wave: &Wave) -> Vec<Pair> {
        let groups = match self.layout {
            WaveLayout::Whole => 1,
            WaveLayout::Split | WaveLayout::Sparse => wave.size.lanes() / SIZE,
        };
        let count = self.depth / groups;
        let mut pairs = Vec::with_capacity(self.depth);
        for group in 0..groups {
            if self.layout != WaveLayout::Sparse {
                pairs.extend((0..count).map(|number| Pair {
                    group,
                    numbers: [number; 2],
                }));
                continue;
            }
            // Two bits for each element of A. The instruction selects a set of them in the register.
            let kept = count / 2;
            let set = usize::from(instruction.modifiers.op_sel & 3) % (16 / kept);
            let places = wave.lane(instruction.src[2], row + SIZE * group) >> (2 * kept * set);
            pairs.extend((0..kept).map(|number| {
                let place = (places >> (2 * number) & 3) as usize;
                Pair {
                    group,
                    numbers: [number, number / 2 * 4 + place],
                }
            }));
        }
        pairs
    }

    /// An element of a row of A, or of a column of B. On RDNA 3, the lanes of each 16 have the lines of the
    /// first 16.
    fn factor(
        self,
        instruction: &Instruction,
        source: usize,
        line: usize,
        pair: Pair,
        wave: &Wave,
    ) -> u32 {
        let bit = pair.numbers[source] * self.element.width();
        let lane = line + SIZE * pair.group;
        wave.lane_at(instruction.src[source], bit / 32, lane) >> (bit % 32)
            & u32::MAX >> (32 - self.element.width())
    }

    /// The place of an element of C and D. On RDNA 3, the rows go round the groups of 16 lanes, and a
    /// register has one element, in a half that op_sel selects. On RDNA 4, a group of lanes has consecutive rows:
    /// eight, or four in a wave of 64, whose second half has the rows behind those of the first one.
    fn place(self, instruction: &Instruction, row: usize, column: usize, wave: &Wave) -> Place {
        let is_short = matches!(self.sum, WaveSum::Half | WaveSum::Brain);
        if self.layout != WaveLayout::Whole {
            let (lane, number) = match wave.size {
                WaveSize::Wave32 => (column + SIZE * (row / 8), row % 8),
                WaveSize::Wave64 => (column + SIZE * (row / 8 + 2 * (row % 8 / 4)), row % 4),
            };
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
        let operand = match self.layout {
            WaveLayout::Sparse => instruction.dst,
            WaveLayout::Whole | WaveLayout::Split => instruction.src[2],
        };
        let kind = match self.sum {
            WaveSum::Single => Kind::F32,
            WaveSum::Integer => Kind::B32,
            WaveSum::Half | WaveSum::Brain => Kind::F16,
        };
        if operand.vector_index().is_none() {
            if self.sum == WaveSum::Brain {
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
            WaveSum::Half | WaveSum::Brain => 0xffff,
            WaveSum::Single | WaveSum::Integer => u32::MAX,
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
