//! Matrix products: D = A * B + C for one or more blocks of matrices that lie across the lanes of a
//! wave. EXEC does not matter.
//!
//! Sources of the layouts: the register tables of AMD's CDNA2 and CDNA3 instruction set guides and
//! AMD's matrix instruction calculator. A lane group is as many lanes as a block has rows. The order
//! in which hardware adds products is not documented; the model adds them in the order of k and
//! rounds each sum to nearest even.

use modelgpu_isa::{Instruction, MatrixControl, MatrixScales, Operand};

use super::super::simd::{Fitted, Leveled, ProductsFunction, leveled};
use super::super::value::{self, Half, Kind};
use super::super::{Operation, float, scalar_source, unmodelled};
use super::operation::MatrixElement::{
    Brain, Byte, Double, Eight, FlushedBrain, FlushedHalf, Half as Halves, NegatedDouble, Scaled,
    Short, Single,
};
use super::operation::{Matrix, MatrixElement, VectorOperation};
use super::small::{self, Format};
use crate::error::Fault;
use crate::lanes::LANES;
use crate::wave::Wave;

const fn dense(size: usize, depth: usize, blocks: usize, element: MatrixElement) -> Operation {
    Operation::Vector(VectorOperation::Matrix(Matrix {
        size,
        depth,
        blocks,
        element,
        sparse: false,
    }))
}

const fn sparse(size: usize, depth: usize, element: MatrixElement) -> Operation {
    Operation::Vector(VectorOperation::Matrix(Matrix {
        size,
        depth,
        blocks: 1,
        element,
        sparse: true,
    }))
}

/// On gfx90a, names have no number of blocks, and 16-bit formats have no denormal numbers.
const GFX90A: &[(&str, Operation)] = &[
    ("v_mfma_f32_32x32x1f32", dense(32, 1, 2, Single)),
    ("v_mfma_f32_16x16x1f32", dense(16, 1, 4, Single)),
    ("v_mfma_f32_4x4x1f32", dense(4, 1, 16, Single)),
    ("v_mfma_f32_32x32x2f32", dense(32, 2, 1, Single)),
    ("v_mfma_f32_16x16x4f32", dense(16, 4, 1, Single)),
    ("v_mfma_f32_32x32x4f16", dense(32, 4, 2, FlushedHalf)),
    ("v_mfma_f32_16x16x4f16", dense(16, 4, 4, FlushedHalf)),
    ("v_mfma_f32_4x4x4f16", dense(4, 4, 16, FlushedHalf)),
    ("v_mfma_f32_32x32x8f16", dense(32, 8, 1, FlushedHalf)),
    ("v_mfma_f32_16x16x16f16", dense(16, 16, 1, FlushedHalf)),
    ("v_mfma_i32_32x32x4i8", dense(32, 4, 2, Byte)),
    ("v_mfma_i32_16x16x4i8", dense(16, 4, 4, Byte)),
    ("v_mfma_i32_4x4x4i8", dense(4, 4, 16, Byte)),
    ("v_mfma_i32_32x32x8i8", dense(32, 8, 1, Byte)),
    ("v_mfma_i32_16x16x16i8", dense(16, 16, 1, Byte)),
    ("v_mfma_f32_32x32x4bf16_1k", dense(32, 4, 2, FlushedBrain)),
    ("v_mfma_f32_16x16x4bf16_1k", dense(16, 4, 4, FlushedBrain)),
    ("v_mfma_f32_4x4x4bf16_1k", dense(4, 4, 16, FlushedBrain)),
    ("v_mfma_f32_32x32x8bf16_1k", dense(32, 8, 1, FlushedBrain)),
    ("v_mfma_f32_16x16x16bf16_1k", dense(16, 16, 1, FlushedBrain)),
    ("v_mfma_f32_32x32x2bf16", dense(32, 2, 2, FlushedBrain)),
    ("v_mfma_f32_16x16x2bf16", dense(16, 2, 4, FlushedBrain)),
    ("v_mfma_f32_4x4x2bf16", dense(4, 2, 16, FlushedBrain)),
    ("v_mfma_f32_32x32x4bf16", dense(32, 4, 1, FlushedBrain)),
    ("v_mfma_f32_16x16x8bf16", dense(16, 8, 1, FlushedBrain)),
    ("v_mfma_f64_16x16x4f64", dense(16, 4, 1, Double)),
    ("v_mfma_f64_4x4x4f64", dense(4, 4, 4, Double)),
];

const GFX942: &[(&str, Operation)] = &[
    ("v_mfma_f32_16x16x8_xf32", dense(16, 8, 1, Short)),
    ("v_mfma_f32_32x32x4_xf32", dense(32, 4, 1, Short)),
    ("v_mfma_f32_32x32x1_2b_f32", dense(32, 1, 2, Single)),
    ("v_mfma_f32_16x16x1_4b_f32", dense(16, 1, 4, Single)),
    ("v_mfma_f32_4x4x1_16b_f32", dense(4, 1, 16, Single)),
    ("v_mfma_f32_32x32x2_f32", dense(32, 2, 1, Single)),
    ("v_mfma_f32_16x16x4_f32", dense(16, 4, 1, Single)),
    ("v_mfma_f32_32x32x4_2b_f16", dense(32, 4, 2, Halves)),
    ("v_mfma_f32_16x16x4_4b_f16", dense(16, 4, 4, Halves)),
    ("v_mfma_f32_4x4x4_16b_f16", dense(4, 4, 16, Halves)),
    ("v_mfma_f32_32x32x8_f16", dense(32, 8, 1, Halves)),
    ("v_mfma_f32_16x16x16_f16", dense(16, 16, 1, Halves)),
    ("v_mfma_i32_32x32x4_2b_i8", dense(32, 4, 2, Byte)),
    ("v_mfma_i32_16x16x4_4b_i8", dense(16, 4, 4, Byte)),
    ("v_mfma_i32_4x4x4_16b_i8", dense(4, 4, 16, Byte)),
    ("v_mfma_i32_32x32x16_i8", dense(32, 16, 1, Byte)),
    ("v_mfma_i32_16x16x32_i8", dense(16, 32, 1, Byte)),
    ("v_mfma_f32_32x32x4_2b_bf16", dense(32, 4, 2, Brain)),
    ("v_mfma_f32_16x16x4_4b_bf16", dense(16, 4, 4, Brain)),
    ("v_mfma_f32_4x4x4_16b_bf16", dense(4, 4, 16, Brain)),
    ("v_mfma_f32_32x32x8_bf16", dense(32, 8, 1, Brain)),
    ("v_mfma_f32_16x16x16_bf16", dense(16, 16, 1, Brain)),
    ("v_mfma_f64_16x16x4_f64", dense(16, 4, 1, NegatedDouble)),
    ("v_mfma_f64_4x4x4_4b_f64", dense(4, 4, 4, NegatedDouble)),
    ("v_smfmac_f32_16x16x32_f16", sparse(16, 32, Halves)),
    ("v_smfmac_f32_32x32x16_f16", sparse(32, 16, Halves)),
    ("v_smfmac_f32_16x16x32_bf16", sparse(16, 32, Brain)),
    ("v_smfmac_f32_32x32x16_bf16", sparse(32, 16, Brain)),
    ("v_smfmac_i32_16x16x64_i8", sparse(16, 64, Byte)),
    ("v_smfmac_i32_32x32x32_i8", sparse(32, 32, Byte)),
];

/// Products of 8-bit floats: the shapes, and the formats of both factors.
macro_rules! of_eight {
    ($fp8:ident, $bf8:ident, $($shape:literal: $kind:ident($size:literal, $depth:literal $(, $blocks:literal)?);)*) => {
        &[$(
            (concat!($shape, "_bf8_bf8"), $kind($size, $depth $(, $blocks)?, Eight(small::$bf8, small::$bf8))),
            (concat!($shape, "_bf8_fp8"), $kind($size, $depth $(, $blocks)?, Eight(small::$bf8, small::$fp8))),
            (concat!($shape, "_fp8_bf8"), $kind($size, $depth $(, $blocks)?, Eight(small::$fp8, small::$bf8))),
            (concat!($shape, "_fp8_fp8"), $kind($size, $depth $(, $blocks)?, Eight(small::$fp8, small::$fp8))),
        )*]
    };
}

/// gfx942's formats.
const OF_FNUZ: &[(&str, Operation)] = of_eight! {
    FP8_FNUZ, BF8_FNUZ,
    "v_mfma_f32_16x16x32": dense(16, 32, 1);
    "v_mfma_f32_32x32x16": dense(32, 16, 1);
    "v_smfmac_f32_16x16x64": sparse(16, 64);
    "v_smfmac_f32_32x32x32": sparse(32, 32);
};

/// gfx950's.
pub(super) const OF_OCP: &[(&str, Operation)] = of_eight! {
    FP8, BF8,
    "v_mfma_f32_16x16x32": dense(16, 32, 1);
    "v_mfma_f32_32x32x16": dense(32, 16, 1);
    "v_smfmac_f32_16x16x64": sparse(16, 64);
    "v_smfmac_f32_32x32x32": sparse(32, 32);
    "v_smfmac_f32_16x16x128": sparse(16, 128);
    "v_smfmac_f32_32x32x64": sparse(32, 64);
};

/// gfx950 also has most of gfx942's.
const GFX950: &[(&str, Operation)] = &[
    ("v_mfma_f32_16x16x32_f16", dense(16, 32, 1, Halves)),
    ("v_mfma_f32_32x32x16_f16", dense(32, 16, 1, Halves)),
    ("v_mfma_f32_16x16x32_bf16", dense(16, 32, 1, Brain)),
    ("v_mfma_f32_32x32x16_bf16", dense(32, 16, 1, Brain)),
    ("v_mfma_i32_16x16x64_i8", dense(16, 64, 1, Byte)),
    ("v_mfma_i32_32x32x32_i8", dense(32, 32, 1, Byte)),
    ("v_smfmac_f32_16x16x64_f16", sparse(16, 64, Halves)),
    ("v_smfmac_f32_32x32x32_f16", sparse(32, 32, Halves)),
    ("v_smfmac_f32_16x16x64_bf16", sparse(16, 64, Brain)),
    ("v_smfmac_f32_32x32x32_bf16", sparse(32, 32, Brain)),
    ("v_smfmac_i32_16x16x128_i8", sparse(16, 128, Byte)),
    ("v_smfmac_i32_32x32x64_i8", sparse(32, 64, Byte)),
    ("v_mfma_f32_16x16x128_f8f6f4", dense(16, 128, 1, Scaled)),
    ("v_mfma_f32_32x32x64_f8f6f4", dense(32, 64, 1, Scaled)),
    (
        "v_mfma_scale_f32_16x16x128_f8f6f4",
        dense(16, 128, 1, Scaled),
    ),
    ("v_mfma_scale_f32_32x32x64_f8f6f4", dense(32, 64, 1, Scaled)),
];

pub(super) const TABLES: [super::super::Table; 4] = [GFX90A, GFX942, OF_FNUZ, GFX950];

/// Defines products that are added to sums, compiled for each level of the processor.
macro_rules! products {
    ($type:ty, |$a:ident, $b:ident, $sum:ident| $result:expr) => {
        leveled!(
            |number: $type, others: &[$type], sums: &mut [$type]| -> () {
                for (sum, other) in sums.iter_mut().zip(others) {
                    let ($a, $b, $sum) = (number, *other, *sum);
                    *sum = $result;
                }
            }
        )
    };
}

/// Rounded once.
const FUSED: Leveled<ProductsFunction<f32>> = products!(f32, |a, b, sum| a.mul_add(b, sum));
/// Products of such numbers are exact in single precision.
const OF_EXACT: Leveled<ProductsFunction<f32>> = products!(f32, |a, b, sum| a * b + sum);
const OF_DOUBLES: Leveled<ProductsFunction<f64>> = products!(f64, |a, b, sum| a.mul_add(b, sum));
/// Products of scaled numbers go beyond single precision; sums do not.
const OF_SCALED: Leveled<ProductsFunction<f64>> =
    products!(f64, |a, b, sum| f64::from((a * b + sum) as f32));
const OF_INTEGERS: Leveled<ProductsFunction<i32>> =
    products!(i32, |a, b, sum| a.wrapping_mul(b).wrapping_add(sum));

/// The formats that a field of an instruction selects.
const SELECTED: [Format; 5] = [small::FP8, small::BF8, small::FP6, small::BF6, small::FP4];

/// The numbers of a row or a column that have one scale.
const SCALED_BY_ONE: usize = 32;

/// One factor: a row of `width` numbers for each block and row of A, or block and row of B.
struct Factor<T> {
    width: usize,
    numbers: Vec<T>,
}

impl Matrix {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        self.check(instruction)?;
        match self.element {
            Single => self.singles(instruction, wave, f32::from_bits, f32::from_bits, FUSED),
            Short => self.singles(instruction, wave, short, short, FUSED),
            Halves => self.singles(instruction, wave, half, half, OF_EXACT),
            Eight(a, b) => self.singles(
                instruction,
                wave,
                |bits| a.decode(bits) as f32,
                |bits| b.decode(bits) as f32,
                OF_EXACT,
            ),
            Scaled => self.scaled(instruction, wave),
            Brain => self.singles(instruction, wave, brain, brain, FUSED),
            FlushedHalf => {
                let half = |bits| half(Kind::F16.flushed(u64::from(bits)) as u32);
                self.singles(instruction, wave, half, half, OF_EXACT)
            }
            FlushedBrain => {
                let brain = |bits| flushed(brain(bits));
                self.singles(instruction, wave, brain, brain, FUSED)
            }
            Byte => {
                let byte = |bits| i32::from(bits as i8);
                let (a, places) = self.left(instruction, wave, byte);
                let b = self.right(instruction, wave, byte);
                let mut sums = self.addend(instruction, wave, Kind::B32, |bits| bits as i32)?;
                self.multiply(&a, &places, &b, &mut sums, OF_INTEGERS.for_wave(wave));
                self.write(instruction, wave, &sums, |sum| u64::from(sum as u32));
                Ok(())
            }
            Double | NegatedDouble => {
                let signs = match self.element {
                    NegatedDouble => instruction.matrix.lanes,
                    _ => 0,
                };
                let signed = |place: u8, value: f64| match signs >> place & 1 {
                    1 => -value,
                    _ => value,
                };
                let double =
                    |wave: &Wave, operand, lane| f64::from_bits(wave.lane_pair(operand, lane));
                let [a, b, _] = instruction.src;
                let (rows, groups) = (self.size * self.blocks, self.groups());
                let mut left = vec![0.0; rows * groups];
                let mut right = vec![0.0; rows * groups];
                for lane in 0..LANES {
                    let (k, row) = (lane / rows, lane % rows);
                    left[row * groups + k] = signed(0, double(wave, a, lane));
                    let (block, column) = (row / self.size, row % self.size);
                    right[(block * groups + k) * self.size + column] =
                        signed(1, double(wave, b, lane));
                }
                let a = Factor {
                    width: groups,
                    numbers: left,
                };
                let b = Factor {
                    width: self.size,
                    numbers: right,
                };
                let places: Vec<usize> = (0..groups).collect::<Vec<_>>().repeat(rows);
                let mut sums = self.addend(instruction, wave, Kind::F64, |bits| {
                    signed(2, f64::from_bits(bits))
                })?;
                self.multiply(&a, &places, &b, &mut sums, OF_DOUBLES.for_wave(wave));
                self.write(instruction, wave, &sums, f64::to_bits);
                Ok(())
            }
        }
    }

    /// Refuses modifiers that the instruction lacks.
    fn check(self, instruction: &Instruction) -> Result<(), Fault> {
        let MatrixControl {
            broadcast,
            block,
            lanes,
            ..
        } = instruction.matrix;
        if let Scaled = self.element {
            // These fields select the formats.
            return [broadcast, lanes]
                .iter()
                .all(|format| usize::from(*format) < SELECTED.len())
                .then_some(())
                .ok_or_else(|| unmodelled(instruction, "this cbsz or blgp"));
        }
        let copies = 1usize << broadcast;
        // A sparse instruction selects a set of places with these fields.
        if !self.sparse && (copies > self.blocks || usize::from(block) >= copies) {
            return Err(unmodelled(instruction, "this cbsz and abid"));
        }
        let moves_lanes = !self.sparse
            && match self.element {
                Single | Halves | Brain | FlushedHalf | FlushedBrain | NegatedDouble => true,
                // gfx942's large shapes have none.
                Byte => self.depth * self.size <= 256,
                _ => false,
            };
        if lanes != 0 && !moves_lanes {
            return Err(unmodelled(instruction, "blgp"));
        }
        Ok(())
    }

    fn singles(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        left: impl Fn(u32) -> f32,
        right: impl Fn(u32) -> f32,
        products: Leveled<ProductsFunction<f32>>,
    ) -> Result<(), Fault> {
        let flushes = matches!(self.element, FlushedHalf | FlushedBrain);
        let kept = |value: f32| if flushes { flushed(value) } else { value };
        let (a, places) = self.left(instruction, wave, left);
        let b = self.right(instruction, wave, right);
        let mut sums = self.addend(instruction, wave, Kind::F32, |bits| {
            kept(f32::from_bits(bits as u32))
        })?;
        self.multiply(&a, &places, &b, &mut sums, products.for_wave(wave));
        self.write(instruction, wave, &sums, |sum| kept(sum).to_bits().into());
        Ok(())
    }

    fn scaled(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let MatrixControl {
            broadcast, lanes, ..
        } = instruction.matrix;
        let formats = [broadcast, lanes].map(|format| SELECTED[usize::from(format)]);
        let number = |source: usize, line: usize, k: usize| {
            let value = self.selected(instruction.src[source], formats[source], line, k, wave);
            match instruction.matrix.scales {
                Some(scales) => value * self.scale(scales, source, line, k / SCALED_BY_ONE, wave),
                None => value,
            }
        };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for line in 0..self.size {
            left.extend((0..self.depth).map(|k| number(0, line, k)));
        }
        for k in 0..self.depth {
            right.extend((0..self.size).map(|column| number(1, column, k)));
        }
        let a = Factor {
            width: self.depth,
            numbers: left,
        };
        let b = Factor {
            width: self.size,
            numbers: right,
        };
        let places = (0..self.depth).collect::<Vec<_>>().repeat(self.size);
        let mut sums = self.addend(instruction, wave, Kind::F32, |bits| {
            f64::from(f32::from_bits(bits as u32))
        })?;
        self.multiply(&a, &places, &b, &mut sums, OF_SCALED.for_wave(wave));
        self.write(instruction, wave, &sums, |sum| {
            (sum as f32).to_bits().into()
        });
        Ok(())
    }

    /// A number of a row of A or of a column of B. A lane has 32 consecutive numbers; if they have 8 bits, it has
    /// 16 of each half.
    fn selected(self, operand: Operand, format: Format, line: usize, k: usize, wave: &Wave) -> f64 {
        let groups = self.groups();
        let together = if format.width() == 8 { 16 } else { 32 };
        let group = k / together % groups;
        let number = k % together + k / (together * groups) * together;
        let (lane, width) = (line + self.size * group, format.width() as usize);
        // Six bits may lie in two registers.
        let bit = number * width;
        let [low, high] =
            [0, 1].map(|more| u64::from(wave.lane_at(operand, bit / 32 + more, lane)));
        let bits = (low | high << 32) >> (bit % 32) & ((1 << width) - 1);
        format.decode(bits as u32)
    }

    /// The power of two for a group of numbers of a row of A or of a column of B.
    fn scale(
        self,
        scales: MatrixScales,
        source: usize,
        line: usize,
        group: usize,
        wave: &Wave,
    ) -> f64 {
        let word = wave.lane(scales.sources[source], line + self.size * group);
        match (word >> (8 * scales.bytes[source])) as u8 {
            u8::MAX => f64::NAN,
            exponent => float::ldexp(1.0, i32::from(exponent) - 127),
        }
    }

    /// The number of groups of lanes that share the depth of a block.
    fn groups(self) -> usize {
        LANES / (self.size * self.blocks)
    }

    /// The bits of an element of at most 32 bits.
    fn width(self) -> usize {
        match self.element {
            Single | Short => 32,
            Halves | Brain | FlushedHalf | FlushedBrain => 16,
            Eight(..) | Scaled | Byte => 8,
            Double | NegatedDouble => 64,
        }
    }

    /// A, and the place in the row of each of its numbers. Row and block give a lane of each group;
    /// the groups hold parts of the row, one behind the other.
    fn left<T: Copy + Default>(
        self,
        instruction: &Instruction,
        wave: &Wave,
        decode: impl Fn(u32) -> T,
    ) -> (Factor<T>, Vec<usize>) {
        let MatrixControl {
            broadcast, block, ..
        } = instruction.matrix;
        let groups = self.groups();
        let depth_per_lane = self.depth / groups;
        let count = if self.sparse {
            depth_per_lane / 2
        } else {
            depth_per_lane
        };
        let mut numbers = Vec::with_capacity(self.blocks * self.size * groups * count);
        let mut places = Vec::with_capacity(numbers.capacity());
        for target in 0..self.blocks {
            let source = if self.sparse {
                target
            } else {
                target >> broadcast << broadcast | usize::from(block)
            };
            for row in 0..self.size {
                for group in 0..groups {
                    let lane = row + self.size * (source + self.blocks * group);
                    for number in 0..count {
                        let bits = element(wave, instruction.src[0], lane, number, self.width());
                        numbers.push(decode(bits));
                        let place = if self.sparse {
                            number / 2 * 4 + self.sparse_place(instruction, wave, lane, number)
                        } else {
                            number
                        };
                        places.push(group * depth_per_lane + place);
                    }
                }
            }
        }
        let factor = Factor {
            width: groups * count,
            numbers,
        };
        (factor, places)
    }

    /// The place of a number among its four: two bits of Src2, of which an instruction uses a set.
    fn sparse_place(
        self,
        instruction: &Instruction,
        wave: &Wave,
        lane: usize,
        number: usize,
    ) -> usize {
        let MatrixControl {
            broadcast, block, ..
        } = instruction.matrix;
        let set_bits = self.depth / self.groups();
        let set = if broadcast == 0 {
            usize::from(block) % (32 / set_bits)
        } else {
            0
        };
        let all = wave.lane(instruction.src[2], lane);
        (all >> (set * set_bits + 2 * number) & 3) as usize
    }

    /// B, whose columns lie in lanes as A's rows do.
    fn right<T: Copy + Default>(
        self,
        instruction: &Instruction,
        wave: &Wave,
        decode: impl Fn(u32) -> T,
    ) -> Factor<T> {
        let groups = self.groups();
        let count = self.depth / groups;
        let mut numbers = vec![T::default(); self.blocks * self.depth * self.size];
        for lane in 0..LANES {
            let (column, block) = (lane % self.size, lane / self.size % self.blocks);
            let group = lane / self.size / self.blocks;
            let source = source_lane(instruction.matrix.lanes, lane);
            for number in 0..count {
                let bits = element(wave, instruction.src[1], source, number, self.width());
                let k = group * count + number;
                numbers[(block * self.depth + k) * self.size + column] = decode(bits);
            }
        }
        Factor {
            width: self.size,
            numbers,
        }
    }

    /// C by block, row and column.
    fn addend<T: Copy>(
        self,
        instruction: &Instruction,
        wave: &Wave,
        kind: Kind,
        decode: impl Fn(u64) -> T,
    ) -> Result<Vec<T>, Fault> {
        let operand = if self.sparse {
            instruction.dst
        } else {
            instruction.src[2]
        };
        let count = self.blocks * self.size * self.size;
        if operand.vector_index().is_none() {
            let constant = decode(scalar_source(instruction, 2, kind, wave)?);
            return Ok(vec![constant; count]);
        }
        let index = operand.vector_index().unwrap_or_default();
        let mut sums = Vec::with_capacity(count);
        for row in 0..self.blocks * self.size {
            let (register, first) = self.result_row(row);
            let low = &wave.vectors[index + register][first..first + self.size];
            let high = &wave.vectors[index + register + 1][first..first + self.size];
            sums.extend(low.iter().zip(high).map(|(low, high)| {
                decode(if kind.is_long() {
                    u64::from(*low) | u64::from(*high) << 32
                } else {
                    u64::from(*low)
                })
            }));
        }
        Ok(sums)
    }

    fn write<T: Copy>(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        sums: &[T],
        encode: impl Fn(T) -> u64,
    ) {
        let Some(index) = instruction.dst.vector_index() else {
            return;
        };
        for (row, sums) in sums.chunks_exact(self.size).enumerate() {
            let (register, first) = self.result_row(row);
            for (column, sum) in sums.iter().enumerate() {
                let bits = encode(*sum);
                wave.vectors[index + register][first + column] = bits as u32;
                if self.width() == 64 {
                    wave.vectors[index + register + 1][first + column] = (bits >> 32) as u32;
                }
            }
        }
    }

    /// The register of a row of C and D, and the lane of its first column. The rows of all blocks
    /// are counted. Doubles have four consecutive rows in four groups of lanes. Others have them in
    /// four registers; the next four rows are in the next group of lanes.
    fn result_row(self, row: usize) -> (usize, usize) {
        let (block, row) = (row / self.size, row % self.size);
        if self.width() == 64 {
            return (2 * (row / 4), self.size * (block + self.blocks * (row % 4)));
        }
        if self.size == 4 {
            return (row, 4 * block);
        }
        let groups = LANES / self.size;
        let (four, registers) = (row / 4, self.size * self.size / LANES);
        let register = row % 4 + 4 * (four / groups) + registers * block;
        (register, self.size * (four % groups))
    }

    /// Adds the products to the sums.
    fn multiply<T: Copy>(
        self,
        a: &Factor<T>,
        places: &[usize],
        b: &Factor<T>,
        sums: &mut [T],
        products: Fitted<ProductsFunction<T>>,
    ) {
        let rows = a.numbers.chunks_exact(a.width);
        let places = places.chunks_exact(a.width);
        let sums = sums.chunks_exact_mut(self.size);
        for (line, ((row, places), sums)) in rows.zip(places).zip(sums).enumerate() {
            let first = line / self.size * self.depth;
            for (number, place) in row.iter().zip(places) {
                let other = &b.numbers[(first + place) * b.width..][..b.width];
                products.call(*number, other, sums);
            }
        }
    }
}

/// An element of at most 32 bits. Elements fill registers from the low bits on.
fn element(wave: &Wave, operand: Operand, lane: usize, number: usize, width: usize) -> u32 {
    let bit = number * width;
    let word = wave.lane_at(operand, bit / 32, lane) >> (bit % 32);
    word & u32::MAX >> (32 - width)
}

/// The lane whose part of B a lane multiplies with.
fn source_lane(pattern: u8, lane: usize) -> usize {
    match pattern {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % LANES,
        4..=7 => lane % 16 + 16 * usize::from(pattern - 4),
        _ => lane,
    }
}

fn half(bits: u32) -> f32 {
    Half(bits as u16).to_f32()
}

fn brain(bits: u32) -> f32 {
    value::Brain(bits as u16).to_f32()
}

fn flushed(value: f32) -> f32 {
    f32::from_bits(Kind::F32.flushed(value.to_bits().into()) as u32)
}

/// Rounds the fraction to 10 bits, to nearest even.
fn short(bits: u32) -> f32 {
    const DROPPED: u32 = 13;
    let value = f32::from_bits(bits);
    if !value.is_finite() {
        return value;
    }
    let odd = bits >> DROPPED & 1;
    let rounded = bits + (1 << (DROPPED - 1)) - 1 + odd;
    f32::from_bits(rounded >> DROPPED << DROPPED)
}
